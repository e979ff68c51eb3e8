"""The adapter to Opn Payments (Omise), with the objects of its documents."""

import base64
import itertools
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from banks import ChargeRequest, ChargeResult, TransferOrder, TransferResult, omise as adapter_module
from banks.omise import SEARCH_WINDOWS, Omise
from banks.paging import PAGE_SIZE
from core import clock
from tests.banks.fake_omise import CHARGE_ID, FakeOmise, charge, error, failed, listing, refund, response
from tests.webhook_receiver import Receiver, Reply

KEY = "skey_test_5xuy4w91xqz7d1w9u0t"
AT = datetime(2026, 11, 21, 3, 4, 5, tzinfo=UTC)
CARD: dict[str, Any] = {
    "charge_id": CHARGE_ID,
    "brand": "visa",
    "last4": "4242",
    "amount": 150_000,
    "currency": "THB",
}
RETURN_URI = "https://pay.example.com/pay/cards/pay_1"
CHARGE = ChargeRequest("pay_1", "tokn_test_1", 150_000, RETURN_URI)
REFUND = TransferOrder("ref_1", "refund", 50_000, "", "", "", CHARGE_ID)
REFUNDS = f"/charges/{CHARGE_ID}/refunds"
FIRST_PAGE = "/charges?from=2026-11-21T03%3A04%3A04.000Z&to=2026-11-21T03%3A04%3A09.000Z&limit=100&offset=0"
DECLINES = {
    "insufficient_fund": "insufficient_funds",
    "insufficient_balance": "insufficient_funds",
    "stolen_or_lost_card": "card_declined",
    "payment_rejected": "card_declined",
    "payment_cancelled": "card_declined",
    "invalid_security_code": "card_declined",
    "failed_fraud_check": "card_declined",
    "invalid_account_number": "card_declined",
    "failed_processing": "processing_error",
    "timeout": "processing_error",
    "something_new": "processing_error",
}


@pytest.fixture
def api() -> Iterator[Receiver]:
    with Receiver.running() as receiver:
        yield receiver


@pytest.fixture
def omise(api: Receiver) -> Omise:
    return Omise(KEY, api.base_url)


def test_omise_charge_request_matches_the_documentation(api: Receiver, omise: Omise) -> None:
    api.on("/charges", response(charge()))
    output = omise.charge(CHARGE)
    assert output == ChargeResult("succeeded", **CARD, paid_at=datetime(2026, 11, 21, 3, 4, 6, tzinfo=UTC))
    (request,) = api.requests
    assert request.method == "POST"
    assert request.json == {
        "amount": 150_000,
        "currency": "thb",
        "card": "tokn_test_1",
        "description": "pay_1",
        "metadata": {"order_id": "pay_1"},
        "return_uri": RETURN_URI,
    }
    assert request.headers["authorization"] == "Basic " + base64.b64encode(f"{KEY}:".encode()).decode()
    assert (request.headers["idempotency-key"], request.headers["omise-version"]) == ("pay_1", "2019-05-29")


@pytest.mark.parametrize(("code", "failure_code"), DECLINES.items())
def test_failed_omise_charge_is_declined_with_mapped_failure_code(
    api: Receiver, omise: Omise, code: str, failure_code: Any
) -> None:
    api.on("/charges", response(failed(code)))
    assert omise.charge(CHARGE) == ChargeResult("declined", **CARD, failure_code=failure_code)


@pytest.mark.parametrize(
    ("body", "status", "outcome", "failure_code"),
    [
        (error("used_token", "token was already used"), 400, "refused", "token_already_used"),
        (error("not_found", "token tokn_x was not found"), 404, "refused", "invalid_token_id"),
        (error("invalid_card_token"), 400, "refused", "invalid_token_id"),
        (error("invalid_card", "number is invalid"), 400, "refused", "invalid_token_id"),
        (error("invalid_card", "expiration date cannot be in the past"), 400, "declined", "expired_card"),
        (error("failed_fraud_check"), 400, "declined", "card_declined"),
        (error("brand_not_supported"), 400, "declined", "card_declined"),
        (error("authentication_failure"), 401, "declined", "processing_error"),
        (error("bad_request", "amount is too high"), 400, "declined", "processing_error"),
        (error("internal_error"), 500, "unknown", None),
        (error("service_unavailable"), 503, "unknown", None),
        ({}, 404, "unknown", None),
    ],
)
def test_error_object_instead_of_charge_is_classified(
    api: Receiver, omise: Omise, body: Any, status: int, outcome: Any, failure_code: Any
) -> None:
    api.on("/charges", response(body, status))
    assert omise.charge(CHARGE) == ChargeResult(outcome, failure_code=failure_code)


