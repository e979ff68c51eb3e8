"""Draw a QR code in a terminal. Two rows of modules share one line of half blocks."""

from typing import Any

import zxingcpp
from rich.console import Console
from rich.text import Text

HALVES = {(True, True): "█", (True, False): "▀", (False, True): "▄", (False, False): " "}
INK = "#000000 on #ffffff"  # rich takes the nearest colours of the terminal


def modules(text: str) -> list[list[bool]]:
    """The dark modules, with the quiet zone of four that scanners need."""
    symbol = zxingcpp.create_barcode(text, zxingcpp.BarcodeFormat.QRCode, ec_level="M")
    picture: Any = symbol.to_image()  # a buffer of grey values
    rows: Any = memoryview(picture).tolist()
    return [[value < 128 for value in row] for row in rows]


def draw(text: str, console: Console, *, invert: bool = False) -> Text:
    """A drawing for this terminal. Without colour it is for light text on dark ground, unless `invert`."""
    rows = modules(text)
    has_colour = console.color_system is not None and not console.no_color
    if not _can_print_blocks(console):
        return Text("\n".join(_ascii(row) for row in rows))
    inked = has_colour or invert
    lines = [_line(upper, lower, inked) for upper, lower in _pairs(rows)]
    return Text("\n".join(lines), style=INK if has_colour else "", no_wrap=True)


def _pairs(rows: list[list[bool]]) -> list[tuple[list[bool], list[bool]]]:
    light = [[False] * len(rows[0])] * (len(rows) % 2)
    padded = [*rows, *light]
    return list(zip(padded[::2], padded[1::2], strict=True))


def _line(upper: list[bool], lower: list[bool], inked: bool) -> str:
    # On dark ground without colour, ink is light: blocks stand for the light modules.
    return "".join(HALVES[top == inked, bottom == inked] for top, bottom in zip(upper, lower, strict=True))


def _ascii(row: list[bool]) -> str:
    return "".join("  " if dark else "##" for dark in row)


def _can_print_blocks(console: Console) -> bool:
    return (console.encoding or "").lower().replace("-", "") in {"utf8", "utf16", "utf32"}
