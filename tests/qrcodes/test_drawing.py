"""What stands where on a card: names of any length, Thai marks, the same place in each format."""

import io

import pytest
import zxingcpp
from PIL import Image

from core.drawing import outlines
from qrcodes.drawing import Texts, layout, png
from qrcodes.drawing.layout import Card
from tests import qr_reader
from tests.qrcodes.test_images import sample_payloads, scanned

PAYLOAD = sample_payloads(1)[0]
THAI = "ร้านกาแฟที่นี่ ญี่ปุ่น ผู้ป่วย น้ำ"
NAMES = [
    "Somtam House",
    THAI,
    "ร้านส้มตำป้าปุ๊ก สาขาตลาดน้ำดำเนินสะดวก จังหวัดราชบุรี ประเทศไทย",
    "ก" * 140,
    "W" * 140,
    "น้ำ" * 46,
    "ร้าน 🍜 麺",
    "x",
    " ",
]


def card(shop: str = "Somtam House", payload: str = PAYLOAD) -> Card:
    texts = Texts(
        shop=shop,
        amount="฿2,000,000.00",
        reference="Reference " + "W" * 35,
        note="Pay before 25 Nov 2026 23:59 (Bangkok time)",
        test_mark="Test mode: no real money",
    )
    return layout.arrange(texts, payload)


@pytest.mark.parametrize("shop", NAMES)
def test_every_line_fits_within_the_margins(shop: str) -> None:
    for line in card(shop).lines:
        assert line.x >= layout.MARGIN - 0.01
        assert line.size >= 20


def test_long_name_has_two_lines_and_is_cut_at_the_end() -> None:
    assert len(card("Somtam House").lines) == 6
    assert len(card("W" * 140).lines) == 7


def test_vowels_and_tone_marks_stay_with_their_consonant() -> None:
    for end in range(1, len(THAI)):
        if layout._may_break(THAI, end):
            assert THAI[end] not in "ัิีึืุู็่้๊๋์ำ"
            assert THAI[end - 1] not in "เแโใไ"


def test_thai_is_placed_by_the_rules_of_thai_after_latin_letters() -> None:
    thai, mixed = outlines.shape("ที่น้ำ", bold=True), outlines.shape("A ที่น้ำ", bold=True)
    start = mixed.width - thai.width
    tail = mixed.glyphs[-len(thai.glyphs) :]
    assert [(glyph, x - start, y) for glyph, x, y in tail] == list(thai.glyphs)


def test_tone_mark_stands_above_the_vowel() -> None:
    masks = [outlines.mask(outlines.shape(text, bold=False), 100) for text in ("ที", "ที่")]
    heights = [sum(1 for row in mask.rows if any(row)) for mask in masks]
    assert heights[1] > heights[0] + 10


def test_ink_stands_where_the_outline_stands() -> None:
    line = card(THAI).lines[2]
    points = [segment.points[-2:] for segment in outlines.outline(line.run) if segment.points]
    mask = outlines.mask(line.run, line.size)
    inked = [at for at, row in enumerate(mask.rows) if any(row)]
    top = max(y for _x, y in points) * line.size / 1000
    assert mask.top - inked[0] == pytest.approx(top, abs=1.5)


@pytest.mark.slow
@pytest.mark.parametrize("size", [200, 300, 512, 1000, 2000])
def test_card_of_any_payload_is_decoded(size: int) -> None:
    for payload in sample_payloads(20 if size < 1000 else 4):
        image = Image.open(io.BytesIO(png.draw(card(payload=payload), size))).convert("L")
        assert scanned(image) == [payload]


@pytest.mark.slow
def test_another_reader_decodes_the_code_of_a_card() -> None:
    payloads = sample_payloads(10)
    drawn = [Image.open(io.BytesIO(png.draw(card(payload=payload), 512))) for payload in payloads]
    assert qr_reader.read(drawn) == payloads


@pytest.mark.slow
def test_small_copy_of_a_card_is_decoded_as_a_telephone_sees_it() -> None:
    for payload in sample_payloads(20):
        image = Image.open(io.BytesIO(png.draw(card(payload=payload), 1000))).convert("L")
        small = image.resize((333, 471), Image.Resampling.BILINEAR)
        assert [found.text for found in zxingcpp.read_barcodes(small)] == [payload]


@pytest.mark.slow
def test_same_content_gives_the_same_bytes() -> None:
    assert png.draw(card(), 300) == png.draw(card(), 300)
