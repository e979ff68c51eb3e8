"""The adapter to Opn Payments (Omise), against a stand-in that answers as its documentation says."""

import base64
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from banks import Charge, Order, Said, Word
from banks.omise import PAGE, Omise
from tests import receiver
from tests.banks.omise_cast import CHARGE_ID, charge, error, failed, listing, refund
from tests.receiver import Receiver, Reply

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
ASKED = Charge("pay_1", "tokn_test_1", 150_000, RETURN_URI)
REFUND = Order("ref_1", "refund", 50_000, "", "", "", CHARGE_ID)
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
    with receiver.listening() as listening:
        yield listening


@pytest.fixture
def omise(api: Receiver) -> Omise:
    return Omise(KEY, api.base_url)


def says(told: Any, status: int = 200) -> Reply:
    return Reply(status, {"Content-Type": "application/json"}, orjson.dumps(told))


def test_a_charge_is_asked_for_as_documented(api: Receiver, omise: Omise) -> None:
    api.on("/charges", says(charge()))
    said = omise.charge(ASKED)
    assert said == Said("succeeded", **CARD, paid_at=datetime(2026, 11, 21, 3, 4, 6, tzinfo=UTC))
    (request,) = api.requests
    assert (request.method, request.json) == (
        "POST",
        {
            "amount": 150_000,
            "currency": "thb",
            "card": "tokn_test_1",
            "description": "pay_1",
            "metadata": {"order_id": "pay_1"},
            "return_uri": RETURN_URI,
        },
    )
    assert request.headers["authorization"] == "Basic " + base64.b64encode(f"{KEY}:".encode()).decode()
    assert (request.headers["idempotency-key"], request.headers["omise-version"]) == ("pay_1", "2019-05-29")


@pytest.mark.parametrize(("theirs", "ours"), DECLINES.items())
def test_a_failed_charge_is_a_decline_in_our_words(
    api: Receiver, omise: Omise, theirs: str, ours: Any
) -> None:
    api.on("/charges", says(failed(theirs)))
    assert omise.charge(ASKED) == Said("declined", **CARD, failure_code=ours)


@pytest.mark.parametrize(
    ("told", "status", "said"),
    [
        (
            error("used_token", "token was already used"),
            400,
            Said("refused", failure_code="token_already_used"),
        ),
        (
            error("not_found", "token tokn_x was not found"),
            404,
            Said("refused", failure_code="invalid_token_id"),
        ),
        (error("invalid_card_token"), 400, Said("refused", failure_code="invalid_token_id")),
        (error("invalid_card", "number is invalid"), 400, Said("refused", failure_code="invalid_token_id")),
        (
            error("invalid_card", "expiration date cannot be in the past"),
            400,
            Said("declined", failure_code="expired_card"),
        ),
        (error("failed_fraud_check"), 400, Said("declined", failure_code="card_declined")),
        (error("brand_not_supported"), 400, Said("declined", failure_code="card_declined")),
        (error("authentication_failure"), 401, Said("declined", failure_code="processing_error")),
        (error("bad_request", "amount is too high"), 400, Said("declined", failure_code="processing_error")),
        (error("internal_error"), 500, Said("unknown")),
        (error("service_unavailable"), 503, Said("unknown")),
        ({}, 404, Said("unknown")),
    ],
)
def test_an_error_in_the_place_of_a_charge(
    api: Receiver, omise: Omise, told: Any, status: int, said: Said
) -> None:
    api.on("/charges", says(told, status))
    assert omise.charge(ASKED) == said


def test_charge_that_waits_for_3_d_secure_is_pending_and_names_the_page(api: Receiver, omise: Omise) -> None:
    uri = f"https://pay.omise.co/payments/{CHARGE_ID}/authorize"
    api.on("/charges", says(charge(status="pending", authorize_uri=uri, paid=False, paid_at=None)))
    assert omise.charge(ASKED) == Said("pending", **CARD, authorize_uri=uri)


@pytest.mark.parametrize("uri", [None, "", "javascript:alert(1)", "https://pay.omise.co/" + "x" * 1_000])
def test_page_that_no_browser_should_open_is_left_out(api: Receiver, omise: Omise, uri: str | None) -> None:
    api.on("/charges", says(charge(status="pending", authorize_uri=uri, paid=False, paid_at=None)))
    assert omise.charge(ASKED) == Said("pending", **CARD)


@pytest.mark.parametrize(
    ("changes", "amount", "currency"),
    [({"amount": 149_999}, 149_999, "THB"), ({"currency": "usd"}, 150_000, "USD")],
)
def test_amount_and_currency_of_the_charge_are_told(
    api: Receiver, omise: Omise, changes: dict[str, Any], amount: int, currency: str
) -> None:
    api.on("/charges", says(charge(**changes)))
    said = omise.charge(ASKED)
    assert (said.outcome, said.amount, said.currency) == ("succeeded", amount, currency)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(closes=True),
        Reply(200, body=b"<html>"),
        says([]),
        says({"object": "charge"}),
        says(charge(status="odd", id=None)),
    ],
)
def test_an_answer_that_cannot_be_read_leaves_it_unknown(api: Receiver, omise: Omise, reply: Reply) -> None:
    api.on("/charges", reply)
    assert omise.charge(ASKED).outcome == "unknown"


