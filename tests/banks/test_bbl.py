"""Bangkok Bank: signed notifications and inquiries."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from hypothesis import given, strategies as st

import banks
from banks import (
    AdapterConfig,
    InquiryFailed,
    InquiryRequest,
    InvalidSignature,
    ReportedTransaction,
    UnreadableMessage,
    jwt,
)
from banks.bbl import Bbl
from tests.banks.fake_bbl import (
    BILLER,
    CHARGE,
    INQUIRY,
    PAID_AT,
    PUSH,
    REFERENCE,
    TOKENS,
    FakeBbl,
    credentials,
    key_pair,
    push,
    response,
    signed,
    token_response,
)
from tests.webhook_receiver import Reply

NOW = datetime(2026, 11, 21, 4, 5, tzinfo=UTC)
BBL = Bbl(AdapterConfig("bbl", BILLER, credentials()))
PAID = ReportedTransaction(
    bank_reference=CHARGE,
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
def bank() -> Iterator[FakeBbl]:
    with FakeBbl.running() as bank:
        yield bank


def question(since: str = "2026-11-21T04:00:00", until: str = "2026-11-21T04:15:00") -> InquiryRequest:
    """UTC."""
    ends = [datetime.fromisoformat(end).replace(tzinfo=UTC) for end in (since, until)]
    return InquiryRequest(BILLER, REFERENCE, 150_000, *ends)


def ask(bank: FakeBbl, inquiry: InquiryRequest | None = None) -> banks.InquiryResult:
    return banks.get("bbl", bank.config).inquire(inquiry or question())


def check(token: str, body: bytes | None = None, *, now: datetime = NOW) -> None:
    BBL.verify(headers={"Signature": token}, body=push() if body is None else body, now=now)


def test_notification_is_parsed_into_satang_and_utc() -> None:
    assert BBL.parse_notification(push()) == PAID


def test_cancelled_payment_is_parsed_as_reversal_with_same_id() -> None:
    assert BBL.parse_notification(push(txnType="D")) == replace(PAID, kind="reversal")


@pytest.mark.parametrize("flag", ["Y", "N", "", None])
def test_repeated_notification_has_same_id_whatever_the_retry_flag(flag: str | None) -> None:
    assert BBL.parse_notification(push(retryFlag=flag)) == PAID


MALFORMED_FIELDS: dict[str, list[Any]] = {
    "billerId": [None, "010555000000001"],
    "transDate": ["21112026", "2026-02-30"],
    "transTime": ["11:04", "25:00:00"],
    "amount": ["0.00", None, "1,500.00"],
    "reference1": ["", "A" * 21],
    "reference2": ["A" * 21],
    "bankRef": ["", "a.b", "1" * 35],
    "txnType": ["X", None],
}


def test_malformed_required_field_makes_message_unreadable() -> None:
    for name, value in [(name, value) for name, values in MALFORMED_FIELDS.items() for value in values]:
        with pytest.raises(UnreadableMessage):
            BBL.parse_notification(push(**{name: value}))


@pytest.mark.parametrize(
    ("name", "field", "values"),
    [
        ("fromName", "payer_name", [None, 7, "ก" * 141, "a\tb", "\x9b"]),
        ("fromBank", "payer_bank_code", [None, "4", 4, "0004"]),
    ],
)
def test_malformed_optional_notification_field_becomes_empty(
    name: str, field: str, values: list[Any]
) -> None:
    empty: dict[str, Any] = {field: ""}
    for value in values:
        assert BBL.parse_notification(push(**{name: value})) == replace(PAID, **empty)


def test_longest_transaction_id_fits_the_column() -> None:
    assert len(BBL.parse_notification(push(bankRef="1" * 34)).bank_reference) == 64


@pytest.mark.parametrize("notification", [PAID, None])
def test_notification_is_acknowledged_with_success(notification: ReportedTransaction | None) -> None:
    assert BBL.acknowledge(notification) == {"responseCode": "000", "responseMesg": "Success"}


@pytest.mark.parametrize("header", [{"Signature": "{}"}, {"Authorization": "Bearer {}"}])
def test_signed_notification_is_accepted(header: dict[str, str]) -> None:
    token = signed(push(), now=NOW)
    headers = {name: value.format(token) for name, value in header.items()}
    BBL.verify(headers=headers, body=push(), now=NOW)


def test_signature_ignores_field_order_and_json_escapes() -> None:
    again = json.dumps(dict(reversed(PUSH.items())), ensure_ascii=False, indent=2).encode()
    check(signed(push(), now=NOW), again)


@pytest.mark.parametrize(("minutes", "is_good"), [(-6, False), (-5, True), (1445, True), (1446, False)])
def test_jwt_is_valid_between_iat_and_exp(minutes: int, is_good: bool) -> None:
    token, at = signed(push(), now=NOW), NOW + timedelta(minutes=minutes)
    if is_good:
        check(token, now=at)
        return
    with pytest.raises(InvalidSignature):
        check(token, now=at)


def part(shown: Any) -> bytes:
    return base64.urlsafe_b64encode(json.dumps(shown).encode()).rstrip(b"=")


def token_of(header: dict[str, Any], sign: Callable[[bytes], bytes], **claims: Any) -> str:
    start = part(header) + b"." + part(PUSH | claims)
    return (start + b"." + base64.urlsafe_b64encode(sign(start)).rstrip(b"=")).decode()


def hmac_with_public_key(start: bytes) -> bytes:
    return hmac.new(key_pair("bank")[1].encode(), start, hashlib.sha256).digest()


def rsa_signature(start: bytes) -> bytes:
    """The bank's signature of these bytes, without `jwt.sign`."""
    signature: bytes = bank_key().sign(start, PKCS1v15(), SHA256())
    return signature


