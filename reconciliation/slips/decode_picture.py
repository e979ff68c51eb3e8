"""A program that reads the QR codes of a picture on standard input, run by `core.work.decoders` with limits.

It imports nothing of this project, so that it starts fast. It prints JSON: a list of texts, or the name of
the reason why there is none.
"""

import io
import json
import resource
import sys
from collections.abc import Iterator

import zxingcpp
from PIL import Image

# Colours can take more memory than there is. A WebP takes it for each pixel, and is a screenshot.
MAX_PIXELS = {"JPEG": 25_000_000, "PNG": 25_000_000, "WEBP": 8_000_000}
MAX_SIDE_PIXELS = 65_535  # limit of the decoder
SMALL_COPY_PIXELS = 2_000_000  # at this size even a malicious picture takes less than a second
NO_QR_CODE, TOO_LARGE, NOT_A_PICTURE = "no_qr_code", "too_large", "not_a_picture"
Image.MAX_IMAGE_PIXELS = None  # decode() checks the size; Pillow would only warn, at seven times as many
_QR = zxingcpp.BarcodeFormats([zxingcpp.BarcodeFormat.QRCode])


def decode(picture: bytes) -> list[str] | str:
    """The texts of the QR codes, at least one, or why there is none."""
    if _webp_pixels(picture) > MAX_PIXELS["WEBP"]:
        return TOO_LARGE
    try:
        image = Image.open(io.BytesIO(picture), formats=list(MAX_PIXELS))
        # The header has the size, so nothing is unpacked yet.
        if image.width * image.height > MAX_PIXELS[str(image.format)] or max(image.size) > MAX_SIDE_PIXELS:
            return TOO_LARGE
        image.draft("L", image.size)  # a JPEG is unpacked without its colours, in a quarter of the memory
        gray = image.convert("L")
    except MemoryError:
        raise
    except Exception:  # decoders raise any exception for broken pictures
        return NOT_A_PICTURE
    for copy in _copies(gray):
        found = [code.text for code in zxingcpp.read_barcodes(copy, formats=_QR) if code.text]
        if found:
            return found
    return NO_QR_CODE


def _webp_pixels(picture: bytes) -> int:
    """By the header (RFC 9649), or 0. Pillow takes the memory of a WebP when it opens it."""
    if picture[:4] != b"RIFF" or picture[8:12] != b"WEBP":
        return 0
    if picture[12:16] == b"VP8X":
        return (_number(picture[24:27]) + 1) * (_number(picture[27:30]) + 1)
    if picture[12:16] == b"VP8L":
        sides = _number(picture[21:25])
        return (sides % 2**14 + 1) * ((sides >> 14) % 2**14 + 1)
    return (_number(picture[26:28]) % 2**14) * (_number(picture[28:30]) % 2**14)


def _number(content: bytes) -> int:
    return int.from_bytes(content, "little")


def _copies(gray: Image.Image) -> Iterator[Image.Image]:
    """A small copy first. A small code on a large photograph is readable only in full size."""
    scale = (SMALL_COPY_PIXELS / (gray.width * gray.height)) ** 0.5
    if scale < 1:
        size = (int(gray.width * scale), int(gray.height * scale))
        yield gray.resize(size, Image.Resampling.BILINEAR)
    yield gray


if __name__ == "__main__":
    Image.init()
    # From here on it opens nothing: a picture that takes it over cannot read its parent's variables in /proc.
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    try:
        result = decode(sys.stdin.buffer.read())
    except MemoryError:
        result = TOO_LARGE
    json.dump(result, sys.stdout)
