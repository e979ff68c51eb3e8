"""A word instead of a symbol: what the picture of a code shows once the code can no longer be paid."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import hypot

from qrcodes import letters, png_file
from qrcodes.letters import Point, Stroke, arc
from qrcodes.png_file import Colour

SIZE = 540
"""Pixels on a side, about what a symbol's picture measures."""
MARGIN = 24
CORNER = 36
ICON_CENTRE: Point = (270, 196)
ICON_RADIUS = 76
WORD_MIDDLE = 378
WORD_WIDTH = 392
MAX_UNIT = 15.0
PEN = 14.0
FRAME_PEN = 6.0
LETTER_PEN = 1.1
"""In the letters' own unit, so that long words stay as bold as short ones."""
SHADES = 16


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours, and what is drawn in the circle, relative to its centre and as parts of its radius."""

    ink: Colour
    paper: Colour
    icon: Stroke


THEMES = {
    "PAID": Theme((21, 122, 71), (241, 250, 245), ((-0.42, 0.04), (-0.12, 0.34), (0.44, -0.28))),
    "EXPIRED": Theme((178, 52, 44), (253, 244, 243), ((0, -0.56), (0, 0.04), (0.38, 0.26))),
}
DEFAULT_THEME = Theme((82, 92, 107), (245, 246, 248), ((-0.45, 0), (0.45, 0)))

Pen = tuple[float, Stroke]


@lru_cache(maxsize=8)
def png(word: str) -> bytes:
    """A palette PNG of the word. Raises ValueError unless it is 1 to 10 letters A to Z."""
    look = _theme(word)
    shades = [bytearray(SIZE) for _ in range(SIZE)]
    for pen, stroke in _drawing(word, look):
        for start, end in pairwise(stroke):
            _draw(shades, start, end, pen)
    rows = [bytes(row[x] << 4 | row[x + 1] for x in range(0, SIZE, 2)) for row in shades]
    return png_file.palette(SIZE, rows, _blends(look))


@lru_cache(maxsize=8)
def svg(word: str) -> bytes:
    """The same picture as SVG: strokes only, no text that needs a font. Raises ValueError likewise."""
    look = _theme(word)
    paths = "".join(
        f'<path stroke-width="{pen:g}" d="M{" ".join(f"{x:.1f},{y:.1f}" for x, y in stroke)}"/>'
        for pen, stroke in _drawing(word, look)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{SIZE}" height="{SIZE}" viewBox="0 0 {SIZE} {SIZE}"'
        f' role="img" aria-label="{word}"><title>{word}</title>'
        f'<rect width="{SIZE}" height="{SIZE}" fill="{_hex(look.paper)}"/>'
        f'<g fill="none" stroke="{_hex(look.ink)}" stroke-linecap="round" stroke-linejoin="round">'
        f"{paths}</g></svg>"
    ).encode()


def _theme(word: str) -> Theme:
    if not re.fullmatch("[A-Z]{1,10}", word):
        raise ValueError("a notice is one word of 1 to 10 letters A to Z")
    return THEMES.get(word, DEFAULT_THEME)


def _drawing(word: str, look: Theme) -> Iterator[Pen]:
    yield FRAME_PEN, _frame()
    yield PEN, arc(ICON_CENTRE, (ICON_RADIUS, ICON_RADIUS), 0, 360, 64)
    yield PEN, _placed(look.icon, ICON_CENTRE, ICON_RADIUS)
    unit = min(MAX_UNIT, WORD_WIDTH / letters.width(word))
    corner = (SIZE - letters.width(word) * unit) / 2, WORD_MIDDLE - letters.CAP_HEIGHT * unit / 2
    for stroke in letters.strokes(word):
        yield unit * LETTER_PEN, _placed(stroke, corner, unit)


def _frame() -> Stroke:
    near, far = MARGIN + CORNER, SIZE - MARGIN - CORNER
    corners = (((far, near), -90), ((far, far), 0), ((near, far), 90), ((near, near), 180))
    points = [
        point for centre, start in corners for point in arc(centre, (CORNER, CORNER), start, start + 90)
    ]
    return (*points, points[0])


def _placed(stroke: Iterable[Point], origin: Point, unit: float) -> Stroke:
    return tuple((origin[0] + x * unit, origin[1] + y * unit) for x, y in stroke)


def _draw(shades: list[bytearray], start: Point, end: Point, pen: float) -> None:
    """Darken every pixel that a round pen covers on its way, in part at its edge."""
    reach = pen / 2 + 1
    for y in range(int(min(start[1], end[1]) - reach), int(max(start[1], end[1]) + reach) + 1):
        row = shades[y]
        for x in range(int(min(start[0], end[0]) - reach), int(max(start[0], end[0]) + reach) + 1):
            cover = pen / 2 + 0.5 - _distance((x + 0.5, y + 0.5), start, end)
            row[x] = max(row[x], int(min(max(cover, 0.0), 1.0) * (SHADES - 1)))


def _distance(point: Point, start: Point, end: Point) -> float:
    """From a point to the nearest of a straight line's points."""
    along_x, along_y = end[0] - start[0], end[1] - start[1]
    from_x, from_y = point[0] - start[0], point[1] - start[1]
    length = along_x * along_x + along_y * along_y
    part = min(max((from_x * along_x + from_y * along_y) / length, 0.0), 1.0) if length else 0.0
    return hypot(from_x - part * along_x, from_y - part * along_y)


def _blends(look: Theme) -> list[Colour]:
    """From paper to ink in even steps, one for each shade."""
    return [_blend(look, step / (SHADES - 1)) for step in range(SHADES)]


def _blend(look: Theme, part: float) -> Colour:
    red, green, blue = (round(p + (i - p) * part) for p, i in zip(look.paper, look.ink, strict=True))
    return red, green, blue


def _hex(colour: Colour) -> str:
    return "#" + bytes(colour).hex()
