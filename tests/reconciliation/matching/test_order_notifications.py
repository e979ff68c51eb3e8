"""Notifications of banks about our orders."""

from collections.abc import Callable
from typing import Any

import pytest

from banks import TransferResult
from core import clock
from reconciliation.matching import order_completion
from reconciliation.models import BankNotification, BankTransaction
from tests.conftest import SandboxBankClient
from tests.transfers.builders import Bank, FakeHandler, queued, send_due
from transfers import services as transfers
from transfers.models import Transfer

Serving = Callable[..., Bank]
pytestmark = pytest.mark.django_db


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> FakeHandler:
    handler = FakeHandler()
    monkeypatch.setitem(order_completion.HANDLERS, "wd", handler)
    return handler


@pytest.fixture
def transfer(handler: FakeHandler, monkeypatch: pytest.MonkeyPatch) -> Transfer:
    """A submitted transfer without a result."""
    monkeypatch.setattr("banks.sender", lambda route, link=None: Bank(sends=[TransferResult("processing")]))
    transfer = queued()
    send_due(handler)
    return transfer


def notification_of(order_id: str, status: str = "succeeded") -> dict[str, Any]:
    return {
        "type": "order",
        "reference": order_id,
        "bank_reference": "sbo_1",
        "amount": "1500.00",
        "currency": "THB",
        "status": status,
        "reason": "account_closed" if status != "succeeded" else "",
    }


def results() -> list[str]:
    return list(BankNotification.objects.order_by("received_at", "id").values_list("result", flat=True))


def test_order_notification_is_stored_and_completes_the_order(
    bank: SandboxBankClient, handler: FakeHandler, transfer: Transfer
) -> None:
    answer = bank.post(notification_of(transfer.id))
    transfer.refresh_from_db()
    notification = BankNotification.objects.get()
    assert (answer.status_code, answer.json()) == (200, {"status": "received"})
    assert transfer.state == "succeeded"
    assert handler.completed == [(transfer.id, TransferResult("succeeded", "sbo_1"))]
    assert (notification.result, notification.bank_transaction) == ("new", None)
    assert transfer.id.encode() in notification.body
    assert not BankTransaction.objects.exists()


def test_repeated_order_notification_changes_nothing(
    bank: SandboxBankClient, handler: FakeHandler, transfer: Transfer
) -> None:
    answers = [bank.post(notification_of(transfer.id)) for _ in range(3)]
    assert {answer.status_code for answer in answers} == {200}
    assert sorted(results()) == ["new", "repeat", "repeat"]
    assert handler.statuses == ["succeeded"]


def test_return_after_success_is_passed_to_the_handler(
    bank: SandboxBankClient, handler: FakeHandler, transfer: Transfer
) -> None:
    for status in ("succeeded", "returned", "returned"):
        bank.post(notification_of(transfer.id, status))
    assert handler.statuses == ["succeeded", "returned"]
    assert sorted(results()) == ["new", "new", "repeat"]


def test_contradicting_order_notification_is_an_exception(
    bank: SandboxBankClient, handler: FakeHandler, transfer: Transfer
) -> None:
    bank.post(notification_of(transfer.id, "failed"))
    answer = bank.post(notification_of(transfer.id, "succeeded"))
    transfer.refresh_from_db()
    assert (answer.status_code, sorted(results())) == (200, ["conflict", "new"])
    assert (transfer.state, handler.statuses) == ("failed", ["failed"])


@pytest.mark.parametrize("order_id", ["wd_000000000000000000000000000", "ref_x", "chrg_17", "!"])
def test_notification_of_an_unknown_order_is_an_exception(
    bank: SandboxBankClient, handler: FakeHandler, order_id: str
) -> None:
    answer = bank.post(notification_of(order_id))
    assert (answer.status_code, results(), handler.completed) == (200, ["conflict"], [])


def test_notification_of_an_unsent_order_is_an_exception(
    bank: SandboxBankClient, handler: FakeHandler
) -> None:
    transfer = queued()
    bank.post(notification_of(transfer.id))
    transfers.cancel(transfer.id, now=clock.now())
    bank.post(notification_of(transfer.id))
    assert (results(), handler.completed) == (["conflict", "conflict"], [])


def test_unreadable_order_notification_is_stored_for_staff(bank: SandboxBankClient) -> None:
    answer = bank.post(notification_of("wd_000000000000000000000000000", "lost"))
    assert (answer.status_code, answer.json(), results()) == (200, {"status": "held"}, ["unreadable"])


@pytest.mark.slow
def test_failed_completion_is_not_acknowledged_so_the_bank_repeats_the_notification(
    bank: SandboxBankClient, handler: FakeHandler, transfer: Transfer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: object, **how: object) -> None:
        raise ValueError("the books are shut")

    with monkeypatch.context() as patch:
        patch.setattr(handler, "on_completed", fails)
        assert bank.post(notification_of(transfer.id)).status_code == 500
    transfer.refresh_from_db()
    assert (transfer.state, results()) == ("submitted", ["new"])
    assert bank.post(notification_of(transfer.id)).status_code == 200
    assert handler.statuses == ["succeeded"]
