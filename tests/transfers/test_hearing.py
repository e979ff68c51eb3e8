"""The bank speaks of its own accord."""

from collections.abc import Callable

import pytest

from banks import OrderNotice, Word
from core import clock
from tests.transfers.cast import Bank, Recorder, pass_time, queued, work
from transfers import services
from transfers.models import State, Transfer

Serving = Callable[..., Bank]
pytestmark = pytest.mark.django_db
ROAD: dict[State, list[Word]] = {
    State.TOLD: [Word("processing")],
    State.SUCCEEDED: [Word("succeeded")],
    State.FAILED: [Word("failed")],
}


def transfer_in(state: State, owner: Recorder, served_by: Serving) -> Transfer:
    transfer = queued()
    if state == State.CANCELED:
        services.cancel(transfer.id, now=clock.now())
    if state in ROAD:
        served_by(sends=ROAD[state])
        work(owner)
    if state == State.RETURNED:
        served_by(sends=[Word("succeeded")])
        work(owner)
        services.hear(OrderNotice(transfer.id, "returned"), owner, now=clock.now())
    owner.settled.clear()
    return transfer


@pytest.mark.parametrize(
    ("state", "fate", "weight", "settled", "ends"),
    [
        (State.TOLD, "succeeded", "new", ["succeeded"], State.SUCCEEDED),
        (State.TOLD, "failed", "new", ["failed"], State.FAILED),
        (State.TOLD, "returned", "new", ["succeeded", "returned"], State.RETURNED),
        (State.SUCCEEDED, "succeeded", "repeat", [], State.SUCCEEDED),
        (State.SUCCEEDED, "returned", "new", ["returned"], State.RETURNED),
        (State.SUCCEEDED, "failed", "conflict", [], State.SUCCEEDED),
        (State.FAILED, "failed", "repeat", [], State.FAILED),
        (State.FAILED, "succeeded", "conflict", [], State.FAILED),
        (State.FAILED, "returned", "conflict", [], State.FAILED),
        (State.RETURNED, "returned", "repeat", [], State.RETURNED),
        (State.RETURNED, "succeeded", "repeat", [], State.RETURNED),
        (State.RETURNED, "failed", "conflict", [], State.RETURNED),
        (State.QUEUED, "succeeded", "conflict", [], State.QUEUED),
        (State.CANCELED, "succeeded", "conflict", [], State.CANCELED),
    ],
)
def test_a_notice_settles_repeats_or_contradicts(
    owner: Recorder, served_by: Serving, state: State, fate: str, weight: str, settled: list[str], ends: State
) -> None:
    transfer = transfer_in(state, owner, served_by)
    notice = OrderNotice(transfer.id, fate, "b-9")  # type: ignore[arg-type]
    assert services.weigh(notice, bank="sandbox") == weight
    for _ in range(2):
        services.hear(notice, owner, now=clock.now())
    transfer.refresh_from_db()
    assert (owner.fates, transfer.state) == (settled, ends)


def test_money_that_came_back_says_so(owner: Recorder, served_by: Serving) -> None:
    transfer = transfer_in(State.SUCCEEDED, owner, served_by)
    services.hear(OrderNotice(transfer.id, "returned", "b-1"), owner, now=clock.now())
    transfer.refresh_from_db()
    assert owner.settled == [(transfer.id, Word("returned", "b-1", "returned_by_bank"))]
    assert (transfer.failure_code, transfer.bank_reference) == ("returned_by_bank", "b-1")


def test_a_notice_ends_the_inquiries(owner: Recorder, served_by: Serving) -> None:
    bank = served_by()
    transfer = queued()
    work(owner)
    services.hear(OrderNotice(transfer.id, "succeeded"), owner, now=clock.now())
    pass_time()
    assert work(owner) == 0
    assert (bank.inquired, owner.fates) == ([], ["succeeded"])


def test_what_the_bank_called_it_is_kept_when_it_says_no_more(owner: Recorder, served_by: Serving) -> None:
    served_by(sends=[Word("processing", "b-1")])
    transfer = queued()
    work(owner)
    services.hear(OrderNotice(transfer.id, "succeeded"), owner, now=clock.now())
    transfer.refresh_from_db()
    assert (transfer.bank_reference, owner.settled) == ("b-1", [(transfer.id, Word("succeeded", "b-1"))])


def test_another_bank_cannot_speak_of_it(owner: Recorder, served_by: Serving) -> None:
    transfer = transfer_in(State.TOLD, owner, served_by)
    assert services.weigh(OrderNotice(transfer.id, "succeeded"), bank="scb") == "conflict"
    assert services.weigh(OrderNotice("wd_unknown", "succeeded"), bank="sandbox") == "conflict"
