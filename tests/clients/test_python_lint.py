"""`linting.lint` accepts published codes, and says what is wrong with broken ones, and where."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from thaiqr import linting
from thaiqr.linting import Kind, Level, crc16

from core.thai import thaiqr as our_codes
from tests.stack import ROOT

VECTORS: list[dict[str, Any]] = [
    vector
    for vector in json.loads((ROOT / "tests" / "data" / "thaiqr.json").read_text())
    if not vector["kind"].startswith("crc16")
]
KINDS = {
    "slip_verify": Kind.SLIP,
    "bot_barcode": Kind.BARCODE,
    "bill_payment": Kind.BILL,
    "bill_payment_cross_border": Kind.BILL,
}
HEAD = "000201010212"
BILLER = "0016A0000006770101120115311040039475101"
BILL = f"{BILLER}0206REF001"
PHONE = "0016A00000067701011101130066812345678"


def code(*fields: str) -> str:
    """A code with its checksum. The fields follow tags 00 and 01."""
    body = "".join((HEAD, *fields, "6304"))
    return body + crc16(body)


def field(tag: str, value: str) -> str:
    return f"{tag}{len(value):02d}{value}"


def bill(value: str = BILL, *more: str, amount: str = "1500.00") -> str:
    return code(field("30", value), "5303764", field("54", amount), "5802TH", *more)


def transfer(payee: str, application: str = "0016A000000677010111") -> str:
    return code(field("29", application + payee), "5303764", "540510.00", "5802TH")


WITH_LETTERS = next(
    each for number in range(100) if not (each := bill(amount=f"{number + 100}.00"))[-4:].isdigit()
)


def messages(text: str, level: Level | None = None) -> list[str]:
    return [each.message for each in linting.lint(text).findings if level in (None, each.level)]


def test_published_codes_are_valid_exactly_if_they_should_be() -> None:
    for vector in VECTORS:
        report = linting.lint(vector["payload"])
        assert report.is_valid == vector["expect_valid"], report.findings
        if report.is_valid:
            assert report.kind is KINDS.get(vector["kind"], Kind.TRANSFER)


@given(
    biller=st.from_regex("[0-9]{15}", fullmatch=True),
    reference=st.from_regex("[A-Z0-9]{1,20}", fullmatch=True),
    amount=st.integers(100, 200_000_000),
)
@pytest.mark.slow
def test_codes_of_this_service_have_no_finding(biller: str, reference: str, amount: int) -> None:
    built = our_codes.bill_payment(biller_id=biller, reference1=reference, amount=amount)
    report = linting.lint(built)
    assert (report.kind, report.findings) == (Kind.BILL, [])


def test_broken_code_is_explained_with_its_place() -> None:
    for text, tag, position, said in [
        (bill()[:-4] + "0000", "63", 89, "must be"),
        (bill().replace("1500.00", "2500.00"), "63", 89, "changed after it was made"),
        (bill()[:-8], "63", 89, "should end with 6304"),
        (bill()[:-10], "58", 83, "cut off"),
        (bill()[:-4], "63", 89, "only 0 are left"),
        (bill(amount="1,500.00"), "54", 72, "comma"),
        (bill(amount="1500.001"), "54", 72, "decimals"),
        (bill(amount="15e3"), "54", 72, "digits"),
        (bill(amount="-5.00"), "54", 72, "digits"),
        (bill(f"{BILLER[:20]}011431104003947510" + "0206REF001"), "30.01", 36, "15 digits"),
        (bill(BILLER), "30", 12, "reference 1"),
        (bill(BILL.replace("010112", "010199")), "30.00", 16, "application id"),
        (bill(f"{BILLER}0221{'A' * 21}"), "30.02", 55, "at most 20"),
        (bill(BILL, field("59", "ร้านส้มตำ")), "59", 89, "tag 64"),
        (bill(BILL, field("59", "A" * 26)), "59", 89, "at most 25"),
        (bill(BILL, "5802TH"), "58", 89, "twice"),
        (bill(BILL, "5900"), "59", 89, "empty"),
        (bill(BILL, "59AB"), None, 89, "characters were lost"),
        (code(field("30", BILL), "5802TH"), None, None, "53 (currency) is missing"),
        (code(field("30", BILL), "5303764"), None, None, "58 (country) is missing"),
        (code(field("30", BILL), "5303702", "5802TH"), "53", 65, "in baht"),
        (code(field("30", BILL), "5303THB", "5802TH"), "53", 65, "764 for baht"),
        (code("5303764", "5802TH"), None, None, "Nobody to pay"),
        (transfer("01100812345678"), "29.01", 36, "0066812345678"),
        (transfer("011281234567890x"), "29.01", 36, "13 digits"),
        (transfer("0213110170020345"), "29.02", 36, "left in tag 29"),
        (transfer("01130066812345678" + "02131101700203451"), "29", 12, "names several"),
        (transfer(""), "29", 12, "nobody"),
        (transfer("01130066812345678", "0016A000000677010199"), "29.00", 16, "A000000677010111"),
        (transfer("01130066812345678", ""), "29", 12, "needs its application id"),
        (transfer("01130066812345678", "0016A000000677010114"), "29", 12, "one-time code"),
        ("000202" + bill()[6:], "00", 0, "must be 01"),
        (bill().replace("010212", "010213"), "01", 6, "11 (for many payments)"),
        ("0102120002015303764", "00", 0, "begin with tag 00"),
        (code("5802TH", "0102")[:12] + "x" + code()[12:], None, 12, "characters were lost"),
        ("https://example.com/pay", None, None, "web address"),
        ("hello", None, 0, "begins with 000201"),
        ("", None, None, "empty"),
        ("|0994000165501\r1\r\r0", "biller", 1, "15 digits"),
        ("|099400016550100\r1\r0", None, 0, "4 lines"),
        ("|099400016550100\r1\r\r1.50", "amount", 20, "satang"),
    ]:
        found = [each for each in linting.lint(text).findings if said in each.message]
        assert [(each.level, each.tag, each.position) for each in found] == [(Level.ERROR, tag, position)], (
            linting.lint(text).findings
        )


def test_doubtful_code_is_warned_of() -> None:
    for text, said in [
        (bill(amount="1500.5"), "two decimals"),
        (bill(amount="01500.00"), "begins with a zero"),
        (bill(amount="0.00"), "zero"),
        (bill(amount="2000000.01"), "2,000,000"),
        (bill(f"{BILLER[:20]}01133110400394751" + "0206REF001"), "13 digits"),
        (bill(f"{BILLER}0206ref-01"), "A-Z and 0-9"),
        (WITH_LETTERS[:-4] + WITH_LETTERS[-4:].lower(), "lower-case"),
        (code(field("30", BILL), "5303764", "5802TH"), "no amount"),
        (transfer("01130066081234567"), "leading zero"),
        (transfer("01130060812345678"), "another country"),
        (transfer("02131101700203451"), "check digit"),
        (f" {bill()}", "space around"),
    ]:
        assert linting.lint(text).is_valid
        assert any(said in message for message in messages(text, Level.WARNING)), messages(text)


BODY = bill()[:-4]


@pytest.mark.parametrize(
    ("given_checksum", "said"),
    [
        (crc16(BODY[:-4]), "without the tag and length"),
        (crc16(BODY, start=0), "XMODEM"),
        (crc16(BODY)[2:] + crc16(BODY)[:2], "swapped"),
    ],
)
def test_common_mistakes_with_the_checksum_are_recognised(given_checksum: str, said: str) -> None:
    assert any(said in message for message in messages(BODY + given_checksum, Level.ERROR))


def test_other_checksums_are_those_of_their_definitions() -> None:
    assert (crc16("123456789"), crc16("123456789", start=0)) == ("29B1", "31C3")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ((field("26", "0009SG.PAYNOW010120210201403121W"), "5303702", "5802SG"), "PayNow (Singapore)"),
        ((field("26", "0014ID.CO.QRIS.WWW"), "5303360", "5802ID"), "QRIS (Indonesia)"),
        ((field("38", "0010A000000727"), "5303704", "5802VN"), "VietQR (Vietnam)"),
        ((field("26", "0014br.gov.bcb.pix0105a@b.c"), "5303986", "5802BR"), "Pix (Brazil)"),
        ((field("02", "4000123456789012"), "5303840", "5802US"), "Visa"),
        ((field("11", "340012345678901"), "5303840", "5802US"), "American Express"),
    ],
)
def test_foreign_codes_are_named_and_not_called_wrong(fields: tuple[str, ...], said: str) -> None:
    report = linting.lint(code(*fields, "540510.00"))
    assert (report.kind, report.is_valid) == (Kind.FOREIGN, True)
    assert any(said in message for message in messages(report.text, Level.WARNING))


def test_application_id_that_begins_like_the_tag_of_a_card_scheme_is_unknown() -> None:
    report = linting.lint(code(field("26", "000415AB"), "5303840", "5802US", "540510.00"))
    assert any("an unknown scheme" in message for message in messages(report.text, Level.WARNING))


def test_code_of_a_customer_is_recognised() -> None:
    assert linting.lint("hQVDUFYwMWETTwegAAAAVVVVUAhQcm9kdWN0MQ==").kind is Kind.CUSTOMER
    assert linting.lint("hQVDUFYwMQ== is no code").kind is Kind.OTHER


def test_repeated_field_counts_at_its_first_place() -> None:
    repeated = messages(code(field("30", BILL), "5303764", "5802TH", "540510.00", "5802TH", "010212"))
    assert not [each for each in repeated if "second field" in each]
    assert [each for each in repeated if "ascending order" in each]


def test_lines_of_a_barcode_have_names() -> None:
    report = linting.lint("|099400016550100\r1\r\r150")
    names = ["Biller id", "Reference 1", "Reference 2", "Amount in satang"]
    assert [each.name for each in report.elements] == names


def test_fields_have_names_values_and_places() -> None:
    report = linting.lint(bill())
    places = {each.tag: (each.name, each.value) for each in report.elements}
    assert places["30.02"] == ("Reference 1", "REF001")
    assert places["54"] == ("Amount", "1500.00")
    for each in report.elements:
        assert report.text[each.position :].startswith(each.tag[-2:])


@given(
    st.one_of(
        st.text(), st.text(alphabet="0123456789AT|\r. ก"), st.sampled_from([BODY, bill(), transfer(PHONE)])
    )
)
def test_no_text_makes_the_linter_fail(text: str) -> None:
    linting.lint(text)


@given(st.integers(0, len(bill()) - 1), st.characters())
def test_no_changed_character_goes_unnoticed(place: int, character: str) -> None:
    changed = bill()[:place] + character + bill()[place + 1 :]
    if changed.upper() != bill():
        assert not linting.lint(changed).is_valid


@given(st.integers(0, len(bill()) - 1))
def test_no_cut_goes_unnoticed(length: int) -> None:
    assert not linting.lint(bill()[:length]).is_valid
