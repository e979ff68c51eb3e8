"""A program that reads the QR codes of a picture on standard input. `reconciliation.slips.pictures` runs it.

It is a process because a decoder in a thread cannot be stopped. It imports nothing of this project, so that
it starts fast. It prints JSON: a list of texts, or the name of the reason why there is none.
"""

import io
import json
import os
import resource
import sys
from collections.abc import Iterator

import zxingcpp
from PIL import Image

MAX_PIXELS = 25_000_000  # more than a telephone's screen or camera has; 25 MB in gray
MAX_SIDE_PIXELS = 65_535  # limit of the decoder
SMALL_COPY_PIXELS = 2_000_000  # at this size even a malicious picture takes less than a second
MAX_CPU_SECONDS = 3  # then the system kills the process; a photograph takes 0.6
MAX_MEMORY_BYTES = 1_000_000_000  # of addresses, also of libraries
FORMATS = ["PNG", "JPEG", "WEBP"]
NO_QR_CODE, TOO_LARGE, NOT_A_PICTURE = "no_qr_code", "too_large", "not_a_picture"
Image.MAX_IMAGE_PIXELS = None  # decode() checks the size; Pillow would only warn, at seven times as many
_QR = zxingcpp.BarcodeFormats([zxingcpp.BarcodeFormat.QRCode])


def decode(picture: bytes) -> list[str] | str:
    """The texts of the QR codes, at least one, or why there is none."""
    try:
        image = Image.open(io.BytesIO(picture), formats=FORMATS)
        # The header has the size, so nothing is unpacked yet.
        if image.width * image.height > MAX_PIXELS or max(image.size) > MAX_SIDE_PIXELS:
            return TOO_LARGE
        gray = image.convert("L")
    except Exception:  # decoders raise any exception for broken pictures
        return NOT_A_PICTURE
    for copy in _copies(gray):
        found = [code.text for code in zxingcpp.read_barcodes(copy, formats=_QR) if code.text]
        if found:
            return found
    return NO_QR_CODE


def _copies(gray: Image.Image) -> Iterator[Image.Image]:
    """A small copy first. A small code on a large photograph is readable only in full size."""
    scale = (SMALL_COPY_PIXELS / (gray.width * gray.height)) ** 0.5
    if scale < 1:
        size = (int(gray.width * scale), int(gray.height * scale))
        yield gray.resize(size, Image.Resampling.BILINEAR)
    yield gray


if __name__ == "__main__":
    os.nice(5)  # web workers on the same CPU go first
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECONDS, MAX_CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    json.dump(decode(sys.stdin.buffer.read()), sys.stdout)
