"""The modules of QR codes, compared with those of a writer that we did not choose for the product."""

import string
from typing import Any

import pytest
import zxingcpp

from core.drawing import qr_symbols
from core.drawing.qr_symbols import modules
from tests.qrcodes.test_images import sample_payloads

MASKS = range(8)


def by_zxing(text: str) -> list[bytes]:
    symbol = zxingcpp.create_barcode(text, zxingcpp.BarcodeFormat.QRCode, ec_level="M")
    levels: Any = memoryview(symbol.to_image(add_quiet_zones=True))  # type: ignore[arg-type]
    return [bytes(level == 0 for level in line) for line in levels.tolist()]


@pytest.mark.parametrize(
    "text",
    [
        "1",
        string.digits * 20,
        string.ascii_uppercase + "$%*+-./: ",
        string.ascii_uppercase * 6,
        "https " + string.ascii_lowercase * 4,
        "a" * 512,
        r"\tab \x41 [01] (01) ^1 %41 {b}",
    ],
)
def test_symbol_is_equal_to_that_of_another_writer_with_the_same_mask(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts that can be encoded in one way only: the rest of a symbol follows from the standard."""
    ours = []
    for mask in MASKS:
        monkeypatch.setattr(qr_symbols, "MASK", mask)
        ours.append(modules(text))
    assert by_zxing(text) in ours


@pytest.mark.slow
def test_symbol_of_a_payload_is_seldom_larger_than_that_of_another_writer() -> None:
    sizes = [(len(modules(payload)), len(by_zxing(payload))) for payload in sample_payloads(100)]
    assert {ours - theirs for ours, theirs in sizes} <= {0, 4}  # one version of the standard
    assert sum(ours > theirs for ours, theirs in sizes) <= 10


@pytest.mark.slow
def test_error_correction_level_is_m_at_both_places() -> None:
    """ISO/IEC 18004, 7.9.1: the two bits are 00 for M, and stored as 10. A copy is at the bottom left."""
    for payload in sample_payloads(40):
        symbol = modules(payload, has_quiet_zone=False)
        assert (symbol[8][0], symbol[8][1]) == (symbol[-1][8], symbol[-2][8]) == (1, 0)


def test_quiet_zone_has_four_light_modules_on_each_side() -> None:
    payload = sample_payloads(1)[0]
    inner, light = modules(payload, has_quiet_zone=False), bytes(4)
    beside = [bytes(len(inner) + 8)] * 4
    assert modules(payload) == [*beside, *(light + line + light for line in inner), *beside]


@pytest.mark.parametrize("text", ["", "ร้าน", "a" * 2332])
def test_text_that_no_reader_would_read_alike_or_that_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        modules(text)
