"""Bangkok Bank: its signed pushes, and what it is asked."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from hypothesis import given
from hypothesis import strategies as st

import banks
from banks import BadSignature, Link, NotAnswered, Notice, Question, Unreadable, signing
from banks.bbl import Bbl
from tests.banks.bbl_stand_in import (
    BILLER,
    CHARGE,
    INQUIRY,
    PAID_AT,
    PUSH,
    REFERENCE,
    TOKENS,
    BblStandIn,
    credentials,
    granted,
    key_pair,
    opened,
    push,
    said,
    signed,
)
from tests.receiver import Reply

NOW = datetime(2026, 11, 21, 4, 5, tzinfo=UTC)
BBL = Bbl(Link("bbl", BILLER, credentials()))
PAID = Notice(
    bank_transaction_id=CHARGE,
    kind="credit",
    biller_id=BILLER,
    reference1=REFERENCE,
    reference2="0011",
    reference3="",
    amount=150_000,
    paid_at=PAID_AT,
    payer_name="นาย สมชาย ใจดี",
    payer_bank_code="004",
    payer_account="",
)


@pytest.fixture
def bank() -> Iterator[BblStandIn]:
    with opened() as stand_in:
        yield stand_in


def question(since: str = "2026-11-21T04:00:00", until: str = "2026-11-21T04:15:00") -> Question:
    """UTC."""
    ends = [datetime.fromisoformat(end).replace(tzinfo=UTC) for end in (since, until)]
    return Question(BILLER, REFERENCE, 150_000, *ends)


def ask(bank: BblStandIn, asked: Question | None = None) -> banks.Found:
    return banks.get("bbl", bank.link).inquire(asked or question())


def check(token: str, body: bytes | None = None, *, now: datetime = NOW) -> None:
    BBL.verify(headers={"Signature": token}, body=push() if body is None else body, now=now)


def test_a_push_is_read_into_satang_and_utc() -> None:
    assert BBL.parse_notice(push()) == PAID


def test_a_cancelled_payment_is_a_reversal_of_the_same_id() -> None:
    assert BBL.parse_notice(push(txnType="D")) == replace(PAID, kind="reversal")


@pytest.mark.parametrize("flag", ["Y", "N", "", None])
def test_a_repeat_is_known_by_its_id_and_not_by_its_flag(flag: str | None) -> None:
    assert BBL.parse_notice(push(retryFlag=flag)) == PAID


@pytest.mark.parametrize(
    ("written", "satang"),
    [
        ('"1500.00"', 150_000),
        ("1500", 150_000),
        ("1500.5", 150_050),
        ("0.29", 29),
        ("1234567.89", 123_456_789),
    ],
)
def test_an_amount_may_be_text_or_number_and_is_always_exact(written: str, satang: int) -> None:
    assert BBL.parse_notice(push().replace(b'"1500.00"', written.encode())).amount == satang


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("billerId", None),
        ("billerId", "010555000000001"),
        ("transDate", "21112026"),
        ("transDate", "2026-02-30"),
        ("transTime", "11:04"),
        ("transTime", "25:00:00"),
        ("amount", "0.00"),
        ("amount", None),
        ("amount", "1,500.00"),
        ("reference1", ""),
        ("reference1", "A" * 21),
        ("reference2", "A" * 21),
        ("bankRef", ""),
        ("bankRef", "a.b"),
        ("bankRef", "1" * 35),
        ("txnType", "X"),
        ("txnType", None),
    ],
)
def test_what_decides_about_the_money_must_be_well_formed(name: str, value: Any) -> None:
    with pytest.raises(Unreadable):
        BBL.parse_notice(push(**{name: value}))


@pytest.mark.parametrize(
    ("name", "field", "values"),
    [
        ("fromName", "payer_name", [None, 7, "ก" * 141, "a\tb", "\x9b"]),
        ("fromBank", "payer_bank_code", [None, "4", 4, "0004"]),
    ],
)
def test_what_is_only_good_to_know_holds_up_no_money(name: str, field: str, values: list[Any]) -> None:
    left_out: dict[str, Any] = {field: ""}
    for value in values:
        assert BBL.parse_notice(push(**{name: value})) == replace(PAID, **left_out)


def test_the_longest_id_fits() -> None:
    assert len(BBL.parse_notice(push(bankRef="1" * 34)).bank_transaction_id) == 64


@pytest.mark.parametrize("notice", [PAID, None])
def test_the_bank_is_answered_so_that_it_stops(notice: Notice | None) -> None:
    assert BBL.answer(notice) == {"responseCode": "000", "responseMesg": "Success"}


@given(st.binary())
def test_any_bytes_are_unreadable_and_never_a_fault(sent: bytes) -> None:
    with pytest.raises(Unreadable):
        BBL.parse_notice(sent)


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text(), max_size=2)


@given(st.dictionaries(st.sampled_from(list(PUSH)), VALUES))
def test_any_values_are_read_or_unreadable(changes: dict[str, Any]) -> None:
    try:
        assert BBL.parse_notice(push(**changes)).amount > 0
    except Unreadable:
        return


@pytest.mark.parametrize("header", [{"Signature": "{}"}, {"Authorization": "Bearer {}"}])
def test_what_the_bank_signed_is_accepted(header: dict[str, str]) -> None:
    token = signed(push(), now=NOW)
    headers = {name: value.format(token) for name, value in header.items()}
    BBL.verify(headers=headers, body=push(), now=NOW)


def test_the_order_of_fields_and_the_spelling_of_letters_do_not_matter() -> None:
    again = json.dumps(dict(reversed(PUSH.items())), ensure_ascii=False, indent=2).encode()
    check(signed(push(), now=NOW), again)


@pytest.mark.parametrize(("minutes", "is_good"), [(-6, False), (-5, True), (1445, True), (1446, False)])
def test_a_token_is_good_from_when_it_was_made_to_its_end(minutes: int, is_good: bool) -> None:
    token, at = signed(push(), now=NOW), NOW + timedelta(minutes=minutes)
    if is_good:
        check(token, now=at)
        return
    with pytest.raises(BadSignature):
        check(token, now=at)


def part(told: Any) -> bytes:
    return base64.urlsafe_b64encode(json.dumps(told).encode()).rstrip(b"=")


def token_of(header: dict[str, Any], sign: Callable[[bytes], bytes], **claims: Any) -> str:
    start = part(header) + b"." + part(PUSH | claims)
    return (start + b"." + base64.urlsafe_b64encode(sign(start)).rstrip(b"=")).decode()


def hmac_with_public_key(start: bytes) -> bytes:
    return hmac.new(key_pair("bank")[1].encode(), start, hashlib.sha256).digest()


def rsa_signature(start: bytes) -> bytes:
    """What `signing.sign` makes of these bytes, with the bank's key."""
    key: Any = load_pem_private_key(key_pair("bank")[0].encode(), password=None)
    signature: bytes = key.sign(start, PKCS1v15(), SHA256())
    return signature