@cache
def bank_key() -> Any:
    """Loading a key takes 35 ms."""
    return load_pem_private_key(key_pair("bank")[0].encode(), password=None)


@pytest.mark.parametrize("times", [{}, {"iat": NOW.timestamp() + 0.5, "exp": NOW.timestamp() + 60.25}])
def test_jwt_times_may_be_missing_or_fractional(times: dict[str, float]) -> None:
    check(token_of({"alg": "RS256", "typ": "JWT"}, rsa_signature, **times))


GOOD = signed(push(), now=NOW)
HEAD, CLAIMS, SIGNATURE = GOOD.split(".")
BEYOND = base64.urlsafe_b64encode(b'{"alg":0e99999999999999999999}').decode().rstrip("=")


def test_invalid_signature_is_refused() -> None:
    for token in [
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
    ]:
        with pytest.raises(InvalidSignature):
            check(token)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b"\xff", push(amount="1.00"), push(more=1), push(reference3=None), push(amount=1500)],
)
def test_body_that_differs_from_jwt_claims_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidSignature):
        check(GOOD, body)


def test_missing_signature_header_is_refused() -> None:
    with pytest.raises(InvalidSignature):
        BBL.verify(headers={}, body=push(), now=NOW)


@given(st.binary(), st.binary(), st.binary())
def test_arbitrary_jwt_parts_raise_only_invalid_signature(one: bytes, two: bytes, three: bytes) -> None:
    parts = (base64.urlsafe_b64encode(each).decode().rstrip("=") for each in (one, two, three))
    with pytest.raises(InvalidSignature):
        check(".".join(parts))


@pytest.mark.slow
def test_inquiry_of_unpaid_code_finds_no_transactions(bank: FakeBbl) -> None:
    assert ask(bank).transactions == ()
    (request,) = bank.to(INQUIRY)
    assert request.json == {
        "billerId": BILLER,
        "transDate": "2026-11-21",
        "amount": "1500.00",
        "reference1": REFERENCE,
    }


def test_inquiry_finds_same_transaction_as_notification(bank: FakeBbl) -> None:
    bank.on(INQUIRY, response(**PUSH))
    assert ask(bank).transactions == (PAID,)


def test_inquiry_of_reversed_payment_finds_credit_and_reversal(bank: FakeBbl) -> None:
    bank.on(INQUIRY, response(**PUSH | {"txnType": "D"}))
    assert ask(bank).transactions == (PAID, replace(PAID, kind="reversal"))


def test_inquiry_around_midnight_asks_two_days(bank: FakeBbl) -> None:
    ask(bank, question("2026-11-21T16:50:00", "2026-11-21T17:05:00"))
    assert [each.json["transDate"] for each in bank.to(INQUIRY)] == ["2026-11-21", "2026-11-22"]


def test_api_request_is_signed_and_has_access_token(bank: FakeBbl) -> None:
    ask(bank)
    (fetched,), (request,) = bank.to(TOKENS), bank.to(INQUIRY)
    assert fetched.body == b"grant_type=client_credentials&scope=CREATE+READ"
    basic = base64.b64encode(f"consumer:{bank.secret}".encode()).decode()
    assert fetched.headers["authorization"] == f"Basic {basic}"
    assert request.headers["authorization"] == "Bearer token-1"
    now = datetime.fromisoformat(request.headers["transmit-date-time"])
    assert request.headers["transmit-date-time"].endswith("+07:00")
    jwt.verify(request.headers["signature"], request.body, public_key=key_pair("ours")[1], now=now)


def test_refused_access_token_is_renewed_once(bank: FakeBbl) -> None:
    bank.on(TOKENS, Reply(body=b'{"access_token": "a", "expires_in": 1799}'), token_response("b"))
    bank.on(INQUIRY, Reply(401, body=b"{}"), response(**PUSH))
    assert ask(bank).transactions == (PAID,)
    assert [each.headers["authorization"] for each in bank.to(INQUIRY)] == ["Bearer a", "Bearer b"]


@pytest.mark.parametrize(
    "reply",
    [
        response("211"), response("210"), response("888"), response(""),
        Reply(500, body=b'{"responseCode": "000"}'), Reply(429, body=b"{}"),
        Reply(body=b"<html>"), Reply(closes=True),
    ],
)  # fmt: skip
def test_failed_inquiry_is_not_taken_as_unpaid(bank: FakeBbl, reply: Reply) -> None:
    bank.on(INQUIRY, reply)
    with pytest.raises(InquiryFailed):
        ask(bank)


@pytest.mark.parametrize(
    "changes", [{"reference1": "ANOTHER"}, {"billerId": "010555000000001"}, {"amount": "?"}, {"txnType": ""}]
)
def test_unparsable_inquiry_response_is_unreadable_message(bank: FakeBbl, changes: dict[str, Any]) -> None:
    bank.on(INQUIRY, response(**PUSH | changes))
    with pytest.raises(UnreadableMessage) as unreadable:
        ask(bank)
    assert unreadable.value.body == response(**PUSH | changes).body
