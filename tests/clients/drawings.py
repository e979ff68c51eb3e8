"""Read a QR code that was drawn with characters, as a camera would read it from the screen."""

import zxingcpp
from PIL import Image

SCALE = 4
# Which halves of a character cell have ink.
CELLS = {"█": (True, True), "▀": (True, False), "▄": (False, True), " ": (False, False)}


def scan(lines: list[str], *, ink_is_dark: bool) -> str:
    """The text of a code drawn with half blocks."""
    width = max(len(line) for line in lines)
    rows = [[CELLS[each][half] for each in line.ljust(width)] for line in lines for half in (0, 1)]
    return _decode(rows, ink_is_dark=ink_is_dark)


def scan_ascii(lines: list[str]) -> str:
    """The text of a code drawn with two characters per module, light ink on dark ground."""
    width = max(len(line) for line in lines)
    rows = [[each == "#" for each in line.ljust(width)[::2]] for line in lines]
    return _decode(rows, ink_is_dark=False)


def _decode(rows: list[list[bool]], *, ink_is_dark: bool) -> str:
    picture = Image.new("L", (len(rows[0]), len(rows)), 255)
    for y, row in enumerate(rows):
        for x, ink in enumerate(row):
            picture.putpixel((x, y), 0 if ink == ink_is_dark else 255)
    larger = picture.resize((picture.width * SCALE, picture.height * SCALE), Image.Resampling.NEAREST)
    # Only dark modules on light ground, as the strictest apps read.
    found = zxingcpp.read_barcodes(larger, try_invert=False)
    return found[0].text
