"""Many workers, callbacks and shops at the same moment."""

from collections.abc import Callable

import pytest
from django.db import transaction

from banks import ReportedTransfer, TransferResult
from core import clock
from tests.concurrency import run_concurrently
from tests.transfers.builders import Bank, RecordingHandler, pass_time, queued, send_due
from transfers import services
from transfers.models import Transfer, TransferState

Serving = Callable[..., Bank]
pytestmark = pytest.mark.django_db(transaction=True)
WORKERS = 8


def work_it_off(owner: RecordingHandler) -> int:
    done = 0
    while taken := send_due(owner):
        done += taken
    return done


@pytest.mark.slow
def test_eight_workers_send_each_order_once(owner: RecordingHandler, served_by: Serving) -> None:
    bank = served_by()
    orders = sorted(queued().id for _ in range(60))
    run_concurrently(*[lambda: work_it_off(owner)] * WORKERS)
    assert sorted(bank.sent) == sorted(owner.began) == orders
    pass_time()
    run_concurrently(*[lambda: work_it_off(owner)] * WORKERS)
    assert sorted(bank.sent) == sorted(order_id for order_id, _ in owner.completed) == orders
    assert set(Transfer.objects.values_list("state", flat=True)) == {TransferState.SUCCEEDED}


def test_concurrent_notifications_and_inquiries_complete_a_transfer_once(
    owner: RecordingHandler, served_by: Serving
) -> None:
    served_by()
    transfer = queued()
    send_due(owner)
    pass_time()
    notification = ReportedTransfer(transfer.id, "succeeded", "b-1")
    hears = [lambda: services.apply_notification(notification, owner, now=clock.now())] * 4
    works: list[Callable[[], object]] = [lambda: send_due(owner)] * 4
    run_concurrently(*hears, *works)
    assert owner.completed == [(transfer.id, TransferResult("succeeded", "b-1"))]


@pytest.mark.parametrize("_", range(10))
def test_an_order_is_either_canceled_or_sent(owner: RecordingHandler, served_by: Serving, _: int) -> None:
    bank, transfer = served_by(), queued()

    def cancel() -> bool:
        try:
            with transaction.atomic():
                services.cancel(transfer.id, now=clock.now())
        except services.AlreadySubmitted:
            return False
        return True

    is_canceled, *_rest = run_concurrently(cancel, lambda: bool(send_due(owner)))
    assert bank.sent == ([] if is_canceled else [transfer.id])