@pytest.mark.parametrize("times", [{}, {"iat": NOW.timestamp() + 0.5, "exp": NOW.timestamp() + 60.25}])
def test_a_token_may_leave_its_times_out_and_have_parts_of_a_second_in_them(times: dict[str, float]) -> None:
    check(token_of({"alg": "RS256", "typ": "JWT"}, rsa_signature, **times))


GOOD = signed(push(), now=NOW)
HEAD, CLAIMS, SIGNATURE = GOOD.split(".")
BEYOND = base64.urlsafe_b64encode(b'{"alg":0e99999999999999999999}').decode().rstrip("=")


@pytest.mark.parametrize(
    "token",
    [
        "",
        "x",
        "..",
        f"{HEAD}.{CLAIMS}",
        f"{HEAD}.{CLAIMS}.",
        f"{HEAD}.{CLAIMS}.{SIGNATURE}.",
        f"{HEAD}.{CLAIMS}.{SIGNATURE}=",
        f"{HEAD}.{CLAIMS}.{SIGNATURE[:-4]}AAAA",
        f"{HEAD}.{CLAIMS}.{SIGNATURE}๑",
        f"{GOOD}, {GOOD}",
        f"{HEAD}.{part(PUSH).decode()}.{SIGNATURE}",
        signed(push(amount="1.00"), now=NOW),
        signed(push(), now=NOW, key="stranger"),
        token_of({"alg": "none"}, lambda start: b""),
        token_of({"alg": "none"}, rsa_signature),
        token_of({"alg": "HS256"}, hmac_with_public_key),
        token_of({"alg": "RS256"}, hmac_with_public_key),
        token_of({"alg": "rs256"}, rsa_signature),
        token_of({"alg": ["RS256"]}, rsa_signature),
        token_of({"typ": "JWT"}, rsa_signature),
        token_of({"alg": "RS256", "crit": ["b64"], "b64": False}, rsa_signature),
        token_of({"alg": "RS256"}, rsa_signature, exp=1),
        token_of({"alg": "RS256"}, rsa_signature, exp="tomorrow"),
        token_of({"alg": "RS256"}, rsa_signature, exp=True),
        token_of({"alg": "RS256"}, rsa_signature, iat=9_999_999_999),
        token_of({"alg": "RS256"}, rsa_signature, iat=None),
        token_of({"alg": "RS256"}, rsa_signature, amount="1.00"),
        token_of({"alg": "RS256"}, rsa_signature, more="fields"),
        f"{BEYOND}.{CLAIMS}.{SIGNATURE}",
    ],
)
def test_what_the_bank_did_not_sign_is_refused(token: str) -> None:
    with pytest.raises(BadSignature):
        check(token)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b"\xff", push(amount="1.00"), push(more=1), push(reference3=None), push(amount=1500)],
)
def test_the_body_must_say_what_was_signed(body: bytes) -> None:
    with pytest.raises(BadSignature):
        check(GOOD, body)


