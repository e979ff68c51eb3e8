"""What a phone sees: pictures read back by a decoder that is not ours."""

import io
import random
import re
import string
import struct
from itertools import pairwise
from xml.etree import ElementTree

import pytest
import zxingcpp
from PIL import Image, ImageChops, ImageDraw

from core import money, thaiqr
from qrcodes import images

SEED = 20_190_417
REFERENCES = string.ascii_uppercase + string.digits
SVG = "{http://www.w3.org/2000/svg}"
RUN = re.compile(r"M(\d+) (\d+)h(\d+)v1h-(\d+)z")


def some_payloads(count: int) -> list[str]:
    """Codes of our own from the shortest to the longest, the same ones in every run."""
    draw = random.Random(SEED)
    return [bill(draw, 1 + number % 20) for number in range(count)]


def bill(draw: random.Random, size: int) -> str:
    def reference() -> str:
        return "".join(draw.choices(REFERENCES, k=size))

    return thaiqr.bill_payment(
        biller_id="".join(draw.choices(string.digits, k=15)),
        reference1=reference(),
        reference2=draw.choice([None, reference()]),
        reference3=draw.choice([None, reference()]),
        amount=draw.randint(money.MIN_AMOUNT, money.MAX_AMOUNT),
        bank_code=draw.choice([None, "004"]),
        city=draw.choice([None, "BANGKOK"]),
    )


def scanned(image: Image.Image) -> list[str]:
    """QR symbols only: now and then rows of one pass for a short ITF barcode, which has no checksum."""
    only = zxingcpp.BarcodeFormats([zxingcpp.BarcodeFormat.QRCode])
    return [code.text for code in zxingcpp.read_barcodes(image, formats=only)]


def opened(png: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(png))
    image.load()
    return image


def rasterised(svg: bytes) -> Image.Image:
    """Paint an SVG's squares and runs, ten pixels to a module."""
    root = ElementTree.fromstring(svg)
    size = int(root.attrib["viewBox"].split()[2])
    image = Image.new("L", (size * 10, size * 10), 128)
    pen = ImageDraw.Draw(image)
    for square in root.iter(f"{SVG}rect"):
        assert square.attrib["fill"] == "#fff"
        pen.rectangle(
            (0, 0, int(square.attrib["width"]) * 10 - 1, int(square.attrib["height"]) * 10 - 1), 255
        )
    for path in root.iter(f"{SVG}path"):
        assert not RUN.sub("", path.attrib["d"]), "a path of whole runs only"
        for run in RUN.finditer(path.attrib["d"]):
            x, y, right, back = (int(number) for number in run.groups())
            assert right == back
            pen.rectangle((x * 10, y * 10, (x + right) * 10 - 1, y * 10 + 9), 0)
    return image


@pytest.mark.slow
def test_every_png_is_read_back_to_the_character() -> None:
    for number, payload in enumerate(some_payloads(300)):
        assert scanned(opened(images.png(payload))) == [payload], f"seed {SEED}, payload {number}"


@pytest.mark.slow
def test_every_svg_is_read_back_to_the_character() -> None:
    for number, payload in enumerate(some_payloads(100)):
        assert scanned(rasterised(images.svg(payload))) == [payload], f"seed {SEED}, payload {number}"


@pytest.mark.parametrize("size", [1, 100, 512])
def test_text_of_any_length_a_payload_can_have_is_read_back(size: int) -> None:
    text = "a" * size
    assert scanned(opened(images.png(text))) == [text]


@pytest.mark.slow
def test_a_png_is_black_and_white_and_wide_enough_for_print() -> None:
    for payload in some_payloads(40):
        image = opened(images.png(payload))
        assert image.mode == "1"
        assert image.width == image.height >= 512


@pytest.mark.slow
def test_a_symbol_stands_in_four_modules_of_white() -> None:
    for payload in some_payloads(40):
        image = opened(images.png(payload)).convert("L")
        left, top, right, bottom = image.point(lambda level: 255 - level).getbbox() or (0, 0, 0, 0)
        module = finder_width(image, left, top) / 7
        assert (left, top) == (4 * module, 4 * module)
        assert (image.width - right, image.height - bottom) == (4 * module, 4 * module)


