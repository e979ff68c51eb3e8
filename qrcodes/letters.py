"""Capital letters as pen strokes, so that a picture of a word needs no font on the machine."""

from collections.abc import Iterator
from math import cos, radians, sin

Point = tuple[float, float]
Stroke = tuple[Point, ...]

CAP_HEIGHT = 6.0
GAP = 2.1
"""Between letters. All lengths here are sixths of a capital's height."""


def arc(centre: Point, radii: Point, start: float, end: float, steps: int = 12) -> Stroke:
    """Part of an ellipse. Degrees grow clockwise from the right, as y grows downwards."""
    angles = [radians(start + (end - start) * step / steps) for step in range(steps + 1)]
    return tuple((centre[0] + radii[0] * cos(angle), centre[1] + radii[1] * sin(angle)) for angle in angles)


STEM: Stroke = ((0, 0), (0, 6))
BOWL: Stroke = ((0, 0), *arc((1.9, 1.7), (1.7, 1.7), -90, 90), (0, 3.4))
ROUND: Stroke = arc((2.7, 3), (2.7, 3), 0, 360, 32)
OPEN_ROUND: Stroke = arc((2.7, 3), (2.7, 3), -46, -314, 24)

LETTERS: dict[str, tuple[Stroke, ...]] = {
    "A": (((-0.5, 6), (1.8, 0), (4.1, 6)), ((0.35, 3.9), (3.25, 3.9))),
    "B": (
        STEM,
        ((0, 0), *arc((1.8, 1.4), (1.4, 1.4), -90, 90), (0, 2.8)),
        ((0, 2.8), *arc((2, 4.4), (1.6, 1.6), -90, 90), (0, 6)),
    ),
    "C": (OPEN_ROUND,),
    "D": (STEM, ((0, 0), *arc((1.4, 3), (2.8, 3), -90, 90, 16), (0, 6))),
    "E": (((3.3, 0), (0, 0), (0, 6), (3.3, 6)), ((0, 2.9), (2.8, 2.9))),
    "F": (((3.3, 0), (0, 0), (0, 6)), ((0, 2.9), (2.8, 2.9))),
    "G": (OPEN_ROUND, ((3.1, 3.3), (5.2, 3.3), (4.6, 5.1))),
    "H": (STEM, ((4, 0), (4, 6)), ((0, 2.9), (4, 2.9))),
    "I": (STEM,),
    "J": (((2.8, 0), *arc((1.4, 4.5), (1.4, 1.5), 0, 170)),),
    "K": (STEM, ((3.6, 0), (0, 3.7)), ((1.4, 2.3), (3.9, 6))),
    "L": (((0, 0), (0, 6), (3.1, 6)),),
    "M": (((0, 6), (0, 0), (2.5, 3.9), (5, 0), (5, 6)),),
    "N": (((0, 6), (0, 0), (4.1, 6), (4.1, 0)),),
    "O": (ROUND,),
    "P": (STEM, BOWL),
    "Q": (ROUND, ((3.4, 4.3), (5.3, 6.2))),
    "R": (STEM, BOWL, ((1.9, 3.4), (3.8, 6))),
    "S": ((*arc((1.9, 1.5), (1.7, 1.5), -25, -270), *arc((1.9, 4.5), (1.9, 1.5), -90, 155)),),
    "T": (((0, 0), (4.2, 0)), ((2.1, 0), (2.1, 6))),
    "U": (((0, 0), *arc((2.1, 3.9), (2.1, 2.1), 180, 0), (4.2, 0)),),
    "V": (((0, 0), (2.3, 6), (4.6, 0)),),
    "W": (((0, 0), (1.7, 6), (3.4, 0.8), (5.1, 6), (6.8, 0)),),
    "X": (((0, 0), (4, 6)), ((4, 0), (0, 6))),
    "Y": (((0, 0), (2.2, 3.1), (4.4, 0)), ((2.2, 3.1), (2.2, 6))),
    "Z": (((0, 0), (3.9, 0), (0, 6), (3.9, 6)),),
}


def width(word: str) -> float:
    return sum(map(_advance, word)) - GAP


def strokes(word: str) -> Iterator[Stroke]:
    """The strokes of a word of A to Z; its top left corner is at (0, 0)."""
    left = 0.0
    for letter in word:
        for stroke in LETTERS[letter]:
            yield tuple((left + x, y) for x, y in stroke)
        left += _advance(letter)


def _advance(letter: str) -> float:
    return max(x for stroke in LETTERS[letter] for x, _ in stroke) + GAP
