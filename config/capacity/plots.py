"""Plots as SVG inside the page. Colours and fonts come from the style of the page, for light and dark."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from django.utils.safestring import SafeString, mark_safe

# The size in the coordinates of a plot. At 390 pixels of a telephone one of them is about one pixel.
WIDTH, HEIGHT = 360, 210
LEFT, RIGHT, TOP, BOTTOM = 44, 8, 22, 32
COLOURS = 7
TICKS = 4
MOST_DOTS = 12
Point = tuple[float, float]


@dataclass(frozen=True)
class Line:
    name: str
    points: Sequence[Point]


@dataclass(frozen=True)
class Frame:
    """The axes: the largest values, and their labels. y starts at 0."""

    title: str
    x_label: str
    y_label: str
    x_ticks: Sequence[tuple[float, str]]
    most_x: float
    most_y: float

    def x(self, value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (value / self.most_x if self.most_x else 0)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value / self.most_y if self.most_y else 0)

    def path(self, points: Sequence[Point]) -> str:
        return " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)


def lines(frame: Frame, drawn: Sequence[Line]) -> SafeString:
    """Lines with a dot at each point."""

    def marks() -> Iterator[str]:
        for number, line in enumerate(drawn):
            yield f'<polyline class="line c{number % COLOURS}" points="{frame.path(line.points)}"/>'
            for x, y in line.points if len(line.points) <= MOST_DOTS else ():
                place = f'cx="{frame.x(x):.1f}" cy="{frame.y(y):.1f}"'
                yield f'<circle class="dot c{number % COLOURS}" {place} r="3"/>'

    return _picture(frame, marks(), [line.name for line in drawn])


def areas(frame: Frame, drawn: Sequence[Line], marks: Sequence[tuple[float, str]] = ()) -> SafeString:
    """Areas on top of each other. All lines have the same x. marks: vertical lines with a number."""

    def shapes() -> Iterator[str]:
        below = [0.0] * len(drawn[0].points)
        for number, line in enumerate(drawn):
            above = [low + y for low, (_, y) in zip(below, line.points, strict=True)]
            xs = [x for x, _ in line.points]
            outline = [*zip(xs, above, strict=True), *reversed([*zip(xs, below, strict=True)])]
            yield f'<polygon class="area c{number % COLOURS}" points="{frame.path(outline)}"/>'
            below = above
        for x, text in marks:
            at = f"{frame.x(x):.1f}"
            yield f'<line class="mark" x1="{at}" x2="{at}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
            yield f'<text class="small" x="{frame.x(x) + 2:.1f}" y="{TOP - 3}">{escape(text)}</text>'

    return _picture(frame, shapes(), [line.name for line in drawn])


def round_up(value: float) -> float:
    """The next of 1, 2, 4, 5 and 10 times a power of ten, so that ticks are short numbers."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 4, 5, 10) if step * power >= value)


def _picture(frame: Frame, marks: Iterator[str], names: Sequence[str]) -> SafeString:
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(frame.title)}">',
        *_axes(frame),
        *marks,
        "</svg>",
        *_legend(names),
    ]
    return mark_safe("".join(parts))  # noqa: S308 (numbers, and texts that are escaped)


def _axes(frame: Frame) -> Iterator[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for tick in range(TICKS + 1):
        value = frame.most_y * tick / TICKS
        y = f"{frame.y(value):.1f}"
        yield f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y}" y2="{y}"/>'
        yield f'<text class="right" x="{LEFT - 4}" y="{frame.y(value) + 3:.1f}">{_number(value)}</text>'
    for value, text in frame.x_ticks:
        yield f'<text class="middle" x="{frame.x(value):.1f}" y="{bottom + 13}">{escape(text)}</text>'
    yield f'<text x="2" y="11">{escape(frame.y_label)}</text>'
    yield f'<text class="right" x="{right}" y="{HEIGHT - 4}">{escape(frame.x_label)}</text>'


def _legend(names: Sequence[str]) -> Iterator[str]:
    if len(names) > 1:
        yield '<p class="legend">'
        for number, name in enumerate(names):
            yield f'<span><i class="c{number % COLOURS}"></i>{escape(name)}</span> '
        yield "</p>"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:g}"