def finder_width(image: Image.Image, left: int, top: int) -> int:
    """The dark run that starts a symbol is its finder pattern, seven modules wide."""
    x = left
    while image.getpixel((x, top)) == 0:
        x += 1
    return x - left


def test_a_symbol_corrects_errors_at_level_m() -> None:
    (code,) = zxingcpp.read_barcodes(opened(images.png(some_payloads(1)[0])))
    assert code.ec_level == "M"


def test_damaged_qr_code_can_be_read() -> None:
    payload = some_payloads(1)[0]
    image = opened(images.png(payload)).convert("L")
    middle = image.width // 2
    ImageDraw.Draw(image).rectangle((middle - 40, middle - 40, middle + 40, middle + 40), 255)
    assert scanned(image) == [payload]


def test_the_same_payload_gives_the_same_bytes() -> None:
    payload = some_payloads(1)[0]
    assert images.png(payload) == images.png(payload)
    assert images.svg(payload) == images.svg(payload)


@pytest.mark.parametrize("word", ["PAID", "EXPIRED", "REFUNDED", "FAILED"])
@pytest.mark.slow
def test_status_image_contains_no_qr_symbol(word: str) -> None:
    image = opened(images.status_png(word))
    assert image.width == image.height >= 512
    for size in (image.size, (270, 270)):
        assert not zxingcpp.read_barcodes(image.convert("L").resize(size)), "neither a symbol nor a barcode"


@pytest.mark.parametrize("word", ["PAID", "EXPIRED", "ABCDEFGHIJ", "KLMNOPQRST", "UVWXYZ"])
@pytest.mark.slow
def test_status_image_is_equal_in_png_and_svg(word: str) -> None:
    png = opened(images.status_png(word)).convert("L")
    svg = stroked(images.status_svg(word)).resize(png.size)
    apart = ImageChops.difference(png, svg).point(lambda shade: shade > 80)
    assert apart.getbbox() is None, "beyond shades at the edges of strokes"


def stroked(svg: bytes) -> Image.Image:
    """Paint a notice's strokes with round pens, eight times as large to keep fractions of a pixel."""
    root = ElementTree.fromstring(svg)
    paper, pens = root.find(f"{SVG}rect"), root.find(f"{SVG}g")
    assert paper is not None
    assert pens is not None
    size = int(root.attrib["width"]) * 8
    image = Image.new("RGB", (size, size), paper.attrib["fill"])
    for path in pens.iter(f"{SVG}path"):
        points = [
            tuple(float(part) * 8 for part in point.split(",")) for point in path.attrib["d"][1:].split()
        ]
        stroke(ImageDraw.Draw(image), points, float(path.attrib["stroke-width"]) * 8, pens.attrib["stroke"])
    return image.convert("L")


def stroke(draw: ImageDraw.ImageDraw, points: list[tuple[float, ...]], pen: float, ink: str) -> None:
    for (x, y), (to_x, to_y) in pairwise(points):
        draw.line((x, y, to_x, to_y), ink, round(pen))
    for x, y in points:
        draw.ellipse((x - pen / 2, y - pen / 2, x + pen / 2, y + pen / 2), ink)


def test_status_image_has_an_accessible_label() -> None:
    root = ElementTree.fromstring(images.status_svg("PAID"))
    assert root.attrib["aria-label"] == "PAID"
    assert [element.text for element in root.iter(f"{SVG}title")] == ["PAID"]
    assert not list(root.iter(f"{SVG}text")), "text would need a font"


@pytest.mark.parametrize("word", ["", "paid", "PAID!", "<b>", "PAID\n", "A" * 11, "ÉTEINT"])
def test_status_image_of_an_invalid_word_is_refused(word: str) -> None:
    for draw in (images.status_png, images.status_svg):
        with pytest.raises(ValueError, match="one word"):
            draw(word)


@pytest.mark.parametrize("png", [images.png("A"), images.status_png("PAID")])
def test_a_png_is_its_header_data_and_end_and_nothing_more(png: bytes) -> None:
    names, at = [], 8
    while at < len(png):
        size, name = struct.unpack_from(">I4s", png, at)
        names.append(name)
        at += 12 + size
    assert [name for name in names if name != b"PLTE"] == [b"IHDR", b"IDAT", b"IEND"]
