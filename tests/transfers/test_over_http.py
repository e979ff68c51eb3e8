"""The sandbox bank behind its own doors, over real HTTP."""

from datetime import timedelta
from typing import Any

import pytest

from banks import Purpose
from core import clock
from receipts import orders
from receipts.models import Notice
from sandbox import sending
from sandbox.models import SandboxCall, SandboxOrder
from tests.stack import wait_until
from tests.transfers.cast import Recorder, queued, work
from transfers import services
from transfers.models import State

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
DOOR = "/sandbox/bank/v1/orders"


@pytest.fixture
def service(live_server: Any, settings: Any, owner: Recorder, monkeypatch: pytest.MonkeyPatch) -> str:
    """The service and the bank, which live at one address; the owner is told of callbacks."""
    settings.BASE_URL = live_server.url
    settings.TRANSFER_PACE = 10
    monkeypatch.setitem(orders.OWNERS, "wd", owner)
    return str(live_server.url)


def work_once(owner: Recorder) -> None:
    """However long that takes, and whatever is due again by then."""
    assert services.work("withdrawal", owner, now=clock.now, limit=1) == 1


def work_until(owner: Recorder, fates: list[str], purpose: Purpose = "withdrawal") -> None:
    def are_told() -> bool:
        work(owner, purpose)
        return owner.fates == fates

    wait_until(are_told, 60)


def test_an_order_is_processing_and_then_succeeds(service: str, owner: Recorder) -> None:
    transfer = queued()
    work_once(owner)
    transfer.refresh_from_db()
    order = SandboxOrder.objects.get()
    assert (transfer.state, transfer.bank_reference) == (State.TOLD, order.id)
    work_until(owner, ["succeeded"])
    assert (order.reference, order.amount, order.account) == (transfer.id, 150_000, "4051234567")
    assert (order.type, order.bank_code, order.account_name) == ("payout", "014", "สมชาย ใจดี")


@pytest.mark.parametrize(
    ("purpose", "account", "code"),
    [("refund", "4051230001", "rejected_by_bank"), ("withdrawal", "4051230002", "invalid_account")],
)
def test_an_order_that_fails(
    service: str, owner: Recorder, purpose: Purpose, account: str, code: str
) -> None:
    transfer = queued(purpose, account=account)
    work_until(owner, ["failed"], purpose)
    transfer.refresh_from_db()
    assert (transfer.state, transfer.failure_code) == (State.FAILED, code)


def test_an_answer_that_is_cut_is_inquired_and_never_sent_again(service: str, owner: Recorder) -> None:
    transfer = queued(account="4051230003")
    work_once(owner)
    transfer.refresh_from_db()
    assert (transfer.state, transfer.bank_reference) == (State.TOLD, "")
    work_until(owner, ["succeeded"])
    assert SandboxOrder.objects.count() == 1


def test_money_that_comes_back_is_told_by_a_signed_callback(
    service: str, owner: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox.orders.RETURNS_AFTER", timedelta(hours=1))
    transfer = queued(account="4051230004")
    work_until(owner, ["succeeded"])
    assert sending.run_once() == 0, "it is not due yet"
    SandboxCall.objects.update(due_at=clock.now())
    assert sending.run_once() == 1
    assert SandboxCall.objects.get().state == "delivered"
    transfer.refresh_from_db()
    assert (transfer.state, owner.fates) == (State.RETURNED, ["succeeded", "returned"])
    assert Notice.objects.get().verdict == "new"


def test_an_order_to_a_bank_that_is_down_is_sent_when_it_is_back(
    service: str, owner: Recorder, settings: Any
) -> None:
    transfer = queued()
    settings.BASE_URL = "http://127.0.0.1:1"
    work(owner)
    transfer.refresh_from_db()
    assert transfer.state == State.QUEUED
    settings.BASE_URL = service
    work_until(owner, ["succeeded"])
    assert SandboxOrder.objects.count() == 1
