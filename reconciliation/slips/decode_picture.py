"""A program of its own: reads the QR codes on the picture that comes on standard input.

`reconciliation.slips.pictures` runs it: a program, because nothing stops the decoder in a thread. It imports
nothing of ours, so that it begins at once. It prints one line of JSON: a list of what the codes say, or a
sentence for staff on why there is none.
"""

import io
import json
import os
import resource
import sys
from collections.abc import Iterator

import zxingcpp
from PIL import Image

MAX_PIXELS = 25_000_000
"""More than a telephone's screen or camera makes; 25 MB in shades of gray."""
MAX_SIDE_PIXELS = 65_535
"""Pixels that the decoder can take."""
SMALL_COPY_PIXELS = 2_000_000
"""Pixels. A picture that is made to take long takes less than a second at this size."""
MAX_CPU_SECONDS = 3
"""The system ends a reader that takes more, even if nobody waits for it. A photograph takes 0.6."""
FORMATS = ["PNG", "JPEG", "WEBP"]
NO_QR_CODE = "There is no QR code on this picture that can be read. Crop it, or take a sharper one."
TOO_LARGE = "The picture has too many pixels: make it smaller."
NOT_A_PICTURE = "This is not a PNG, JPEG or WebP picture, or it is broken."
Image.MAX_IMAGE_PIXELS = None  # Pillow bears seven times as many, and only warns; this module judges itself
_QR = zxingcpp.BarcodeFormats([zxingcpp.BarcodeFormat.QRCode])


def decode(picture: bytes) -> list[str] | str:
    """What the QR codes say, at least one, or why there is none."""
    try:
        image = Image.open(io.BytesIO(picture), formats=FORMATS)
        # Judged by the header, before anything is unpacked.
        if image.width * image.height > MAX_PIXELS or max(image.size) > MAX_SIDE_PIXELS:
            return TOO_LARGE
        gray = image.convert("L")
    except Exception:  # decoders raise whatever they like at broken pictures
        return NOT_A_PICTURE
    for copy in _copies(gray):
        found = [code.text for code in zxingcpp.read_barcodes(copy, formats=_QR) if code.text]
        if found:
            return found
    return NO_QR_CODE


def _copies(gray: Image.Image) -> Iterator[Image.Image]:
    """The picture small, then as it is: a small code on a large photograph is only to be seen then."""
    scale = (SMALL_COPY_PIXELS / (gray.width * gray.height)) ** 0.5
    if scale < 1:
        size = (int(gray.width * scale), int(gray.height * scale))
        yield gray.resize(size, Image.Resampling.BILINEAR)
    yield gray


if __name__ == "__main__":
    os.nice(5)  # it shares a processor with a web worker, which goes first
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECONDS, MAX_CPU_SECONDS))
    json.dump(decode(sys.stdin.buffer.read()), sys.stdout)
