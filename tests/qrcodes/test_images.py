"""Pictures of QR codes, read back by two decoders."""

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

from core import money
from core.thai import thaiqr
from qrcodes import images
from tests import qr_reader

SEED = 20_190_417
REFERENCES = string.ascii_uppercase + string.digits
SVG = "{http://www.w3.org/2000/svg}"
RUN = re.compile(r"M(\d+) (\d+)h(\d+)v1h-(\d+)z")


def sample_payloads(count: int) -> list[str]:
    """Payloads from the shortest to the longest, the same in every run."""
    draw = random.Random(SEED)
    return [bill(draw, 1 + number % 20) for number in range(count)]


def bill(draw: random.Random, size: int) -> str:
    def reference() -> str:
        return "".join(draw.choices(REFERENCES, k=size))

    return thaiqr.bill_payment(
        biller_id="".join(draw.choices(string.digits, k=15)),
        reference1=reference(),
        reference2=draw.choice(["", reference()]),
        reference3=draw.choice(["", reference()]),
        amount=draw.randint(money.MIN_AMOUNT, money.MAX_AMOUNT),
    )


def scanned(image: Image.Image) -> list[str]:
    """Read QR symbols only, because some rows of a symbol look like a short ITF barcode."""
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
        assert not RUN.sub("", path.attrib["d"]), "the path has complete runs only"
        for run in RUN.finditer(path.attrib["d"]):
            x, y, right, back = (int(number) for number in run.groups())
            assert right == back
            pen.rectangle((x * 10, y * 10, (x + right) * 10 - 1, y * 10 + 9), 0)
    return image


@pytest.mark.slow
def test_png_qr_image_is_decoded_to_the_payload() -> None:
    for number, payload in enumerate(sample_payloads(300)):
        assert scanned(opened(images.png(payload))) == [payload], f"seed {SEED}, payload {number}"


@pytest.mark.slow
def test_svg_qr_image_is_decoded_to_the_payload() -> None:
    for number, payload in enumerate(sample_payloads(100)):
        assert scanned(rasterised(images.svg(payload))) == [payload], f"seed {SEED}, payload {number}"


@pytest.mark.slow
def test_another_reader_decodes_png_and_svg_to_the_payload() -> None:
    payloads = sample_payloads(40)
    png = [opened(images.png(payload)) for payload in payloads]
    svg = [rasterised(images.svg(payload)) for payload in payloads]
    assert qr_reader.read([*png, *svg]) == payloads * 2, f"seed {SEED}"


@pytest.mark.slow
def test_another_reader_finds_no_symbol_on_a_white_picture() -> None:
    assert qr_reader.read([Image.new("L", (512, 512), 255)]) == [None]


@pytest.mark.parametrize("size", [1, 100, 512])
def test_qr_image_of_any_payload_length_is_decoded(size: int) -> None:
    text = "a" * size
    assert scanned(opened(images.png(text))) == [text]


@pytest.mark.slow
def test_png_is_black_and_white_and_at_least_512_pixels_wide() -> None:
    for payload in sample_payloads(40):
        image = opened(images.png(payload))
        assert image.mode == "1"
        assert image.width == image.height >= 512


@pytest.mark.slow
def test_qr_symbol_has_a_quiet_zone_of_four_modules() -> None:
    for payload in sample_payloads(40):
        image = opened(images.png(payload)).convert("L")
        left, top, right, bottom = image.point(lambda level: 255 - level).getbbox() or (0, 0, 0, 0)
        module = finder_width(image, left, top) / 7
        assert (left, top) == (4 * module, 4 * module)
        assert (image.width - right, image.height - bottom) == (4 * module, 4 * module)


def finder_width(image: Image.Image, left: int, top: int) -> int:
    """The width of the finder pattern at the corner of a symbol, seven modules."""
    x = left
    while image.getpixel((x, top)) == 0:
        x += 1
    return x - left


def test_qr_symbol_has_error_correction_level_m() -> None:
    (code,) = zxingcpp.read_barcodes(opened(images.png(sample_payloads(1)[0])))
    assert code.ec_level == "M"


def test_damaged_qr_symbol_is_decoded() -> None:
    payload = sample_payloads(1)[0]
    image = opened(images.png(payload)).convert("L")
    middle = image.width // 2
    ImageDraw.Draw(image).rectangle((middle - 40, middle - 40, middle + 40, middle + 40), 255)
    assert scanned(image) == [payload]


def test_same_payload_gives_the_same_image_bytes() -> None:
    payload = sample_payloads(1)[0]
    assert images.png(payload) == images.png(payload)
    assert images.svg(payload) == images.svg(payload)


@pytest.mark.parametrize("status", ["paid", "expired"])
@pytest.mark.slow
def test_status_image_contains_no_qr_symbol(status: str) -> None:
    image = opened(images.status_image(status, "png"))
    assert image.width == image.height >= 512
    for size in (image.size, (270, 270)):
        assert not zxingcpp.read_barcodes(image.convert("L").resize(size)), "no symbol and no barcode"


@pytest.mark.parametrize("status", ["paid", "expired"])
@pytest.mark.slow
def test_status_image_is_equal_in_png_and_svg(status: str) -> None:
    png = opened(images.status_image(status, "png")).convert("L")
    svg = stroked(images.status_image(status, "svg")).resize(png.size)
    apart = ImageChops.difference(png, svg).point(lambda shade: shade > 80)
    assert apart.getbbox() is None, "only shades at the edges of lines may differ"


def stroked(svg: bytes) -> Image.Image:
    """Paint the lines of a status image with round pens, eight times as large for fractions of a pixel."""
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
    root = ElementTree.fromstring(images.status_image("paid", "svg"))
    assert root.attrib["aria-label"] == "PAID"
    assert [element.text for element in root.iter(f"{SVG}title")] == ["PAID"]
    assert not list(root.iter(f"{SVG}text")), "text would need a font"


@pytest.mark.parametrize("png", [images.png("A"), images.status_image("paid", "png")])
def test_png_has_only_the_required_chunks(png: bytes) -> None:
    names, at = [], 8
    while at < len(png):
        size, name = struct.unpack_from(">I4s", png, at)
        names.append(name)
        at += 12 + size
    assert [name for name in names if name != b"PLTE"] == [b"IHDR", b"IDAT", b"IEND"]
