"""A program that draws a small PNG of the PNG or JPEG on standard input, run by `core.work.decoders`.

It imports nothing of this project, so that it starts fast. It fails if there is no such picture.
"""

import io
import sys

from PIL import Image, ImageOps

MAX_PIXELS = 4_000_000
LARGEST = (300, 150)
"""Three times the pixels that the page shows. Even noise of this size has less than 200 kB."""
Image.MAX_IMAGE_PIXELS = None  # draw() checks the size


def draw(picture: bytes) -> bytes:
    image = Image.open(io.BytesIO(picture), formats=["PNG", "JPEG"])
    # The header has the size, so nothing is unpacked yet.
    if image.width * image.height > MAX_PIXELS:
        raise ValueError
    small = ImageOps.exif_transpose(image).convert("RGBA")
    small.thumbnail(LARGEST)
    # Only the pixels: profiles and texts of the file stay behind.
    clean, file = Image.frombytes("RGBA", small.size, small.tobytes()), io.BytesIO()
    clean.save(file, "PNG")
    return file.getvalue()


if __name__ == "__main__":
    sys.stdout.buffer.write(draw(sys.stdin.buffer.read()))
