"""What a strict reader refuses, and what the writer will not write."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core import money, slips, thaiqr, thaiqr_rules

OURS = thaiqr.bill_payment(biller_id="099400016550100", reference1="AB12", amount=150_000)


def sealed(body: str) -> str:
    return f"{body}6304{thaiqr.crc16(body + '6304')}"


BILL = f"30470016{thaiqr_rules.BILL}0115099400016550100" + "0204AB12"
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
    "nobody to pay": sealed("00020101021253037645802TH"),
    "no currency": sealed(f"000201010212{BILL}5802TH"),
    "another currency": sealed(f"000201010212{BILL}53038405802TH"),
    "no country": sealed(f"000201010212{BILL}5303764"),
    "a bill without its reference": sealed(
        f"00020101021230390016{thaiqr_rules.BILL}011509940001655010053037645802TH"
    ),
    "a transfer to two payees": sealed(
        f"00020101021229540016{thaiqr_rules.TRANSFER}0113006681234567802131111111111111" + "53037645802TH"
    ),
    "too long": sealed(
        f"000201010212{BILL}53037645802TH" + "".join(f"{tag}99{'A' * 99}" for tag in range(81, 86))
    ),
}
assert thaiqr.parse(sealed(f"000201010212{BILL}53037645802TH")), "the cases differ from this by one fault"


@pytest.mark.parametrize("payload", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_payload_is_refused(payload: str) -> None:
    with pytest.raises(thaiqr.BadPayload):
        thaiqr.parse(payload)


@pytest.mark.parametrize(
    "amount",
    [
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
    ],
)
def test_an_amount_of_another_shape_is_refused(amount: str) -> None:
    with pytest.raises(thaiqr.BadPayload):
        thaiqr.parse(sealed(f"000201010212{BILL}530376454{len(amount):02d}{amount}5802TH"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"biller_id": "09940001655010"},
        {"biller_id": "09940001655010٠"},
        {"reference1": ""},
        {"reference1": "a"},
        {"reference1": "A" * 21},
        {"reference1": "AB12\n"},
        {"reference2": "A-1"},
        {"reference3": ""},
        {"amount": 0},
        {"amount": money.MIN_AMOUNT - 1},
        {"amount": money.MAX_AMOUNT + 1},
        {"bank_code": "4"},
        {"category_code": "70"},
        {"city": "กรุงเทพ"},
    ],
)
def test_a_bill_that_no_bank_would_take_is_not_written(wrong: dict[str, Any]) -> None:
    right: dict[str, Any] = {"biller_id": "099400016550100", "reference1": "AB12", "amount": 150_000}
    with pytest.raises(thaiqr.BadPayload):
        thaiqr.bill_payment(**(right | wrong))


def assert_only_bad_payload(text: str) -> None:
    for read in (thaiqr.parse, slips.parse_slip, slips.parse_barcode):
        try:
            read(text)
        except thaiqr.BadPayload:
            continue


@given(st.text())
@example("\ud8006304")
@example("6304")
def test_arbitrary_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    assert_only_bad_payload(text)


@given(st.text("0123456789A.TH|\r", max_size=90), st.sampled_from(["63", "91"]))
def test_arbitrary_text_under_a_right_checksum_is_read_or_refused(text: str, checksum: str) -> None:
    body = f"{text}{checksum}04"
    assert_only_bad_payload(body + thaiqr.crc16(body))


@given(st.integers(0, len(OURS) - 1), st.characters())
def test_one_changed_character_is_noticed(position: int, character: str) -> None:
    changed = OURS[:position] + character + OURS[position + 1 :]
    if changed != OURS:
        with pytest.raises(thaiqr.BadPayload):
            thaiqr.parse(changed)
