"""A refund that waits for a destination goes to the payer when the bank reports the account, and once."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext

import banks
from core import clock
from reconciliation.matching import intake
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop, new_client, open_shop
from tests.reconciliation.builders import Seller, parse, reversal_of
from tests.reconciliation.statements.statement_files import (
    bot_file,
    confirm_all_transactions,
    credit_line,
    import_file,
)
from tests.refunds.builders import PAYEE, error_of, send_due_refunds
from tests.timeline.builders import types
from transfers.models import Transfer

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
NAMED = "THEBANKSOWNID0000000"
TO_PAYER, TO_PAYEE = ("014", "1234567890", "Somchai Jaidee"), ("004", "4051234567", "สมหญิง ใจดี")


@pytest.fixture
def seller(shop: Shop, bank: SandboxBankClient) -> Seller:
    return Seller(shop, bank)


def paid_by_statement(seller: Seller, **fields: Any) -> dict[str, Any]:
    """Return the callback of a payment that a statement reported before, without the payer."""
    code, paid_at = seller.shop.qr_code(**fields), clock.now().replace(microsecond=0)
    assert import_file(bot_file(credit_line(code, paid_at, name="", payer_bank=""))).is_clean
    confirm_all_transactions()
    notification = seller.bank.notification(code, paid_at=paid_at, transaction_id=NAMED)
    return notification | {"payment_id": code["payment_id"]}


def notify(seller: Seller, notification: dict[str, Any], **changes: Any) -> None:
    assert notification_call(seller, notification, **changes)().status_code == 200


def notification_call(seller: Seller, notification: dict[str, Any], **changes: Any) -> Callable[[], Any]:
    body = {name: value for name, value in notification.items() if name != "payment_id"}
    return partial(SandboxBankClient(new_client()).post, body | changes)


def destination(refund: dict[str, Any]) -> tuple[str, str, str] | None:
    order = Transfer.objects.filter(pk=refund["refund_id"]).first()
    return None if order is None else (order.bank_code, order.account, order.account_name)


def pending_reason(seller: Seller, refund: dict[str, Any]) -> str | None:
    found: str | None = seller.read(refund)["pending_reason"]
    return found


def test_waiting_refund_goes_to_the_payer_of_a_later_notification(
    seller: Seller, noon: datetime, served_by: Any
) -> None:
    bank = served_by()
    with time_machine.travel(noon, tick=False) as now:
        notification = paid_by_statement(seller)
        refund = seller.refund(notification["payment_id"])
        assert (refund["pending_reason"], destination(refund)) == ("awaiting_destination", None)
        now.shift(timedelta(minutes=1))
        notify(seller, notification)
        addressed = seller.read(refund)
        assert addressed == refund | {
            "pending_reason": "processing",
            "updated_at": "2026-11-21T05:01:00.000Z",
        }
        assert destination(refund) == TO_PAYER
        assert types(seller.shop, notification["payment_id"])[-1] == "refund.addressed"
        send_due_refunds(2)
    assert (bank.sent, seller.read(refund)["status"]) == ([refund["refund_id"]], "completed")


def test_only_waiting_refunds_go_to_the_payer_of_a_later_notification(
    seller: Seller,
) -> None:
    notification = paid_by_statement(seller)
    first, second, given, canceled = [seller.refund(notification["payment_id"], amount=100) for _ in range(4)]
    seller.act(given, "destination", PAYEE)
    seller.act(canceled, "cancel")
    notify(seller, notification)
    assert [destination(each) for each in (first, second, given, canceled)] == [
        TO_PAYER, TO_PAYER, TO_PAYEE, None,
    ]  # fmt: skip
    assert error_of(seller.act(first, "destination", PAYEE))[1] == "refund_not_addressable"


def test_repeated_notification_queues_one_transfer(seller: Seller) -> None:
    notification = paid_by_statement(seller)
    seller.refund(notification["payment_id"])
    for _ in range(3):
        notify(seller, notification)
    assert Transfer.objects.count() == 1


def test_refund_waits_if_the_payers_account_is_invalid(seller: Seller) -> None:
    notification = paid_by_statement(seller)
    refund = seller.refund(notification["payment_id"])
    notify(seller, notification, payer_account="123456789012")
    assert (pending_reason(seller, refund), destination(refund)) == ("awaiting_destination", None)
    assert seller.act(refund, "destination", PAYEE).status_code == 200


def test_notification_is_accepted_and_refund_waits_if_no_bank_can_send(
    seller: Seller, monkeypatch: pytest.MonkeyPatch
) -> None:
    notification = paid_by_statement(seller)
    refund = seller.refund(notification["payment_id"])

    def nobody(route: str, link: Any = None) -> Any:
        raise banks.UnknownBank(name=route)

    monkeypatch.setattr(banks, "sender", nobody)
    notify(seller, notification)
    assert (pending_reason(seller, refund), destination(refund)) == ("awaiting_destination", None)


def test_repeated_notification_after_a_crash_sends_the_refund(seller: Seller) -> None:
    notification = paid_by_statement(seller)
    refund = seller.refund(notification["payment_id"])
    notified = parse({name: value for name, value in notification.items() if name != "payment_id"})
    intake.receive(bank="sandbox", body=b"{}", notification=notified, now=clock.now())
    assert destination(refund) is None
    notify(seller, notification)
    assert destination(refund) == TO_PAYER


def test_void_only_bank_voids_full_refunds_and_partial_ones_wait(
    seller: Seller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(banks, "is_void_only", lambda route: True)
    whole, part = paid_by_statement(seller), paid_by_statement(seller, amount=150_100)
    refunds = seller.refund(whole["payment_id"]), seller.refund(part["payment_id"], amount=100)
    notify(seller, whole)
    notify(seller, part, transaction_id="ANOTHERID00000000000")
    assert [pending_reason(seller, each) for each in refunds] == ["processing", "awaiting_destination"]
    assert Transfer.objects.get().charge_id == NAMED


def test_waiting_refund_of_a_reversed_payment_is_not_sent(
    seller: Seller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(banks, "is_void_only", lambda route: True)
    code, paid_at = seller.shop.qr_code(), clock.now().replace(microsecond=0)
    lines = [credit_line(code, paid_at, name="", payer_bank="", seq=seq) for seq in ("000002", "000003")]
    import_file(bot_file(*lines))
    confirm_all_transactions()
    refund = seller.refund(code["payment_id"])
    credit = seller.bank_transaction(code["payment_id"])
    notify(seller, reversal_of(credit, transaction_id=NAMED, payer_bank_code="014"))
    seller.bank.notify(code, paid_at=paid_at, transaction_id=NAMED)
    assert (seller.read(refund)["status"], Transfer.objects.count()) == ("canceled", 0)
    assert seller.funds() == {"available": 0, "reserved": 0}


def statements_of_late_details(seller: Seller, count: int) -> int:
    """Report the payer of a payment with `count` refunds that wait for an account."""
    notification = paid_by_statement(seller, amount=150_000 + count)
    refunds = [seller.refund(notification["payment_id"], amount=1) for _ in range(count)]
    with CaptureQueriesContext(connection) as sent:
        notify(seller, notification, transaction_id=f"LATEDETAILS{count:09}")
    assert {destination(refund) for refund in refunds} == {TO_PAYER}
    return len(sent)


def test_late_payer_details_send_any_number_of_refunds_with_the_same_statements(seller: Seller) -> None:
    assert statements_of_late_details(seller, 2) == statements_of_late_details(seller, 20)


# --- at the same moment ------------------------------------------------------------------------------------

races = pytest.mark.django_db(transaction=True)
ROUNDS = 10


@pytest.fixture
def busy() -> Seller:
    return Seller(open_shop("Race"), SandboxBankClient(new_client()))


def another(busy: Seller, number: int) -> dict[str, Any]:
    return paid_by_statement(busy) | {"transaction_id": f"THEBANKSOWNID{number:07}"}


@races
def test_refund_created_during_the_notification_goes_to_the_payer(busy: Seller) -> None:
    for number in range(ROUNDS):
        notification = another(busy, number)
        ask = partial(Seller(_own(busy), busy.bank).ask, notification["payment_id"])
        notified, created = run_concurrently(notification_call(busy, notification), ask)
        assert (notified.status_code, created.status_code) == (200, 200)
        assert (pending_reason(busy, created.json()), destination(created.json())) == ("processing", TO_PAYER)


@races
def test_concurrent_destination_and_notification_queue_one_transfer(busy: Seller) -> None:
    for number in range(ROUNDS):
        notification = another(busy, number)
        refund = busy.refund(notification["payment_id"])
        name = partial(Seller(_own(busy), busy.bank).act, refund, "destination", PAYEE)
        *notified, named = run_concurrently(*[notification_call(busy, notification)] * 3, name)
        assert [each.status_code for each in notified] == [200] * 3
        assert (named.status_code, destination(refund)) in [(200, TO_PAYEE), (400, TO_PAYER)]


@races
def test_refund_canceled_during_the_notification_is_not_sent(busy: Seller, served_by: Any) -> None:
    bank = served_by()
    for number in range(ROUNDS):
        notification = another(busy, number)
        refund = busy.refund(notification["payment_id"])
        cancel = partial(Seller(_own(busy), busy.bank).act, refund, "cancel")
        _, canceled = run_concurrently(notification_call(busy, notification), cancel)
        assert (canceled.status_code, busy.read(refund)["status"]) == (200, "canceled")
        send_due_refunds()
    assert bank.sent == []


def _own(busy: Seller) -> Shop:
    """The same shop with a client of its own."""
    return Shop(busy.shop.merchant, busy.shop.secret_key, new_client())
