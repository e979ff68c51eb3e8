"""Text as shapes, for pictures: in the fonts of our documents, so that readers need no font.

HarfBuzz places the vowels and tone marks of Thai, as it does in `core.drawing.pdf`. Import this module only
where a picture is drawn: processes that draw none should not pay for its library.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import uharfbuzz as harfbuzz

FONTS = Path(__file__).parent / "fonts"
FONT_FILES = {False: FONTS / "Sarabun-Regular.ttf", True: FONTS / "Sarabun-Bold.ttf"}
"""The file of regular and of bold letters."""
UNITS = 1000
"""Units of an em, in both fonts."""
# Parts of em above and below the baseline: a tone mark above a vowel, and a vowel below a tail.
ABOVE, BELOW = 1.35, 0.55
# A font has rules for each script. A text that begins in Latin would be placed by the rules of Latin.
_SCRIPTS = re.compile(r"(?P<Thai>[\u0e00-\u0e7f]+)|[^\u0e00-\u0e7f]+")


class Run(NamedTuple):
    """Glyphs of a line with their places, in units of the font from the start of the baseline."""

    glyphs: tuple[tuple[int, float, float], ...]
    width: float
    bold: bool


class Segment(NamedTuple):
    """A step of an outline: M (move), L (line), Q (curve) or Z (close), with its points. y grows upwards."""

    command: str
    points: tuple[float, ...]


class Mask(NamedTuple):
    """The ink of a line in pixels, a byte each. Rows go down; the first is `top` above the baseline."""

    top: int
    rows: tuple[bytes, ...]


def shape(text: str, *, bold: bool) -> Run:
    """Place the letters of one line. A letter that the font lacks becomes a box."""
    glyphs: list[tuple[int, float, float]] = []
    x = 0.0
    for part in _SCRIPTS.finditer(text):
        buffer = harfbuzz.Buffer()
        buffer.add_str(part[0])
        buffer.script, buffer.direction = part.lastgroup or "Latn", "ltr"
        harfbuzz.shape(_font(bold), buffer)
        for info, position in zip(buffer.glyph_infos, buffer.glyph_positions, strict=True):
            glyphs.append((info.codepoint, x + position.x_offset, position.y_offset))
            x += position.x_advance
    return Run(tuple(glyphs), x, bold)


def outline(run: Run) -> Iterator[Segment]:
    """The outlines of a run, in units of the font."""
    for glyph, right, up in run.glyphs:
        for command, points in _glyph_outline(glyph, run.bold):
            yield Segment(command, tuple(each + (right, up)[index % 2] for index, each in enumerate(points)))


def mask(run: Run, size: float) -> Mask:
    """Draw a run whose em has `size` pixels."""
    pen, scale = harfbuzz.RasterDraw(), size / UNITS
    top, bottom = round(ABOVE * size), round(BELOW * size)
    width = max(1, -int(-run.width * scale // 1))
    pen.extents = harfbuzz.RasterExtents(0, -bottom, width, top + bottom, width)
    for glyph, right, up in run.glyphs:
        pen.transform = (scale, 0, 0, scale, right * scale, up * scale)
        pen.draw_glyph(_font(run.bold), glyph)
    ink = pen.render().buffer  # its rows go up
    rows = [ink[at : at + width] for at in range(0, width * (top + bottom), width)]
    return Mask(top, tuple(reversed(rows)))


@lru_cache
def _font(bold: bool) -> harfbuzz.Font:
    return harfbuzz.Font(harfbuzz.Face(FONT_FILES[bold].read_bytes()))


@lru_cache(512)
def _glyph_outline(glyph: int, bold: bool) -> tuple[Segment, ...]:
    found: list[Segment] = []
    _font(bold).draw_glyph(glyph, _pen(), found)
    return tuple(found)


@lru_cache
def _pen() -> harfbuzz.DrawFuncs:
    """Collects segments. TrueType fonts have no cubic curves."""
    pen = harfbuzz.DrawFuncs()
    pen.set_move_to_func(lambda x, y, found: found.append(Segment("M", (x, y))))
    pen.set_line_to_func(lambda x, y, found: found.append(Segment("L", (x, y))))
    pen.set_quadratic_to_func(lambda cx, cy, x, y, found: found.append(Segment("Q", (cx, cy, x, y))))
    pen.set_close_path_func(lambda found: found.append(Segment("Z", ())))
    return pen
