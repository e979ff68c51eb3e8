"""A program of its own: reads the QR codes on the picture that comes on standard input.

`receipts.slip_pictures` runs it: a program, because nothing stops the decoder in a thread. It imports nothing
of ours, so that it begins at once. It prints one line of JSON: a list of what the codes say, or a sentence
for staff on why there is none.
"""

import io
import json
import os
import resource
import sys
from collections.abc import Iterator

import zxingcpp
from PIL import Image

MOST_PIXELS = 25_000_000
"""More than a telephone's screen or camera makes; 25 MB in shades of grey."""
LONGEST_SIDE = 65_535
"""Pixels that the decoder can take."""
FIRST_LOOK = 2_000_000
"""Pixels. A picture that is made to take long takes less than a second at this size."""
CPU_SECONDS = 3
"""The system ends a reader that takes more, even if nobody waits for it. A photograph takes 0.6."""
FORMATS = ["PNG", "JPEG", "WEBP"]
NOTHING = "There is no QR code on this picture that can be read. Crop it, or take a sharper one."
TOO_LARGE = "The picture has too many pixels: make it smaller."
BROKEN = "This is not a PNG, JPEG or WebP picture, or it is broken."
Image.MAX_IMAGE_PIXELS = None  # Pillow bears seven times as many, and only warns; this module judges itself
_QR = zxingcpp.BarcodeFormats([zxingcpp.BarcodeFormat.QRCode])


def read(picture: bytes) -> list[str] | str:
    """What the QR codes say, at least one, or why there is none."""
    try:
        image = Image.open(io.BytesIO(picture), formats=FORMATS)
        # Judged by the header, before anything is unpacked.
        if image.width * image.height > MOST_PIXELS or max(image.size) > LONGEST_SIDE:
            return TOO_LARGE
        grey = image.convert("L")
    except Exception:  # decoders raise whatever they like at broken pictures
        return BROKEN
    for look in _looks(grey):
        found = [code.text for code in zxingcpp.read_barcodes(look, formats=_QR) if code.text]
        if found:
            return found
    return NOTHING


def _looks(grey: Image.Image) -> Iterator[Image.Image]:
    """The picture small, then as it is: a small code on a large photograph is only to be seen then."""
    scale = (FIRST_LOOK / (grey.width * grey.height)) ** 0.5
    if scale < 1:
        size = (int(grey.width * scale), int(grey.height * scale))
        yield grey.resize(size, Image.Resampling.BILINEAR)
    yield grey


if __name__ == "__main__":
    os.nice(5)  # it shares a processor with a web worker, which goes first
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    json.dump(read(sys.stdin.buffer.read()), sys.stdout)
