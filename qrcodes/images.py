"""Pictures of a QR code: its payload as a symbol, or a word if the code can no longer be paid.

Source: PNG Specification (Third Edition), sections 5 and 11. An image library would take longer.
"""

import re
import struct
import zlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from core.drawing.qr_symbols import modules

MIN_WIDTH = 512
# Files paid.png, paid.svg, expired.png and expired.svg. The letters are lines, so no font is needed to show
# them.
STATUS_IMAGES = Path(__file__).parent / "status_images"

# Browsers that show a code ask for its picture again and again. A picture takes 1.5 ms and has 2 kB.
CACHED_PICTURES = 512
_DARK_RUN = re.compile(b"\x01+")
_LIGHT_AND_DARK = bytes.maketrans(b"\x00\x01", b"10")  # a pixel of a bit is 1 if it is white


@lru_cache(CACHED_PICTURES)
def png(payload: str) -> bytes:
    """Draw a black and white PNG, at least 512 pixels wide, with whole pixels for each module."""
    matrix = modules(payload)
    scale = -(-MIN_WIDTH // len(matrix))
    width = scale * len(matrix)
    pixels = b"".join((b"\0" + _row(line, scale)) * scale for line in matrix)  # 0: the row is not filtered
    header = struct.pack(">IIBBBBB", width, width, 1, 0, 0, 0, 0)  # a bit for each pixel, black or white
    # The best compression would take four times as long, and save 0.7 kB.
    content = zlib.compress(pixels, zlib.Z_BEST_SPEED)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", content) + _chunk(b"IEND", b"")


@lru_cache(CACHED_PICTURES)
def svg(payload: str) -> bytes:
    """Draw an SVG of the same size: one black path with a rectangle for each run of modules."""
    matrix = modules(payload)
    size = len(matrix)
    width = -(-MIN_WIDTH // size) * size
    runs = "".join(_runs(y, line) for y, line in enumerate(matrix))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{width}"'
        f' viewBox="0 0 {size} {size}" shape-rendering="crispEdges">'
        f'<rect width="{size}" height="{size}" fill="#fff"/><path d="{runs}"/></svg>'
    ).encode()


PNG, SVG = "png", "svg"
MEDIA_TYPES = {PNG: "image/png", SVG: "image/svg+xml"}
DRAW: dict[str, Callable[[str], bytes]] = {PNG: png, SVG: svg}


@lru_cache
def status_image(word: str, image_format: str) -> bytes:
    """Read the picture of `paid` or `expired` as `png` or `svg`."""
    return (STATUS_IMAGES / f"{word}.{image_format}").read_bytes()


def _row(line: bytes, scale: int) -> bytes:
    """A line of modules as pixels, eight to a byte; the last byte ends with white."""
    bits = line.translate(_LIGHT_AND_DARK).replace(b"1", b"1" * scale).replace(b"0", b"0" * scale)
    bits += b"1" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def _chunk(name: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(name + data)
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", checksum)


def _runs(y: int, line: bytes) -> str:
    spans = [run.span() for run in _DARK_RUN.finditer(line)]
    return "".join(f"M{start} {y}h{end - start}v1h{start - end}z" for start, end in spans)