def test_silence_leaves_it_unknown(api: Receiver, omise: Omise, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("banks.omise.READ_SECONDS", 0.2)
    api.on("/charges", Reply(hangs=True))
    assert omise.charge(ASKED) == Said("unknown")


def test_nobody_there_is_known_to_have_charged_nothing() -> None:
    omise = Omise(KEY, "http://127.0.0.1:1")
    assert omise.charge(ASKED) == Said("not_sent")
    assert omise.find("pay_1", charge_id="", since=AT) == Said("unknown")
    assert omise.send(REFUND) == Word("not_sent")
    assert omise.inquire(REFUND) == Word("unknown")


@pytest.mark.parametrize("name", ["American Express", "MasterCard", "JCB", "UnionPay"])
def test_brands_are_lower_case(api: Receiver, omise: Omise, name: str) -> None:
    api.on("/charges", says(charge(card=charge()["card"] | {"brand": name})))
    expected = {"American Express": "amex", "MasterCard": "mastercard", "JCB": "jcb", "UnionPay": "unionpay"}
    assert omise.charge(ASKED).brand == expected[name]


def test_a_charge_whose_id_is_known_is_read(api: Receiver, omise: Omise) -> None:
    api.on(f"/charges/{CHARGE_ID}", says(failed("insufficient_fund")), says(charge()))
    assert omise.find("pay_1", charge_id=CHARGE_ID, since=AT).outcome == "declined"
    assert omise.find("pay_1", charge_id=CHARGE_ID, since=AT).outcome == "succeeded"


@pytest.mark.parametrize("status", ["expired", "reversed"])
def test_a_charge_that_ended_unpaid_is_a_decline(api: Receiver, omise: Omise, status: str) -> None:
    api.on(f"/charges/{CHARGE_ID}", says(charge(status=status)))
    assert omise.find("pay_1", charge_id=CHARGE_ID, since=AT).failure_code == "processing_error"


@pytest.mark.parametrize("told", [error("authentication_failure"), {"object": "list"}, {"data": "x"}])
def test_no_list_proves_nothing(api: Receiver, omise: Omise, told: Any) -> None:
    api.on(FIRST_PAGE, says(told))
    assert omise.find("pay_1", charge_id="", since=AT) == Said("unknown")


def test_a_refund_is_asked_for_as_documented(api: Receiver, omise: Omise) -> None:
    api.on(REFUNDS, says(refund()))
    assert omise.send(REFUND) == Word("succeeded", refund()["id"])
    (request,) = api.requests
    assert (request.method, request.json) == ("POST", {"amount": 50_000, "metadata": {"order_id": "ref_1"}})
    assert request.headers["idempotency-key"] == "ref_1"


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        (says(refund(status="pending")), Word("processing", refund()["id"])),
        (says(refund(status="failed")), Word("failed", refund()["id"], "rejected_by_acquirer")),
        (says(error("failed_refund"), 400), Word("failed", failure_code="rejected_by_acquirer")),
        (says(error("not_found"), 404), Word("failed", failure_code="rejected_by_acquirer")),
        (says(error("authentication_failure"), 401), Word("not_sent")),
        (says(error("internal_error"), 500), Word("unknown")),
        (Reply(closes=True), Word("unknown")),
    ],
)
def test_what_is_said_of_a_refund(api: Receiver, omise: Omise, reply: Reply, word: Word) -> None:
    api.on(REFUNDS, reply)
    assert omise.send(REFUND) == word


def test_a_refund_is_found_by_our_id_among_those_of_its_charge(api: Receiver, omise: Omise) -> None:
    listed = listing(refund("ref_2", id="rfnd_2"), refund())
    api.on(f"{REFUNDS}?limit=100&offset=0", says(listing()), says(listed))
    assert omise.inquire(REFUND) == Word("unknown")
    assert omise.inquire(REFUND) == Word("succeeded", refund()["id"])


def test_a_refund_is_found_also_on_a_later_page(api: Receiver, omise: Omise) -> None:
    others = [refund(f"ref_x{number}", id=f"rfnd_{number}") for number in range(PAGE)]
    api.on(f"{REFUNDS}?limit=100&offset=0", says(listing(*others, total=101)))
    api.on(f"{REFUNDS}?limit=100&offset=100", says(listing(refund(), total=101)))
    assert omise.inquire(REFUND) == Word("succeeded", refund()["id"])


def test_neither_key_nor_token_is_shown_or_logged(
    api: Receiver, omise: Omise, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    api.on("/charges", says(charge()))
    omise.charge(ASKED)
    shown = repr(ASKED) + repr(omise) + caplog.text
    assert ASKED.token not in shown and KEY not in shown