def test_charge_that_needs_3_d_secure_is_pending_with_authorize_uri(api: Receiver, omise: Omise) -> None:
    uri = f"https://pay.omise.co/payments/{CHARGE_ID}/authorize"
    api.on("/charges", response(charge(status="pending", authorize_uri=uri, paid=False, paid_at=None)))
    assert omise.charge(CHARGE) == ChargeResult("pending", **CARD, authorize_uri=uri)


@pytest.mark.parametrize("uri", [None, "", "javascript:alert(1)", "https://pay.omise.co/" + "x" * 1_000])
def test_unsafe_authorize_uri_is_dropped(api: Receiver, omise: Omise, uri: str | None) -> None:
    api.on("/charges", response(charge(status="pending", authorize_uri=uri, paid=False, paid_at=None)))
    assert omise.charge(CHARGE) == ChargeResult("pending", **CARD)


@pytest.mark.parametrize(
    ("changes", "amount", "currency"),
    [({"amount": 149_999}, 149_999, "THB"), ({"currency": "usd"}, 150_000, "USD")],
)
def test_charge_result_has_amount_and_currency(
    api: Receiver, omise: Omise, changes: dict[str, Any], amount: int, currency: str
) -> None:
    api.on("/charges", response(charge(**changes)))
    output = omise.charge(CHARGE)
    assert (output.outcome, output.amount, output.currency) == ("succeeded", amount, currency)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(closes=True),
        Reply(200, body=b"<html>"),
        response([]),
        response({"object": "charge"}),
        response(charge(status="new", id=None)),
    ],
)
def test_unreadable_charge_response_is_unknown(api: Receiver, omise: Omise, reply: Reply) -> None:
    api.on("/charges", reply)
    assert omise.charge(CHARGE).outcome == "unknown"


