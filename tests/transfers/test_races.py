"""Workers, notifications and cancellations at the same time."""

from collections.abc import Callable

import pytest
from django.db import transaction

from banks import ReportedTransfer, TransferResult
from core import clock
from tests.concurrency import run_concurrently
from tests.transfers.builders import FakeHandler, Serving, pass_time, queued, send_due
from transfers import services
from transfers.models import Transfer, TransferState

pytestmark = pytest.mark.django_db(transaction=True)
WORKERS = 8


def run_until_nothing_is_due(handler: FakeHandler) -> int:
    done = 0
    while taken := send_due(handler):
        done += taken
    return done


@pytest.mark.slow
def test_eight_workers_send_each_order_once(handler: FakeHandler, served_by: Serving) -> None:
    bank = served_by()
    orders = sorted(queued().id for _ in range(60))
    run_concurrently(*[lambda: run_until_nothing_is_due(handler)] * WORKERS)
    assert sorted(bank.sent) == sorted(handler.submitted) == orders
    pass_time()
    run_concurrently(*[lambda: run_until_nothing_is_due(handler)] * WORKERS)
    assert sorted(bank.sent) == sorted(order_id for order_id, _ in handler.completed) == orders
    assert set(Transfer.objects.values_list("state", flat=True)) == {TransferState.SUCCEEDED}


def test_concurrent_notifications_and_inquiries_complete_a_transfer_once(
    handler: FakeHandler, served_by: Serving
) -> None:
    served_by()
    transfer = queued()
    send_due(handler)
    pass_time()
    notification = ReportedTransfer(transfer.id, "succeeded", "b-1")
    reports = [lambda: services.apply_notification(notification, handler, now=clock.now())] * 4
    runs: list[Callable[[], object]] = [lambda: send_due(handler)] * 4
    run_concurrently(*reports, *runs)
    assert handler.completed == [(transfer.id, TransferResult("succeeded", "b-1"))]


@pytest.mark.parametrize("_", range(10))
def test_an_order_is_either_canceled_or_sent(handler: FakeHandler, served_by: Serving, _: int) -> None:
    bank, transfer = served_by(), queued()

    def cancel() -> bool:
        try:
            with transaction.atomic():
                services.cancel(transfer.id, now=clock.now())
        except services.AlreadySubmitted:
            return False
        return True

    is_canceled, *_rest = run_concurrently(cancel, lambda: bool(send_due(handler)))
    assert bank.sent == ([] if is_canceled else [transfer.id])
