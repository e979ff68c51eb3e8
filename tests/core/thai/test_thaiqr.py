"""Codes of bill payments: published ones and our own are read and written exactly; others are refused."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from core import money
from core.thai import slips, thaiqr, tlv
from tests.thai_codes import altered

Vector = dict[str, Any]
VECTORS: list[Vector] = json.loads((Path(__file__).parents[2] / "data" / "thaiqr.json").read_text())
CHECKSUMS = {"crc16_ccitt_false"}
SLIPS = {"slip_verify"}
BILLS = {"bill_payment"}
# Codes and barcodes that are no bill payments within Thailand.
OTHERS = {
    "bot_barcode", "bill_payment_cross_border", "promptpay_phone", "national_id", "tax_id",
    "national_or_tax_id", "ewallet", "truemoney", "bank_account",
}  # fmt: skip

OURS = thaiqr.bill_payment(biller_id="099400016550100", reference1="AB12", amount=150_000)


def vectors(kinds: set[str], *, use: str = "") -> list[Vector]:
    return [
        vector
        for vector in VECTORS
        if vector["kind"] in kinds and vector["use"].startswith(use) and vector["expect_valid"]
    ]


def satang(vector: Vector) -> int | None:
    return money.satang(vector["input"]["amount"]) if "amount" in vector["input"] else None


def test_every_kind_of_published_test_vector_is_tested() -> None:
    known = CHECKSUMS | SLIPS | BILLS | OTHERS
    assert len(VECTORS) == 103
    assert {vector["kind"] for vector in VECTORS} == known


@pytest.mark.parametrize("vector", [v for v in VECTORS if v["use"] == "reject"])
def test_invalid_published_payload_is_refused(vector: Vector) -> None:
    with pytest.raises(tlv.BadPayload):
        thaiqr.parse(vector["payload"])


def test_code_of_another_kind_is_refused() -> None:
    for vector in vectors(OTHERS):
        with pytest.raises(tlv.BadPayload):
            thaiqr.parse(vector["payload"])


def published(vector: Vector) -> thaiqr.Payload:
    source = vector["input"]
    return thaiqr.Payload(
        biller_id=source["biller_id"],
        reference1=source["ref1"],
        reference2=source.get("ref2", ""),
        reference3=source.get("ref3", source.get("terminal_id", "")),
        amount=satang(vector),
    )


def test_parsed_bill_payment_has_the_published_fields() -> None:
    for vector in vectors(BILLS):
        assert thaiqr.parse(vector["payload"]) == published(vector)


def test_bill_payment_payload_equals_the_published_example() -> None:
    """Of codes for one payment with an amount, and without fields that we do not write."""
    like_ours = [
        vector
        for vector in vectors(BILLS, use="encode")
        if vector["payload"].startswith("000201010212")
        and "amount" in vector["input"]
        and "mcc" not in vector["input"]
        and "A000000677010113" not in vector["payload"]  # tag 31, which KBank adds
    ]
    assert len(like_ours) == 4
    for vector in like_ours:
        assert thaiqr.bill_payment(**asdict(published(vector))) == vector["payload"]


@pytest.mark.parametrize("vector", vectors(CHECKSUMS))
def test_crc16_equals_the_published_checksums(vector: Vector) -> None:
    assert tlv.crc16(vector["input"]["data"]) == vector["payload"]


def test_crc16_of_123456789_is_29b1() -> None:
    assert tlv.crc16("123456789") == "29B1"


@pytest.mark.parametrize("vector", vectors(SLIPS))
def test_slip_payload_equals_the_published_example(vector: Vector) -> None:
    slip = slips.Slip(vector["input"]["sending_bank"], vector["input"]["trans_ref"])
    assert slips.parse_slip(vector["payload"]) == slip
    assert slips.slip_payload(slip) == vector["payload"]


def test_thai_merchant_name_is_accepted() -> None:
    named = altered(OURS, "5802TH", "5802TH64190002TH0109ร้านกาแฟ!")
    assert thaiqr.parse(named) == thaiqr.parse(OURS)


def test_generated_qr_payload_has_the_fields_of_a_bank_qr_code() -> None:
    bill = f"0016{thaiqr.BILL}" + "0115099400016550100" + "0204AB12"
    assert OURS[:-4] == "000201010212" + f"3047{bill}" + "5303764" + "54071500.00" + "5802TH" + "6304"


references = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=1, max_size=20)


@pytest.mark.slow
@given(
    biller_id=st.from_regex("([0-9]{13}|[0-9]{15})", fullmatch=True).filter(str.isascii),
    reference1=references,
    reference2=st.just("") | references,
    reference3=st.just("") | references,
    amount=st.integers(money.MIN_AMOUNT, money.MAX_AMOUNT),
)
def test_bill_payment_payload_round_trip_returns_the_same_fields(**bill: Any) -> None:
    assert asdict(thaiqr.parse(thaiqr.bill_payment(**bill))) == bill


def sealed(body: str) -> str:
    return f"{body}6304{tlv.crc16(body + '6304')}"


BILL = f"30470016{thaiqr.BILL}0115099400016550100" + "0204AB12"
MALFORMED = {
    "empty": "",
    "a foreign digit in a tag": sealed(f"000201٠10212{BILL}53037645802TH"),
    "a foreign digit in a length": sealed(f"00020101０212{BILL}53037645802TH"),
    "a foreign digit in a biller": sealed(f"000201{BILL.replace('0994', '٠994')}53037645802TH"),
    "a line break": sealed(f"000201010212{BILL}53037645802TH5903a\nb"),
    "a lone surrogate": "\ud800" + OURS,
    "Thai text outside the local language template": sealed(f"000201010212{BILL}53037645802TH5902กข"),
    "a lower-case checksum": OURS[:-4] + OURS[-4:].swapcase(),
    "text after the checksum": OURS + "0",
    "no checksum": OURS[:-8],
    "a checksum inside": sealed(f"0002010102126304ABCD{BILL}53037645802TH"),
    "no format first": sealed(f"010212000201{BILL}53037645802TH"),
    "an unknown format": sealed(f"000202010212{BILL}53037645802TH"),
    "the initiation point late": sealed(f"000201{BILL}01021253037645802TH"),
    "an unknown initiation point": sealed(f"000201010213{BILL}53037645802TH"),
    "a tag twice": sealed(f"000201010212{BILL}530376453037645802TH"),
    "a nested tag twice": sealed(f"000201010212{BILL}53037645802TH62100701A0701B"),
    "an empty value": sealed(f"000201010212{BILL}53037645802TH5900"),
    "a length beyond the end": sealed(f"000201010212{BILL}53037645802TH5999A"),
    "a nested length beyond its template": sealed(f"000201010212{BILL}53037645802TH62050709A"),
    "the payee is missing": sealed("00020101021253037645802TH"),
    "no currency": sealed(f"000201010212{BILL}5802TH"),
    "another currency": sealed(f"000201010212{BILL}53038405802TH"),
    "no country": sealed(f"000201010212{BILL}5303764"),
    "a bill without its reference": sealed(
        f"00020101021230390016{thaiqr.BILL}011509940001655010053037645802TH"
    ),
    "too long": sealed(
        f"000201010212{BILL}53037645802TH" + "".join(f"{tag}99{'A' * 99}" for tag in range(81, 86))
    ),
}
assert thaiqr.parse(sealed(f"000201010212{BILL}53037645802TH")), "the cases differ from this by one fault"


def test_malformed_qr_payload_is_refused() -> None:
    for payload in MALFORMED.values():
        with pytest.raises(tlv.BadPayload):
            thaiqr.parse(payload)


def test_qr_payload_with_malformed_amount_is_refused() -> None:
    for amount in [
        "1.0",
        "1.000",
        ".50",
        "1.",
        "-1.00",
        "+1",
        "1,000.00",
        "01.00",
        " 1",
        "1e3",
        "١.00",
        "1.00 ",
        "12345678901.00",
    ]:
        with pytest.raises(tlv.BadPayload):
            thaiqr.parse(sealed(f"000201010212{BILL}530376454{len(amount):02d}{amount}5802TH"))


def test_bill_payment_with_invalid_field_is_not_written() -> None:
    for wrong in [
        {"biller_id": "09940001655010"},
        {"biller_id": "09940001655010٠"},
        {"reference1": ""},
        {"reference1": "a"},
        {"reference1": "A" * 21},
        {"reference1": "AB12\n"},
        {"reference2": "A-1"},
        {"reference3": "A" * 21},
        {"amount": 0},
        {"amount": money.MIN_AMOUNT - 1},
        {"amount": money.MAX_AMOUNT + 1},
    ]:
        given: dict[str, Any] = {"biller_id": "099400016550100", "reference1": "AB12", "amount": 150_000}
        given.update(wrong)  # type: ignore[call-overload]  # values of many types
        with pytest.raises(tlv.BadPayload):
            thaiqr.bill_payment(**given)


def assert_only_bad_payload(text: str) -> None:
    for read in (thaiqr.parse, slips.parse_slip):
        try:
            read(text)
        except tlv.BadPayload:
            continue


@given(st.text())
@example("\ud8006304")
@example("6304")
@pytest.mark.slow
def test_arbitrary_text_is_parsed_or_raises_only_bad_payload(text: str) -> None:
    assert_only_bad_payload(text)


@given(st.text("0123456789A.TH|\r", max_size=90), st.sampled_from(["63", "91"]))
def test_arbitrary_text_with_valid_checksum_is_parsed_or_raises_bad_payload(text: str, checksum: str) -> None:
    body = f"{text}{checksum}04"
    assert_only_bad_payload(body + tlv.crc16(body))


@given(st.integers(0, len(OURS) - 1), st.characters())
def test_qr_code_with_one_changed_character_is_refused(position: int, character: str) -> None:
    changed = OURS[:position] + character + OURS[position + 1 :]
    if changed != OURS:
        with pytest.raises(tlv.BadPayload):
            thaiqr.parse(changed)
