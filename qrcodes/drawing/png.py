"""A card as a PNG. HarfBuzz draws the ink of each line, and Pillow puts it on the card."""

import io

from PIL import Image

from core.drawing import outlines
from core.drawing.qr_symbols import Matrix
from qrcodes.drawing.layout import CODE_SIDE, CODE_TOP, HEIGHT, WIDTH, Card


def _paste_code(picture: Image.Image, rows: Matrix, scale: float) -> None:
    """Whole pixels for each module, in the middle of the square of the code."""
    modules, square = len(rows), round(CODE_SIDE * scale)
    side = max(1, square // modules) * modules
    code = Image.frombytes("L", (modules, modules), b"".join(rows)).point([255, 0] * 128)
    place = (picture.width - side) // 2, round(CODE_TOP * scale) + (square - side) // 2
    picture.paste(code.resize((side, side), Image.Resampling.NEAREST), place)


def draw(card: Card, size: int) -> bytes:
    """The card, `size` pixels wide."""
    scale = size / WIDTH
    picture = Image.new("RGB", (size, round(HEIGHT * scale)))
    for box in card.boxes:
        corners = (box.x, box.y, box.x + box.width, box.y + box.height)
        picture.paste(box.color, tuple(round(each * scale) for each in corners))  # type: ignore[arg-type]
    if card.code:
        _paste_code(picture, card.code, scale)
    for line in card.lines:
        mask = outlines.mask(line.run, line.size * scale)
        ink = Image.frombytes("L", (len(mask.rows[0]), len(mask.rows)), b"".join(mask.rows))
        picture.paste(line.ink, (round(line.x * scale), round(line.baseline * scale) - mask.top), ink)
    file = io.BytesIO()
    # 256 colors make half of the bytes.
    picture.quantize(method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(file, "PNG")
    return file.getvalue()
