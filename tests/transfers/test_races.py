"""Many workers, callbacks and shops at the same moment."""

from collections.abc import Callable

import pytest
from django.db import transaction

from banks import OrderNotice, Word
from core import clock
from tests.threads import at_once
from tests.transfers.cast import Bank, Recorder, pass_time, queued, work
from transfers import services
from transfers.errors import AlreadyTold
from transfers.models import State, Transfer

Serving = Callable[..., Bank]
pytestmark = pytest.mark.django_db(transaction=True)
WORKERS = 8


def work_it_off(owner: Recorder) -> int:
    done = 0
    while taken := work(owner):
        done += taken
    return done


def test_eight_workers_send_each_order_once(owner: Recorder, served_by: Serving) -> None:
    bank = served_by()
    orders = sorted(queued().id for _ in range(60))
    at_once(*[lambda: work_it_off(owner)] * WORKERS)
    assert sorted(bank.sent) == sorted(owner.began) == orders
    pass_time()
    at_once(*[lambda: work_it_off(owner)] * WORKERS)
    assert sorted(bank.sent) == sorted(order_id for order_id, _ in owner.settled) == orders
    assert set(Transfer.objects.values_list("state", flat=True)) == {State.SUCCEEDED}


def test_callbacks_and_inquiries_at_once_settle_once(owner: Recorder, served_by: Serving) -> None:
    served_by()
    transfer = queued()
    work(owner)
    pass_time()
    notice = OrderNotice(transfer.id, "succeeded", "b-1")
    hears = [lambda: services.hear(notice, owner, now=clock.now())] * 4
    works: list[Callable[[], object]] = [lambda: work(owner)] * 4
    at_once(*hears, *works)
    assert owner.settled == [(transfer.id, Word("succeeded", "b-1"))]


@pytest.mark.parametrize("_", range(10))
def test_an_order_is_either_canceled_or_sent(owner: Recorder, served_by: Serving, _: int) -> None:
    bank, transfer = served_by(), queued()

    def cancel() -> bool:
        try:
            with transaction.atomic():
                services.cancel(transfer.id, now=clock.now())
        except AlreadyTold:
            return False
        return True

    is_canceled, *_rest = at_once(cancel, lambda: bool(work(owner)))
    assert bank.sent == ([] if is_canceled else [transfer.id])