@pytest.mark.slow
def test_timeout_of_a_charge_is_unknown(api: Receiver, omise: Omise, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("banks.omise.READ_SECONDS", 0.2)
    api.on("/charges", Reply(hangs=True))
    assert omise.charge(CHARGE) == ChargeResult("unknown")


def test_charge_with_refused_connection_is_not_sent() -> None:
    omise = Omise(KEY, "http://127.0.0.1:1")
    assert omise.charge(CHARGE) == ChargeResult("not_sent")
    assert omise.find("pay_1", charge_id="", starts_at=AT) == ChargeResult("unknown")
    assert omise.send(REFUND) == TransferResult("not_sent")
    assert omise.inquire(REFUND) == TransferResult("unknown")


@pytest.mark.parametrize("name", ["American Express", "MasterCard", "JCB", "UnionPay"])
def test_card_brand_is_lower_case(api: Receiver, omise: Omise, name: str) -> None:
    api.on("/charges", response(charge(card=charge()["card"] | {"brand": name})))
    expected = {"American Express": "amex", "MasterCard": "mastercard", "JCB": "jcb", "UnionPay": "unionpay"}
    assert omise.charge(CHARGE).brand == expected[name]


# Charges that Opn publishes: its help page on fees, and the fixtures of its client libraries.
PUBLISHED_FEES = [
    {"amount": 100_000, "fee": 3_650, "fee_vat": 256, "net": 96_094},
    {"amount": 31_000, "fee": 1_132, "fee_vat": 79, "net": 29_789},
    {"amount": 12_345, "fee": 451, "fee_vat": 32, "net": 11_862},
    {"amount": 300_049, "fee": 10_952, "fee_vat": 767, "net": 288_330},
    {"amount": 5_000, "fee": 183, "fee_vat": 13, "net": 4_804},
]


@pytest.mark.parametrize("fees", PUBLISHED_FEES)
def test_published_fee_of_charge_is_read(api: Receiver, omise: Omise, fees: dict[str, Any]) -> None:
    api.on("/charges", response(charge(**fees, interest=0, interest_vat=0)))
    output = omise.charge(CHARGE)
    assert (output.fee, output.fee_vat) == (fees["fee"], fees["fee_vat"])
    assert fees["amount"] - fees["fee"] - fees["fee_vat"] == fees["net"]


def test_interest_of_instalments_is_part_of_the_fee(api: Receiver, omise: Omise) -> None:
    api.on("/charges", response(charge(fee=5_475, fee_vat=383, interest=1_110, interest_vat=78)))
    output = omise.charge(CHARGE)
    assert (output.fee, output.fee_vat) == (6_585, 461)


@pytest.mark.parametrize("status", ["pending", "failed", "expired", "reversed"])
def test_fee_of_charge_that_did_not_succeed_is_unknown(api: Receiver, omise: Omise, status: str) -> None:
    """Opn shows the fee that such a charge would have, but keeps nothing."""
    api.on("/charges", response(charge(status=status, fee=5_475, fee_vat=383)))
    output = omise.charge(CHARGE)
    assert (output.fee, output.fee_vat) == (None, None)


@pytest.mark.parametrize(
    "fees",
    [
        {},
        {"fee": 5_475},
        {"fee": None, "fee_vat": None},
        {"fee": "5475", "fee_vat": 383},
        {"fee": 5_475.5, "fee_vat": 383},
        {"fee": True, "fee_vat": 0},
        {"fee": 5_475, "fee_vat": 383, "interest": "0"},
        {"fee": 5_475, "fee_vat": 383, "interest_vat": [7]},
    ],
)
def test_missing_or_malformed_fee_is_unknown(api: Receiver, omise: Omise, fees: dict[str, Any]) -> None:
    api.on("/charges", response(charge(**fees)))
    output = omise.charge(CHARGE)
    assert (output.outcome, output.fee, output.fee_vat) == ("succeeded", None, None)


@pytest.mark.parametrize(("fee", "fee_vat"), [(-1, 0), (5_475, -383), (150_001, 0), (149_000, 1_001)])
def test_impossible_fee_is_unknown_and_logged(
    api: Receiver, omise: Omise, fee: int, fee_vat: int, caplog: pytest.LogCaptureFixture
) -> None:
    api.on("/charges", response(charge(fee=fee, fee_vat=fee_vat)))
    with caplog.at_level(logging.ERROR):
        output = omise.charge(CHARGE)
    assert (output.outcome, output.fee, output.fee_vat) == ("succeeded", None, None)
    assert f"the fee of charge {CHARGE_ID} is impossible" in caplog.text


def test_fee_is_found_by_a_later_inquiry(api: Receiver, omise: Omise) -> None:
    api.on(f"/charges/{CHARGE_ID}", response(charge()), response(charge(fee=5_475, fee_vat=383)))
    outputs = [omise.find("pay_1", charge_id=CHARGE_ID, starts_at=AT) for _ in range(2)]
    assert [(output.fee, output.fee_vat) for output in outputs] == [(None, None), (5_475, 383)]


def test_charge_with_known_id_is_fetched(api: Receiver, omise: Omise) -> None:
    api.on(f"/charges/{CHARGE_ID}", response(failed("insufficient_fund")), response(charge()))
    assert omise.find("pay_1", charge_id=CHARGE_ID, starts_at=AT).outcome == "declined"
    assert omise.find("pay_1", charge_id=CHARGE_ID, starts_at=AT).outcome == "succeeded"


@pytest.mark.parametrize("status", ["expired", "reversed"])
def test_unpaid_final_status_is_declined(api: Receiver, omise: Omise, status: str) -> None:
    api.on(f"/charges/{CHARGE_ID}", response(charge(status=status)))
    assert omise.find("pay_1", charge_id=CHARGE_ID, starts_at=AT).failure_code == "processing_error"


@pytest.mark.parametrize("shown", [error("authentication_failure"), {"object": "list"}, {"data": "x"}])
def test_charge_search_with_an_error_response_is_unknown(api: Receiver, omise: Omise, shown: Any) -> None:
    api.on(FIRST_PAGE, response(shown))
    assert omise.find("pay_1", charge_id="", starts_at=AT) == ChargeResult("unknown")


def test_omise_refund_request_matches_the_documentation(api: Receiver, omise: Omise) -> None:
    api.on(REFUNDS, response(refund()))
    assert omise.send(REFUND) == TransferResult("succeeded", refund()["id"])
    (request,) = api.requests
    assert (request.method, request.json) == ("POST", {"amount": 50_000, "metadata": {"order_id": "ref_1"}})
    assert request.headers["idempotency-key"] == "ref_1"


@pytest.mark.parametrize(
    ("reply", "result"),
    [
        (response(refund(status="pending")), TransferResult("processing", refund()["id"])),
        (response(refund(status="failed")), TransferResult("failed", refund()["id"], "rejected_by_acquirer")),
        (
            response(error("failed_refund"), 400),
            TransferResult("failed", failure_code="rejected_by_acquirer"),
        ),
        (response(error("not_found"), 404), TransferResult("failed", failure_code="rejected_by_acquirer")),
        (response(error("authentication_failure"), 401), TransferResult("not_sent")),
        (response(error("internal_error"), 500), TransferResult("unknown")),
        (Reply(closes=True), TransferResult("unknown")),
    ],
)
def test_refund_response_is_classified(
    api: Receiver, omise: Omise, reply: Reply, result: TransferResult
) -> None:
    api.on(REFUNDS, reply)
    assert omise.send(REFUND) == result


def test_refund_is_found_by_order_id(api: Receiver, omise: Omise) -> None:
    listed = listing(refund("ref_2", id="rfnd_2"), refund())
    api.on(f"{REFUNDS}?limit=100&offset=0", response(listing()), response(listed))
    assert omise.inquire(REFUND) == TransferResult("unknown")
    assert omise.inquire(REFUND) == TransferResult("succeeded", refund()["id"])


def test_refund_on_later_page_is_found(api: Receiver, omise: Omise) -> None:
    others = [refund(f"ref_x{number}", id=f"rfnd_{number}") for number in range(PAGE_SIZE)]
    api.on(f"{REFUNDS}?limit=100&offset=0", response(listing(*others, total=101)))
    api.on(f"{REFUNDS}?limit=100&offset=100", response(listing(refund(), total=101)))
    assert omise.inquire(REFUND) == TransferResult("succeeded", refund()["id"])


def test_acquirer_key_and_card_token_are_not_logged(
    api: Receiver, omise: Omise, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    api.on("/charges", response(charge()))
    omise.charge(CHARGE)
    shown = repr(CHARGE) + repr(omise) + caplog.text
    assert CHARGE.token not in shown and KEY not in shown


# A charge without a known id is searched among all charges of its time.
STORED_AT = datetime(2026, 11, 21, 3, 4, 5, 678_000, tzinfo=UTC)
FIRST, LAST = min(begin for begin, _ in SEARCH_WINDOWS), max(end for _, end in SEARCH_WINDOWS)


@pytest.fixture
def fake() -> Iterator[FakeOmise]:
    with FakeOmise.running() as acquirer:
        yield acquirer


def find(fake: FakeOmise) -> ChargeResult:
    return Omise("skey_test_1", fake.base_url).find("pay_1", charge_id="", starts_at=STORED_AT)


def add_charges(
    fake: FakeOmise, per_second: int, *, seconds: int = 600, ours_after: float | None = 2.0
) -> None:
    """Add other charges in each second around ours, which is made `ours_after` seconds after STORED_AT."""
    for second in range(-seconds, seconds):
        for number in range(per_second):
            fake.add(f"pay_x{second}_{number}", STORED_AT + timedelta(seconds=second))
    if ours_after is not None:
        fake.add("pay_1", STORED_AT + timedelta(seconds=ours_after))
        fake.charges.sort(key=lambda charge: str(charge["created_at"]))


@pytest.mark.slow
def test_charge_is_found_at_ten_charges_a_second(fake: FakeOmise) -> None:
    add_charges(fake, 10)
    assert len(fake.charges) > 10_000
    assert find(fake).outcome == "succeeded"
    assert len(fake.pages) <= 2


@pytest.mark.slow
def test_charge_is_found_at_a_hundred_charges_a_second(fake: FakeOmise) -> None:
    add_charges(fake, 100, seconds=70, ours_after=3.0)
    assert find(fake).outcome == "succeeded"


@pytest.mark.parametrize("after", [-59.0, -1.0, 0.0, 4.0, 14.0, 43.0, 59.0, 119.0])
def test_charge_is_found_in_every_second_of_search_window(fake: FakeOmise, after: float) -> None:
    fake.add("pay_1", STORED_AT + timedelta(seconds=after))
    assert find(fake).outcome == "succeeded"


@pytest.mark.slow
def test_charge_outside_all_pages_is_missing(fake: FakeOmise) -> None:
    add_charges(fake, 3, ours_after=None)
    assert find(fake) == ChargeResult("missing")
    second = STORED_AT.replace(microsecond=0)
    windows = sorted((page["from"], page["to"]) for page in fake.pages)
    assert windows[0][0] == clock.iso(second + timedelta(seconds=FIRST))
    assert max(end for _, end in windows) == clock.iso(second + timedelta(seconds=LAST))
    assert all(begin < end for (_, end), (begin, _) in itertools.pairwise(windows))  # no gaps


def test_charge_search_reads_short_pages_to_the_end(fake: FakeOmise) -> None:
    fake.page_limit = 7
    add_charges(fake, 10, seconds=10, ours_after=3.0)
    assert find(fake).outcome == "succeeded"


def test_charge_search_in_an_incomplete_list_is_unknown(fake: FakeOmise) -> None:
    add_charges(fake, 1, seconds=10, ours_after=None)
    fake.hides_rows = True
    assert find(fake) == ChargeResult("unknown")


@pytest.mark.parametrize(("limit", "value"), [("MAX_PAGES", 3), ("SEARCH_SECONDS", -1.0)])
def test_charge_search_beyond_the_page_limit_is_unknown_and_logged(
    fake: FakeOmise,
    limit: str,
    value: float,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(adapter_module, limit, value)
    add_charges(fake, 100, seconds=10, ours_after=None)
    with caplog.at_level(logging.ERROR):
        assert find(fake) == ChargeResult("unknown")
    assert "pay_1 is not found: too many charges" in caplog.text
