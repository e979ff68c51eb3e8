"""What stands where on a card. The unit is a thousandth of its width; y grows downwards.

The frame is ours: a dark band above the code, as on other Thai QR frames, without the marks of banks and of
PromptPay. The card has the proportions of A6, so it prints on a sheet without margins.
"""

import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

from core.drawing import outlines
from core.drawing.outlines import UNITS, Run
from core.drawing.qr_symbols import Matrix, modules
from qrcodes.drawing import Texts

WIDTH, HEIGHT = 1000.0, 1414.0
BAND, FRAME, TEST_BAND = 160.0, 14.0, 64.0
MARGIN = 60.0
CODE_SIDE, CODE_TOP = 770.0, 226.0
"""The square of the code, with its quiet zone."""
RECEIPT_UP = 620.0
SMALL_NAME = 44.0  # the smallest letters of the shop's name, in units an em


class Color(NamedTuple):
    red: int
    green: int
    blue: int


WHITE, BLACK = Color(255, 255, 255), Color(0, 0, 0)
NAVY, SOFT, AMBER = Color(18, 53, 91), Color(70, 84, 96), Color(138, 90, 0)


@dataclass(frozen=True, slots=True)
class Box:
    x: float
    y: float
    width: float
    height: float
    color: Color


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text around the middle of the card."""

    run: Run
    size: float
    baseline: float
    ink: Color

    @property
    def x(self) -> float:
        return (WIDTH - self.run.width * self.size / UNITS) / 2


@dataclass(frozen=True, slots=True)
class Card:
    """The shapes of a card, from the lowest to the topmost, and its code."""

    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    code: Matrix  # empty on a receipt


def arrange(texts: Texts, payload: str) -> Card:
    boxes = [
        Box(0, 0, WIDTH, HEIGHT, NAVY),
        Box(FRAME, BAND, WIDTH - 2 * FRAME, HEIGHT - BAND - FRAME, WHITE),
    ]
    lines = [_line(texts.title, 76, 108, ink=WHITE, bold=True)]
    if texts.test_mark:
        boxes.append(Box(FRAME, BAND, WIDTH - 2 * FRAME, TEST_BAND, AMBER))
        lines.append(_line(texts.test_mark, 38, BAND + 47, ink=WHITE, bold=True))
    # A receipt has no code, and begins higher.
    up = 0 if payload else RECEIPT_UP
    lines += _shop(texts.shop, up)
    lines.append(_line(texts.amount, 96, 1206 - up, bold=True))
    if texts.reference:
        lines.append(_line(texts.reference, 40, 1274 - up, ink=SOFT))
    lines += [_line(fact, 44, 800 + 80 * place) for place, fact in enumerate(texts.facts)]
    lines.append(_line(texts.note, 40, 1340, ink=SOFT))
    return Card(tuple(boxes), tuple(lines), modules(payload) if payload else [])


def _shop(name: str, up: float) -> list[Line]:
    """The name on one line, or on two if it is long."""
    first = _line(name, 60, 1084 - up, bold=True, smallest=SMALL_NAME)
    if first.run.width == _shaped(name, bold=True).width:
        return [first]
    # The second line begins behind a space, else between two letters.
    end = _longest(name, SMALL_NAME, "", bold=True)
    space = name.rfind(" ", 0, end + 1)
    at = space if space > 0 else end
    return [
        _line(text, SMALL_NAME, baseline - up, bold=True, smallest=SMALL_NAME)
        for text, baseline in ((name[:at], 1052), (name[at:], 1112))
    ]


def _line(
    text: str, size: float, baseline: float, *, ink: Color = BLACK, bold: bool = False, smallest: float = 24
) -> Line:
    """The text, made smaller until it fits. What does not fit in the smallest size is cut."""
    run = _shaped(text, bold=bold)
    if not _fits(run, smallest):
        end = _longest(text, smallest, "…", bold=bold)
        run = _shaped(text[:end].rstrip() + "…", bold=bold)
    return Line(run, min(size, (WIDTH - 2 * MARGIN) * UNITS / max(1.0, run.width)), baseline, ink)


def _longest(text: str, size: float, tail: str, *, bold: bool) -> int:
    """How many characters fit before `tail`. Vowels and tone marks stay with their consonant."""
    end = len(text)
    while end > 1 and not (_may_break(text, end) and _fits(_shaped(text[:end] + tail, bold=bold), size)):
        end -= 1
    return end


def _may_break(text: str, at: int) -> bool:
    if at == len(text):
        return True
    follows = unicodedata.category(text[at]) == "Mn" or text[at] in "ะาำๆฯ"
    return not follows and text[at - 1] not in "เแโใไ"


def _fits(run: Run, size: float) -> bool:
    return run.width * size / UNITS <= WIDTH - 2 * MARGIN


def _shaped(text: str, *, bold: bool) -> Run:
    return outlines.shape(" ".join(text.split()), bold=bold)
