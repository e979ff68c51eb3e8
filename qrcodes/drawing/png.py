"""A card as a PNG. A pixel is the number of a color in a palette, with shades for each ink on its paper."""

import re
from functools import lru_cache

from core import outlines
from core.qr_symbols import Matrix
from qrcodes.drawing.layout import (
    BLACK,
    CODE_SIDE,
    CODE_TOP,
    HEIGHT,
    WHITE,
    WIDTH,
    Box,
    Card,
    Color,
    Line,
)
from qrcodes.images import png_file

SHADES = 32  # of a ramp, from the paper to the ink
_INK = re.compile(rb"[^\0]+", re.DOTALL)


def draw(card: Card, size: int) -> bytes:
    """The card, `size` pixels wide. It takes 3 bytes of memory for each pixel."""
    canvas = _Canvas(size)
    for box in card.boxes:
        canvas.fill(box)
    canvas.draw_code(card.code)
    for line in card.lines:
        canvas.write(line)
    return canvas.content()


class _Canvas:
    def __init__(self, size: int) -> None:
        self._scale = size / WIDTH
        self._width, self._height = size, round(HEIGHT * self._scale)
        self._row = self._width + 1  # each row of a PNG begins with the number of its filter
        self._pixels = bytearray(self._row * self._height)
        self._palette: list[Color] = []

    def fill(self, box: Box) -> None:
        left, right = self._pixel(box.x), self._pixel(box.x + box.width)
        row = self._index(box.color) * (right - left)
        for y in range(self._pixel(box.y), self._pixel(box.y + box.height)):
            self._put(left, y, row)

    def draw_code(self, code: Matrix) -> None:
        """Whole pixels for each module, in the middle of the square of the code."""
        side = self._pixel(CODE_SIDE)
        scale = max(1, side // len(code))
        left = (self._width - scale * len(code)) // 2
        top = self._pixel(CODE_TOP) + (side - scale * len(code)) // 2
        dark, light = self._index(BLACK) * scale, self._index(WHITE) * scale
        for y, line in enumerate(code):
            row = b"".join(dark if is_dark else light for is_dark in line)
            for each in range(scale):
                self._put(left, top + y * scale + each, row)

    def write(self, line: Line) -> None:
        mask = outlines.mask(line.run, line.size * self._scale)
        left, top = self._pixel(line.x), self._pixel(line.baseline) - mask.top
        shades = self._ramp(line.ink, line.paper)
        for y, row in enumerate(mask.rows):
            # Only where ink is: marks of the next line may stand between those of this one.
            for inked in _INK.finditer(row):
                self._put(left + inked.start(), top + y, inked[0].translate(shades))

    def content(self) -> bytes:
        palette = b"".join(bytes(color) for color in self._palette)
        return png_file(self._width, self._height, self._pixels, palette)

    def _put(self, x: int, y: int, row: bytes) -> None:
        start = y * self._row + 1 + x
        self._pixels[start : start + len(row)] = row

    def _pixel(self, units: float) -> int:
        return round(units * self._scale)

    def _index(self, color: Color) -> bytes:
        if color not in self._palette:
            self._palette.append(color)
        return bytes([self._palette.index(color)])

    def _ramp(self, ink: Color, paper: Color) -> bytes:
        """The number of the color for each part of ink in 255."""
        shades = _shades(ink, paper)
        first = b"".join(self._index(shade) for shade in shades)
        return bytes(first[part * (SHADES - 1) // 255] for part in range(256))


@lru_cache
def _shades(ink: Color, paper: Color) -> tuple[Color, ...]:
    steps = [step / (SHADES - 1) for step in range(SHADES)]
    return tuple(
        Color(*(round(under + (over - under) * part) for over, under in zip(ink, paper, strict=True)))
        for part in steps
    )
