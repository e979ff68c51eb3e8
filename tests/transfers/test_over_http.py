"""Transfers through the sandbox bank over HTTP."""

from typing import Any

import pytest

from banks import TransferPurpose
from core import clock
from reconciliation.matching import order_completion
from sandbox.models import SandboxOrder
from tests.stack import wait_until
from tests.transfers.builders import FakeHandler, queued, send_due
from transfers import services
from transfers.models import TransferState

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def service(live_server: Any, settings: Any, handler: FakeHandler, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of the service and the sandbox bank. Callbacks of withdrawals go to `handler`."""
    settings.BASE_URL = live_server.url
    settings.SPEEDUP = 10
    monkeypatch.setitem(order_completion.HANDLERS, "wd", handler)
    return str(live_server.url)


def run_one_transfer(handler: FakeHandler) -> None:
    assert services.run_due("withdrawal", handler, now=clock.now, limit=1) == 1


def run_until(handler: FakeHandler, fates: list[str], purpose: TransferPurpose = "withdrawal") -> None:
    def are_reported() -> bool:
        send_due(handler, purpose)
        return handler.statuses == fates

    wait_until(are_reported, 60)


def test_transfer_over_http_is_processing_and_then_succeeds(service: str, handler: FakeHandler) -> None:
    transfer = queued()
    run_one_transfer(handler)
    transfer.refresh_from_db()
    order = SandboxOrder.objects.get()
    assert (transfer.state, transfer.bank_reference) == (TransferState.SUBMITTED, order.id)
    run_until(handler, ["succeeded"])
    assert (order.reference, order.amount, order.account) == (transfer.id, 150_000, "4051234567")
    assert (order.type, order.bank_code, order.account_name) == ("payout", "014", "สมชาย ใจดี")


@pytest.mark.parametrize(
    ("purpose", "account", "code"),
    [("refund", "4051230001", "rejected_by_bank"), ("withdrawal", "4051230002", "invalid_account")],
)
def test_order_that_the_bank_refuses_fails(
    service: str, handler: FakeHandler, purpose: TransferPurpose, account: str, code: str
) -> None:
    transfer = queued(purpose, account=account)
    run_until(handler, ["failed"], purpose)
    transfer.refresh_from_db()
    assert (transfer.state, transfer.failure_code) == (TransferState.FAILED, code)


def test_transfer_with_truncated_answer_is_inquired_and_never_sent_again(
    service: str, handler: FakeHandler
) -> None:
    transfer = queued(account="4051230003")
    run_one_transfer(handler)
    transfer.refresh_from_db()
    assert (transfer.state, transfer.bank_reference) == (TransferState.SUBMITTED, "")
    run_until(handler, ["succeeded"])
    assert SandboxOrder.objects.count() == 1


def test_transfer_is_sent_when_the_bank_is_reachable_again(
    service: str, handler: FakeHandler, settings: Any
) -> None:
    transfer = queued()
    settings.BASE_URL = "http://127.0.0.1:1"
    send_due(handler)
    transfer.refresh_from_db()
    assert transfer.state == TransferState.QUEUED
    settings.BASE_URL = service
    run_until(handler, ["succeeded"])
    assert SandboxOrder.objects.count() == 1