def test_no_header_is_no_signature() -> None:
    with pytest.raises(BadSignature):
        BBL.verify(headers={}, body=push(), now=NOW)


@given(st.text(), st.binary())
def test_any_header_is_judged_and_never_a_fault(value: str, sent: bytes) -> None:
    with pytest.raises(BadSignature):
        check(value, sent)


@given(st.binary(), st.binary(), st.binary())
def test_any_parts_of_a_token_are_judged_and_never_a_fault(one: bytes, two: bytes, three: bytes) -> None:
    parts = (base64.urlsafe_b64encode(each).decode().rstrip("=") for each in (one, two, three))
    with pytest.raises(BadSignature):
        check(".".join(parts))


def test_a_code_that_nobody_paid_is_answered_with_nothing(bank: BblStandIn) -> None:
    assert ask(bank).notices == ()
    (asked,) = bank.to(INQUIRY)
    assert asked.json == {
        "billerId": BILLER,
        "transDate": "2026-11-21",
        "amount": "1500.00",
        "reference1": REFERENCE,
    }


def test_a_payment_is_found_as_its_push_told_it(bank: BblStandIn) -> None:
    bank.on(INQUIRY, said(**PUSH))
    assert ask(bank).notices == (PAID,)


def test_money_that_went_back_is_found_as_two_words(bank: BblStandIn) -> None:
    bank.on(INQUIRY, said(**PUSH | {"txnType": "D"}))
    assert ask(bank).notices == (PAID, replace(PAID, kind="reversal"))


def test_two_days_are_asked_around_midnight(bank: BblStandIn) -> None:
    ask(bank, question("2026-11-21T16:50:00", "2026-11-21T17:05:00"))
    assert [each.json["transDate"] for each in bank.to(INQUIRY)] == ["2026-11-21", "2026-11-22"]


def test_we_sign_what_we_ask_and_carry_a_token(bank: BblStandIn) -> None:
    ask(bank)
    (fetched,), (asked,) = bank.to(TOKENS), bank.to(INQUIRY)
    assert fetched.body == b"grant_type=client_credentials&scope=CREATE+READ"
    basic = base64.b64encode(f"consumer:{bank.secret}".encode()).decode()
    assert fetched.headers["authorization"] == f"Basic {basic}"
    assert asked.headers["authorization"] == "Bearer token-1"
    now = datetime.fromisoformat(asked.headers["transmit-date-time"])
    assert asked.headers["transmit-date-time"].endswith("+07:00")
    signing.check(asked.headers["signature"], asked.body, public_key=key_pair("ours")[1], now=now)


def test_a_token_that_is_refused_is_renewed_once(bank: BblStandIn) -> None:
    bank.on(TOKENS, Reply(body=b'{"access_token": "a", "expires_in": 1799}'), granted("b"))
    bank.on(INQUIRY, Reply(401, body=b"{}"), said(**PUSH))
    assert ask(bank).notices == (PAID,)
    assert [each.headers["authorization"] for each in bank.to(INQUIRY)] == ["Bearer a", "Bearer b"]


@pytest.mark.parametrize(
    "reply",
    [
        said("211"), said("210"), said("888"), said(""), Reply(500, body=b'{"responseCode": "000"}'),
        Reply(429, body=b"{}"), Reply(body=b"<html>"), Reply(closes=True),
    ],
)  # fmt: skip
def test_no_answer_is_not_taken_for_no_money(bank: BblStandIn, reply: Reply) -> None:
    bank.on(INQUIRY, reply)
    with pytest.raises(NotAnswered):
        ask(bank)


@pytest.mark.parametrize(
    "changes", [{"reference1": "ANOTHER"}, {"billerId": "010555000000001"}, {"amount": "?"}, {"txnType": ""}]
)
def test_an_answer_about_money_that_cannot_be_read_is_unreadable(
    bank: BblStandIn, changes: dict[str, Any]
) -> None:
    bank.on(INQUIRY, said(**PUSH | changes))
    with pytest.raises(Unreadable) as parked:
        ask(bank)
    assert parked.value.body == said(**PUSH | changes).body
