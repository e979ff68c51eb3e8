"""The published payloads, and any of our own, are read and written to the character."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import money, slips, thaiqr, thaiqr_rules

Vector = dict[str, Any]
VECTORS: list[Vector] = json.loads((Path(__file__).parents[1] / "data" / "thaiqr.json").read_text())
CHECKSUMS = {"crc16_ccitt_false"}
SLIPS = {"slip_verify"}
BARCODES = {"bot_barcode"}
BILLS = {"bill_payment", "bill_payment_cross_border"}
PROXIES = {
    "promptpay_phone": "01",
    "national_id": "02",
    "tax_id": "02",
    "national_or_tax_id": "02",
    "ewallet": "03",
    "truemoney": "03",
    "bank_account": "04",
}

OURS = thaiqr.bill_payment(biller_id="099400016550100", reference1="AB12", amount=150_000)


def vectors(kinds: set[str], *, use: str = "") -> list[Any]:
    chosen = (
        (number, vector)
        for number, vector in enumerate(VECTORS)
        if vector["kind"] in kinds and vector["use"].startswith(use) and vector["expect_valid"]
    )
    return [pytest.param(vector, id=f"{number}-{vector['kind']}") for number, vector in chosen]


def satang(vector: Vector) -> int | None:
    return money.satang(vector["input"]["amount"]) if "amount" in vector["input"] else None


def test_every_published_entry_is_held_by_a_test() -> None:
    known = CHECKSUMS | SLIPS | BARCODES | BILLS | set(PROXIES)
    assert len(VECTORS) == 103
    assert {vector["kind"] for vector in VECTORS} == known


@pytest.mark.parametrize("vector", vectors(BILLS | set(PROXIES)))
def test_a_published_payload_is_read_and_rebuilt_in_its_own_order(vector: Vector) -> None:
    payload = thaiqr.parse(vector["payload"])
    assert thaiqr.build(payload.tags) == vector["payload"]


@pytest.mark.parametrize("vector", [v for v in VECTORS if v["use"] == "reject"])
def test_a_defective_published_payload_is_refused(vector: Vector) -> None:
    with pytest.raises(thaiqr.BadPayload):
        thaiqr.parse(vector["payload"])


@pytest.mark.parametrize("vector", vectors(BILLS))
def test_a_bill_shows_what_it_was_made_of(vector: Vector) -> None:
    payload, given_ = thaiqr.parse(vector["payload"]), vector["input"]
    assert payload.kind == vector["kind"]
    assert payload.biller_id == given_["biller_id"]
    assert payload.reference1 == given_["ref1"]
    assert payload.reference2 == given_.get("ref2")
    assert payload.reference3 == given_.get("ref3", given_.get("terminal_id"))
    assert payload.amount == satang(vector)
    assert payload.currency == "THB"


@pytest.mark.parametrize("vector", vectors(BILLS, use="encode"))
def test_a_bill_is_written_as_published(vector: Vector) -> None:
    source, published = vector["input"], thaiqr.parse(vector["payload"])
    written = thaiqr.bill_payment(
        biller_id=source["biller_id"],
        reference1=source["ref1"],
        reference2=source.get("ref2"),
        reference3=source.get("ref3", source.get("terminal_id")),
        amount=satang(vector),
        dynamic=published.is_dynamic,
        cross_border=vector["kind"] == "bill_payment_cross_border",
        bank_code=published.value("31.01"),
        category_code=source.get("mcc"),
        city=source.get("city"),
    )
    assert written == vector["payload"]


@pytest.mark.parametrize("vector", vectors(set(PROXIES), use="encode"))
def test_a_transfer_is_written_as_published(vector: Vector) -> None:
    tags: list[thaiqr.Tag] = [
        ("00", "01"),
        ("01", point_of_initiation(vector)),
        ("29", (("00", thaiqr_rules.TRANSFER), (PROXIES[vector["kind"]], proxy(vector)))),
        ("53", "764"),
    ]
    amount = satang(vector)
    if amount is not None:
        tags.append(("54", money.baht(amount)))
    # One published payload names a foreign country, which its input does not say.
    tags.append(("58", thaiqr.parse(vector["payload"]).value("58") or ""))
    assert thaiqr.build(tags) == vector["payload"]


def point_of_initiation(vector: Vector) -> str:
    return str(vector["input"].get("point_of_initiation", "12" if "amount" in vector["input"] else "11"))


def proxy(vector: Vector) -> str:
    source = vector["input"]
    if vector["kind"] == "bank_account":
        return f"{source['bank_code']}{source['account_no']}"
    if vector["kind"] == "truemoney":
        return f"14000{source['mobile']}"
    if vector["kind"] == "promptpay_phone":
        return f"0066{source['target'][1:]}"
    return str(source["target"])


@pytest.mark.parametrize("vector", vectors(set(PROXIES)))
def test_a_transfer_has_no_reference_to_match_by(vector: Vector) -> None:
    payload = thaiqr.parse(vector["payload"])
    assert payload.kind is thaiqr.Kind.CREDIT_TRANSFER
    assert (payload.biller_id, payload.reference1, payload.reference2) == (None, None, None)


@pytest.mark.parametrize("vector", vectors(CHECKSUMS))
def test_the_checksum_is_the_published_one(vector: Vector) -> None:
    assert thaiqr.crc16(vector["input"]["data"]) == vector["payload"]


def test_the_checksum_meets_its_standard_check_value() -> None:
    assert thaiqr.crc16("123456789") == "29B1"


@pytest.mark.parametrize("vector", vectors(SLIPS))
def test_a_slip_is_read_and_written_as_published(vector: Vector) -> None:
    slip = slips.Slip(vector["input"]["sending_bank"], vector["input"]["trans_ref"])
    assert slips.parse_slip(vector["payload"]) == slip
    assert slips.slip_payload(slip) == vector["payload"]


@pytest.mark.parametrize("vector", vectors(BARCODES))
def test_a_bill_barcode_is_read_and_written_as_published(vector: Vector) -> None:
    source = vector["input"]
    bill = slips.Bill(source["biller_id"], source["ref1"], source.get("ref2"), satang(vector))
    assert slips.parse_barcode(vector["payload"]) == bill
    assert slips.barcode(bill) == vector["payload"]


def test_a_merchant_name_in_thai_is_read() -> None:
    local = "0002TH0109ร้านกาแฟ!"
    tags = (*thaiqr.parse(OURS).tags, ("64", local))
    assert thaiqr.parse(thaiqr.build(tags)).value("64") == local


def test_our_own_code_is_what_a_bank_issues() -> None:
    bill = f"0016{thaiqr_rules.BILL}" + "0115099400016550100" + "0204AB12"
    assert OURS[:-4] == "000201010212" + f"3047{bill}" + "5303764" + "54071500.00" + "5802TH" + "6304"
    assert thaiqr.parse(OURS).is_dynamic


references = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=1, max_size=20)


@given(
    biller_id=st.from_regex("([0-9]{13}|[0-9]{15})", fullmatch=True).filter(str.isascii),
    reference1=references,
    reference2=st.none() | references,
    reference3=st.none() | references,
    amount=st.none() | st.integers(money.MIN_AMOUNT, money.MAX_AMOUNT),
    dynamic=st.booleans(),
)
def test_what_is_written_is_read_back(**bill: Any) -> None:
    written = thaiqr.bill_payment(**bill)
    read = thaiqr.parse(written)
    assert {name: getattr(read, name) for name in bill if name != "dynamic"} | {
        "dynamic": read.is_dynamic
    } == bill
    assert thaiqr.build(read.tags) == written


printable = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=15)
extra = st.dictionaries(st.integers(65, 99).filter(lambda tag: tag != 80).map(str), printable, max_size=8)
parts = st.dictionaries(st.integers(0, 99).map("{:02d}".format), printable, min_size=1, max_size=3)


@given(extra=extra, vat=parts)
def test_fields_that_we_do_not_know_are_kept_in_their_order(
    extra: dict[str, str], vat: dict[str, str]
) -> None:
    tags = (*thaiqr.parse(OURS).tags, *extra.items(), ("80", tuple(vat.items())))
    assert thaiqr.parse(thaiqr.build(tags)).tags == tags
