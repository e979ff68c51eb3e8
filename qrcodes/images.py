"""Pictures of a code: its payload as a QR symbol, or a word where there is nothing left to scan. Pure.

Source: ISO/IEC 18004, error correction M with a quiet zone of four modules.
"""

from itertools import groupby

from qrcode.constants import ERROR_CORRECT_M
from qrcode.main import QRCode

from qrcodes import png_file, status_images

QUIET_ZONE = 4
MIN_WIDTH = 512
MASK = 6
"""Trying all eight masks costs 85 % of the time and any of them decodes; this one scores best on average."""

Matrix = list[list[bool]]


def png(payload: str) -> bytes:
    """A black and white PNG, at least 512 pixels wide, whole pixels to a module."""
    matrix = _matrix(payload)
    scale = _scale(matrix)
    rows = [row for line in matrix for row in [_row(line, scale)] * scale]
    return png_file.grayscale(scale * len(matrix), rows)


def svg(payload: str) -> bytes:
    """An SVG of the same size: one white square, one black path of a rectangle for each run of modules."""
    matrix = _matrix(payload)
    size, width = len(matrix), _scale(matrix) * len(matrix)
    dark = "".join(_runs(y, line) for y, line in enumerate(matrix))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{width}"'
        f' viewBox="0 0 {size} {size}" shape-rendering="crispEdges">'
        f'<rect width="{size}" height="{size}" fill="#fff"/><path d="{dark}"/></svg>'
    ).encode()


def status_png(word: str) -> bytes:
    """The word as a PNG that holds no symbol. Raises ValueError unless it is 1 to 10 letters A to Z."""
    return status_images.png(word)


def status_svg(word: str) -> bytes:
    """The word as an SVG that holds no symbol. Raises ValueError unless it is 1 to 10 letters A to Z."""
    return status_images.svg(word)


def _matrix(payload: str) -> Matrix:
    """True for dark, the quiet zone included."""
    symbol = QRCode(error_correction=ERROR_CORRECT_M, border=QUIET_ZONE, mask_pattern=MASK)
    symbol.add_data(payload)
    matrix: Matrix = symbol.get_matrix()
    return matrix


def _scale(matrix: Matrix) -> int:
    return -(-MIN_WIDTH // len(matrix))


def _row(line: list[bool], scale: int) -> bytes:
    """A line of modules as pixels, eight to a byte and the last byte filled up with white."""
    bits = "".join(("0" if dark else "1") * scale for dark in line)
    bits += "1" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def _runs(y: int, line: list[bool]) -> str:
    path, x = "", 0
    for dark, run in groupby(line):
        length = len(list(run))
        if dark:
            path += f"M{x} {y}h{length}v1h-{length}z"
        x += length
    return path
