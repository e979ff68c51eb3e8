"""Each exception of a payment sends an event when it opens, and another one when it is resolved."""

from collections.abc import Callable
from typing import Any

import pytest
from pytest_django import Settings

from banks import TransferResult
from merchants.models import LateMoneyPolicy
from reconciliation.models import BankTransaction
from tests.reconciliation.builders import (
    RESOLVES,
    Seller,
    decide,
    events_of,
    reversal_of,
    run_returns,
    staff_client,
)
from tests.reconciliation.exceptions.test_bulk_acts import choices_of, choose, send
from tests.reconciliation.statements.statement_files import report_twice
from tests.transfers.builders import Bank
from webhooks.models import Delivery, Event

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
Serving = Callable[..., Bank]
OPENED, RESOLVED = "payment.exception", "payment.exception_resolved"
DONE, REFUSED = TransferResult("succeeded", "b-1"), TransferResult("failed", "b-1", "closed")


def told(bank_transaction: BankTransaction) -> list[tuple[str, str]]:
    """The types of an exception's events, and its status in them."""
    return [(kind, data["exception"]["status"]) for kind, data in events_of(bank_transaction.id)]


@pytest.mark.parametrize(
    ("make", "reason", "status", "received"),
    [
        (Seller.mismatch, "amount_mismatch", "pending", 149_900),
        (Seller.late, "late", "pending", 150_000),
        (Seller.duplicate, "duplicate", "succeeded", None),
    ],
)
def test_event_shows_the_payment_and_the_exception(
    seller: Seller, make: Callable[[Seller], BankTransaction], reason: str, status: str, received: int | None
) -> None:
    bank_transaction = make(seller)
    shown = seller.shop.payment(str(bank_transaction.payment_id))
    ((kind, data),) = events_of(bank_transaction.id)
    assert (kind, data["status"], data["amount_received"]) == (OPENED, status, received)
    assert data["exception"] == shown["exceptions"][0]
    assert (data["exception"]["reason"], data["exception"]["status"]) == (reason, "open")
    same = ("payment_id", "amount", "currency", "qr_code_id", "reference", "metadata", "failure_code")
    assert {name: data[name] for name in same} == {name: shown[name] for name in same}


def test_money_without_a_payment_sends_no_event(seller: Seller) -> None:
    bank_transaction = seller.unmatched()
    decide("attach", bank_transaction, payment_id=seller.shop.qr_code()["payment_id"])
    assert not Event.objects.filter(type__startswith="payment.exception").exists()


def test_only_webhooks_that_subscribe_get_the_events(seller: Seller, settings: Settings) -> None:
    settings.WEBHOOK_PROBE = "off"
    made = [
        seller.shop.post("/v1/webhooks", {"url": f"https://shop.example/{index}", "events": events}).json()
        for index, events in enumerate([["payment.succeeded"], [OPENED], [RESOLVED]])
    ]
    decide("accept", seller.mismatch())
    sent = Delivery.objects.filter(event_type__startswith="payment.exception")
    expected = {(made[1]["webhook_id"], OPENED), (made[2]["webhook_id"], RESOLVED)}
    assert set(sent.values_list("endpoint_id", "event_type")) == expected


def accepted(seller: Seller) -> BankTransaction:
    decide("accept", bank_transaction := seller.mismatch())
    return bank_transaction


def attached(seller: Seller) -> BankTransaction:
    decide("attach", bank_transaction := seller.duplicate(), payment_id=seller.shop.qr_code()["payment_id"])
    return bank_transaction


def returned_by_hand(seller: Seller) -> BankTransaction:
    decide("record_manual_return", bank_transaction := seller.late(), bank_reference="counter 7")
    return bank_transaction


def taken_back(seller: Seller) -> BankTransaction:
    seller.reverse(bank_transaction := seller.duplicate())
    return bank_transaction


def accepted_by_the_merchant(seller: Seller) -> BankTransaction:
    seller.decide("accept", bank_transaction := seller.late())
    return bank_transaction


def accepted_with_others(seller: Seller) -> BankTransaction:
    bank_transactions, malee = [seller.mismatch(), seller.late()], staff_client("malee", *RESOLVES)
    send(malee, "accept", choices_of(choose(malee, "accept", bank_transactions)))
    assert told(bank_transactions[0]) == told(bank_transactions[1])
    return bank_transactions[0]


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (accepted, "accepted"),
        (attached, "attached"),
        (returned_by_hand, "sent_back"),
        (taken_back, "taken_back"),
        (accepted_by_the_merchant, "accepted"),
        (accepted_with_others, "accepted"),
    ],
)
def test_each_end_of_an_exception_sends_one_event(
    seller: Seller, end: Callable[[Seller], BankTransaction], status: str
) -> None:
    bank_transaction = end(seller)
    assert told(bank_transaction) == [(OPENED, "open"), (RESOLVED, status)]


def test_merged_and_reopened_exception_sends_events(seller: Seller) -> None:
    held = report_twice(seller)
    for action in ("merge", "reopen"):
        decide(action, held)
    assert told(held) == [(OPENED, "open"), (RESOLVED, "merged"), (OPENED, "open")]


def test_return_sends_its_event_when_the_bank_has_sent_the_money(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[DONE])
    seller.decide("return", bank_transaction := seller.duplicate())
    assert told(bank_transaction) == [(OPENED, "open")]
    run_returns()
    assert told(bank_transaction) == [(OPENED, "open"), (RESOLVED, "sent_back")]


def test_return_that_the_bank_refuses_opens_the_exception_again(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[REFUSED])
    seller.decide("return", bank_transaction := seller.mismatch())
    run_returns()
    assert told(bank_transaction) == [(OPENED, "open"), (OPENED, "open")]
    assert seller.shop.payment(str(bank_transaction.payment_id))["amount_received"] == 149_900


def test_late_money_accepted_by_policy_was_never_open(seller: Seller) -> None:
    seller.shop.merchant.late_money = LateMoneyPolicy.ACCEPT
    seller.shop.merchant.save()
    assert told(seller.late()) == [(RESOLVED, "accepted")]


def test_repeated_report_sends_no_second_event(seller: Seller) -> None:
    bank_transaction = seller.mismatch()
    code: dict[str, Any] = seller.shop.get(f"/v1/qr-codes/{qr_code_of(seller, bank_transaction)}").json()
    seller.report(code, satang=149_900, transaction_id=bank_transaction.bank_reference)
    assert told(bank_transaction) == [(OPENED, "open")]


def qr_code_of(seller: Seller, bank_transaction: BankTransaction) -> str:
    return str(seller.shop.payment(str(bank_transaction.payment_id))["qr_code_id"])


def test_reversal_of_a_paid_payment_is_no_exception(seller: Seller) -> None:
    paid = seller.sale()
    assert seller.bank.post(reversal_of(paid)).status_code == 200
    assert told(paid) == []
