"""Whatever dies, and wherever: an order reaches the bank once at most, and its end is told once."""

from collections.abc import Callable

import pytest
from django.db import connection

from banks import Word, calling
from core import clock
from tests.transfers.cast import ROUTE, Bank, Killed, Recorder, pass_time, queued, work
from transfers import settling
from transfers.models import State, Transfer

Serving = Callable[..., Bank]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("stopped_clock")]


def work_on(owner: Recorder, rounds: int = 4) -> None:
    for _ in range(rounds):
        pass_time()
        work(owner)


@pytest.mark.parametrize("point", ["lock", "begin"])
def test_death_before_the_bank_is_told_leaves_the_order_to_be_sent(
    owner: Recorder, served_by: Serving, point: str
) -> None:
    bank, transfer = served_by(), queued()
    owner.breaks_at = point
    with pytest.raises(Killed):
        work(owner)
    transfer.refresh_from_db()
    assert (transfer.state, transfer.told_at, bank.sent) == (State.QUEUED, None, [])
    owner.breaks_at = ""
    work_on(owner)
    assert (bank.sent, owner.fates) == ([transfer.id], ["succeeded"])


def test_death_between_the_commit_and_the_call_is_only_inquired(
    owner: Recorder, served_by: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank, transfer = served_by(inquiries=[Word("unknown")]), queued()
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(calling, "timed_at_once", _dies)
        work(owner)
    work_on(owner)
    transfer.refresh_from_db()
    assert (bank.sent, len(bank.inquired), transfer.state) == ([], 4, State.TOLD)
    assert (owner.began, owner.settled) == ([transfer.id], [])


def test_death_in_the_call_is_only_inquired(owner: Recorder, served_by: Serving) -> None:
    bank, transfer = served_by(sends=[Killed()]), queued()
    with pytest.raises(Killed):
        work(owner)
    work_on(owner)
    assert (bank.sent, bank.inquired) == ([transfer.id], [transfer.id])
    assert (owner.began, owner.fates) == ([transfer.id], ["succeeded"])


def test_death_in_an_inquiry_is_inquired_again(owner: Recorder, served_by: Serving) -> None:
    bank, transfer = served_by(inquiries=[Killed(), Word("failed")]), queued()
    work(owner)
    pass_time()
    with pytest.raises(Killed):
        work(owner)
    work_on(owner)
    assert (bank.sent, len(bank.inquired), owner.fates) == ([transfer.id], 2, ["failed"])


@pytest.mark.parametrize("fate", ["succeeded", "failed"])
def test_death_before_the_last_word_is_noted_is_inquired(
    owner: Recorder, served_by: Serving, fate: str
) -> None:
    bank = served_by(sends=[Word(fate)], inquiries=[Word(fate)])  # type: ignore[arg-type]
    transfer = queued()
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(settling, "settle", _dies)
        work(owner)
    work_on(owner)
    assert (bank.sent, owner.fates) == ([transfer.id], [fate])


def test_death_while_the_owner_settles_undoes_the_step(owner: Recorder, served_by: Serving) -> None:
    bank, transfer = served_by(sends=[Word("succeeded")]), queued()
    owner.breaks_at = "settle"
    with pytest.raises(Killed):
        work(owner)
    transfer.refresh_from_db()
    assert (transfer.state, transfer.ended_at) == (State.TOLD, None)
    owner.breaks_at = ""
    work_on(owner)
    assert (len(bank.sent), owner.fates) == (1, ["succeeded"])


def test_nobody_takes_up_what_another_worker_holds_until_its_lease_ends(
    owner: Recorder, served_by: Serving
) -> None:
    bank, transfer = served_by(), queued()
    (held,) = settling.claim("withdrawal", ROUTE, now=clock.now(), limit=10)
    assert (held.id, work(owner), bank.sent) == (transfer.id, 0, [])
    pass_time(settling.LEASE.total_seconds() - 1)
    assert work(owner) == 0
    pass_time(2)
    assert (work(owner), bank.sent) == (1, [transfer.id])


def test_a_worker_that_wakes_up_too_late_sends_nothing(owner: Recorder, served_by: Serving) -> None:
    bank, transfer = served_by(), queued()
    settling.claim("withdrawal", ROUTE, now=clock.now(), limit=10)
    pass_time()
    work(owner)
    assert not settling.begin(transfer.id, owner, now=clock.now())
    assert (bank.sent, owner.began) == ([transfer.id], [transfer.id])


def test_not_sent_counts_no_more_once_the_bank_was_asked(owner: Recorder, served_by: Serving) -> None:
    """The call took so long that another worker inquired in between."""
    served_by(sends=[Word("unknown")], inquiries=[Word("unknown")])
    transfer = queued()
    work(owner)
    pass_time()
    work(owner)
    settling.note(transfer, Word("not_sent"), owner, was_sent=True, now=clock.now())
    transfer.refresh_from_db()
    assert transfer.state == State.TOLD


def test_one_order_that_cannot_be_taken_up_holds_up_no_other(owner: Recorder, served_by: Serving) -> None:
    bank = served_by()
    broken, sound = queued(), queued()
    with connection.cursor() as cursor:  # as if the key to its account were lost
        cursor.execute("ALTER TABLE transfers_transfer DISABLE TRIGGER transfers_guard")
        cursor.execute("UPDATE transfers_transfer SET account_sealed = 'lost' WHERE id = %s", [broken.id])
        cursor.execute("ALTER TABLE transfers_transfer ENABLE TRIGGER transfers_guard")
    work(owner)
    assert bank.sent == [sound.id]
    assert Transfer.objects.get(pk=broken.id).state == State.QUEUED


def test_an_adapter_that_fails_leaves_the_order_unknown(owner: Recorder, served_by: Serving) -> None:
    bank, transfer = served_by(sends=[ValueError("what the bank said")]), queued()
    work(owner)
    transfer.refresh_from_db()
    assert transfer.state == State.TOLD
    work_on(owner)
    assert (len(bank.sent), owner.fates) == (1, ["succeeded"])


def _dies(*args: object, **how: object) -> None:
    raise Killed
