"""Pictures of a QR code: its payload as a symbol, or a word if the code can no longer be paid.

Sources: ISO/IEC 18004, error correction M with a quiet zone of four modules; PNG Specification (Third
Edition), sections 5 and 11. Drawing without an image library takes a fifth of the time.
"""

import struct
import zlib
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from qrcode.constants import ERROR_CORRECT_M
from qrcode.main import QRCode

QUIET_ZONE = 4
MIN_WIDTH = 512
# To try all eight masks takes 85 % of the time. Any mask can be read; this one has the best average score.
MASK = 6
# Files paid.png, paid.svg, expired.png and expired.svg. The letters are lines, so no font is needed to show
# them.
STATUS_IMAGES = Path(__file__).parent / "status_images"

# Browsers that show a code ask for its picture again and again. A picture takes 2 ms and has 2 kB.
CACHED_PICTURES = 512

Matrix = list[list[bool]]


@lru_cache(CACHED_PICTURES)
def png(payload: str) -> bytes:
    """Draw a black and white PNG, at least 512 pixels wide, with whole pixels for each module."""
    matrix = modules(payload)
    scale = _scale(matrix)
    width = scale * len(matrix)
    pixels = b"".join((b"\0" + _row(line, scale)) * scale for line in matrix)  # 0: the row is not filtered
    return png_file(width, width, pixels)


@lru_cache(CACHED_PICTURES)
def svg(payload: str) -> bytes:
    """Draw an SVG of the same size: one black path with a rectangle for each run of modules."""
    matrix = modules(payload)
    size, width = len(matrix), _scale(matrix) * len(matrix)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{width}"'
        f' viewBox="0 0 {size} {size}" shape-rendering="crispEdges">'
        f'<rect width="{size}" height="{size}" fill="#fff"/><path d="{svg_runs(matrix)}"/></svg>'
    ).encode()


@lru_cache
def status_image(word: str, image_format: str) -> bytes:
    """Read the picture of `paid` or `expired` as `png` or `svg`."""
    return (STATUS_IMAGES / f"{word}.{image_format}").read_bytes()


def png_file(width: int, height: int, rows: bytes | bytearray, palette: bytes = b"") -> bytes:
    """A PNG of these rows: a bit for each pixel, or with a palette a byte. Each row begins with a 0."""
    depth, kind = (8, 3) if palette else (1, 0)
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    colors = [(b"PLTE", palette)] if palette else []
    chunks = [(b"IHDR", header), *colors, (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def svg_runs(matrix: Matrix) -> str:
    """The dark modules as a path of an SVG, with a rectangle for each run."""
    return "".join(_runs(y, line) for y, line in enumerate(matrix))


def modules(payload: str) -> Matrix:
    """The modules with the quiet zone; True is dark."""
    symbol = QRCode(error_correction=ERROR_CORRECT_M, border=QUIET_ZONE, mask_pattern=MASK)
    symbol.add_data(payload)
    matrix: Matrix = symbol.get_matrix()
    return matrix


def _scale(matrix: Matrix) -> int:
    return -(-MIN_WIDTH // len(matrix))


def _row(line: list[bool], scale: int) -> bytes:
    """A line of modules as pixels, eight to a byte; the last byte ends with white."""
    bits = "".join(("0" if dark else "1") * scale for dark in line)
    bits += "1" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def _chunk(name: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(name + data)
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", checksum)


def _runs(y: int, line: list[bool]) -> str:
    path, x = "", 0
    for dark, run in groupby(line):
        length = len(list(run))
        if dark:
            path += f"M{x} {y}h{length}v1h-{length}z"
        x += length
    return path
