"""A card as a PDF for a printer: one page of outlines, with a bleed around it.

Sources: ISO 32000-1, sections 7.5, 8.5 and 14.11.2. `core.drawing.pdf` makes documents of A4 pages; its
library loads for half a second, which a web worker should not pay for a page without fonts.
"""

import zlib
from collections.abc import Iterator

from core.drawing import outlines
from core.drawing.outlines import UNITS, Segment
from core.drawing.qr_symbols import Matrix
from qrcodes.drawing.layout import CODE_SIDE, CODE_TOP, HEIGHT, NAVY, WIDTH, Box, Card, Color, Line

PIXELS_PER_INCH, POINTS_PER_INCH = 300, 72
BLEED = 3 / 25.4 * POINTS_PER_INCH  # 3 mm that a printer cuts off, in points


def draw(card: Card, size: int, label: str, language: str) -> bytes:
    """The card, `size` pixels of a 300th of an inch wide. `label` is the title of the document."""
    scale = size / PIXELS_PER_INCH * POINTS_PER_INCH / WIDTH
    content = zlib.compress("\n".join(_content(card, scale)).encode())
    width, height = WIDTH * scale, HEIGHT * scale
    card_box = f"[{BLEED:.2f} {BLEED:.2f} {width + BLEED:.2f} {height + BLEED:.2f}]"
    sheet = f"[0 0 {width + 2 * BLEED:.2f} {height + 2 * BLEED:.2f}]"
    return _file(
        [
            f"<</Type/Catalog/Pages 2 0 R/Lang({language})"
            "/ViewerPreferences<</DisplayDocTitle true>>>>".encode(),
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            f"<</Type/Page/Parent 2 0 R/MediaBox{sheet}/BleedBox{sheet}/CropBox{card_box}/TrimBox{card_box}"
            "/Resources<<>>/Contents 4 0 R>>".encode(),
            f"<</Length {len(content)}/Filter/FlateDecode>>stream\n".encode() + content + b"\nendstream",
            f"<</Title<{label.encode('utf-16').hex()}>>>".encode(),
        ]
    )


def _file(objects: list[bytes]) -> bytes:
    """The objects, numbered from 1: the first is the catalog, the last has the properties."""
    made, places = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"), []
    for number, each in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%b\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    count = len(objects) + 1
    trailer = b"trailer<</Size %d/Root 1 0 R/Info %d 0 R>>\nstartxref\n%d\n%%%%EOF\n"
    start = len(made)
    made += b"xref\n0 %d\n0000000000 65535 f \n" % count + table
    return bytes(made) + trailer % (count, count - 1, start)


def _content(card: Card, scale: float) -> Iterator[str]:
    """The page, with y downwards as in the layout."""
    yield f"{scale:.5f} 0 0 {-scale:.5f} {BLEED:.2f} {HEIGHT * scale + BLEED:.2f} cm"
    edge = BLEED / scale
    yield _box(Box(-edge, -edge, WIDTH + 2 * edge, HEIGHT + 2 * edge, NAVY))
    yield from map(_box, card.boxes)
    yield from _code(card.code)
    for line in card.lines:
        yield from _line(line)


def _box(box: Box) -> str:
    return f"{_ink(box.color)} {box.x:.2f} {box.y:.2f} {box.width:.2f} {box.height:.2f} re f"


def _code(code: Matrix) -> Iterator[str]:
    """One path, in black ink alone."""
    side, left = CODE_SIDE / len(code), (WIDTH - CODE_SIDE) / 2
    yield f"q {side:.5f} 0 0 {side:.5f} {left:g} {CODE_TOP:g} cm 0 g"
    for y, line in enumerate(code):
        yield from (f"{x} {y} 1 1 re" for x, is_dark in enumerate(line) if is_dark)
    yield "f Q"


def _line(line: Line) -> Iterator[str]:
    scale = line.size / UNITS
    yield f"q {scale:.5f} 0 0 {-scale:.5f} {line.x:.2f} {line.baseline:g} cm {_ink(line.ink)}"
    at = (0.0, 0.0)
    for segment in outlines.outline(line.run):
        yield _step(segment, at)
        at = segment.points[-2:] if segment.points else at  # type: ignore[assignment]
    yield "f Q"


def _step(segment: Segment, at: tuple[float, float]) -> str:
    """PDF has cubic curves only: both handles are two thirds of the way to the one of a quadratic curve."""
    command, points = segment
    if command == "Q":
        middle, end = points[:2], points[2:]
        points = (*_toward(at, middle), *_toward(end, middle), *end)
    operator = {"M": "m", "L": "l", "Q": "c", "Z": "h"}[command]
    return " ".join([*(f"{each:.1f}" for each in points), operator])


def _toward(start: tuple[float, ...], end: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(here + (there - here) * 2 / 3 for here, there in zip(start, end, strict=True))


def _ink(color: Color) -> str:
    if len(set(color)) == 1:
        return f"{color.red / 255:g} g"
    return " ".join(f"{part / 255:.4f}" for part in color) + " rg"
