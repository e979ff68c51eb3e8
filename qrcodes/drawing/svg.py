"""A card as an SVG of outlines: it needs no font."""

from xml.sax.saxutils import escape

from core import outlines
from core.outlines import UNITS
from core.qr_symbols import Matrix
from qrcodes.drawing.layout import CODE_SIDE, CODE_TOP, HEIGHT, WIDTH, Box, Card, Color, Line
from qrcodes.images import svg_runs


def draw(card: Card, size: int, label: str) -> bytes:
    """The card, `size` pixels wide. `label` is for screen readers."""
    boxes = "".join(map(_box, card.boxes))
    lines = "".join(map(_line, card.lines))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{size}"'
        f' height="{round(size * HEIGHT / WIDTH)}" viewBox="0 0 {WIDTH:g} {HEIGHT:g}">'
        f"<title>{escape(label)}</title>{boxes}{_code(card.code)}{lines}</svg>"
    ).encode()


def _box(box: Box) -> str:
    return (
        f'<rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}"'
        f' fill="{_hex(box.color)}"/>'
    )


def _code(code: Matrix) -> str:
    scale = CODE_SIDE / len(code)
    place = f"translate({(WIDTH - CODE_SIDE) / 2:g} {CODE_TOP:g}) scale({scale:g})"
    return f'<path shape-rendering="crispEdges" transform="{place}" d="{svg_runs(code)}"/>'


def _line(line: Line) -> str:
    scale = line.size / UNITS
    place = f"translate({line.x:.2f} {line.baseline:g}) scale({scale:.5f} {-scale:.5f})"
    steps = "".join(
        command + " ".join(f"{each:g}" for each in points) for command, points in outlines.outline(line.run)
    )
    return f'<path fill="{_hex(line.ink)}" transform="{place}" d="{steps}"/>'


def _hex(color: Color) -> str:
    return "#" + bytes(color).hex()
