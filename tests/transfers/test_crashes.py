"""Whatever dies, and wherever: an order reaches the bank once at most, and its end is told once."""

from collections.abc import Callable

import pytest
from django.db import connection

from banks import TransferResult, parallel
from core import clock
from tests.transfers.builders import ROUTE, Bank, Killed, RecordingHandler, pass_time, queued, send_due
from transfers import services
from transfers.models import Transfer, TransferState

Serving = Callable[..., Bank]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("stopped_clock")]


def work_on(owner: RecordingHandler, rounds: int = 4) -> None:
    for _ in range(rounds):
        pass_time()
        send_due(owner)


@pytest.mark.parametrize("point", ["lock", "begin"])
def test_crash_before_submission_leaves_the_order_queued(
    owner: RecordingHandler, served_by: Serving, point: str
) -> None:
    bank, transfer = served_by(), queued()
    owner.breaks_at = point
    with pytest.raises(Killed):
        send_due(owner)
    transfer.refresh_from_db()
    assert (transfer.state, transfer.submitted_at, bank.sent) == (TransferState.QUEUED, None, [])
    owner.breaks_at = ""
    work_on(owner)
    assert (bank.sent, owner.fates) == ([transfer.id], ["succeeded"])


def test_crash_between_commit_and_call_leads_to_an_inquiry(
    owner: RecordingHandler, served_by: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank, transfer = served_by(inquiries=[TransferResult("unknown")]), queued()
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(parallel, "run_all_timed", _dies)
        send_due(owner)
    work_on(owner)
    transfer.refresh_from_db()
    assert (bank.sent, len(bank.inquired), transfer.state) == ([], 4, TransferState.SUBMITTED)
    assert (owner.began, owner.completed) == ([transfer.id], [])


def test_crash_during_the_call_leads_to_an_inquiry(owner: RecordingHandler, served_by: Serving) -> None:
    bank, transfer = served_by(sends=[Killed()]), queued()
    with pytest.raises(Killed):
        send_due(owner)
    work_on(owner)
    assert (bank.sent, bank.inquired) == ([transfer.id], [transfer.id])
    assert (owner.began, owner.fates) == ([transfer.id], ["succeeded"])


def test_crash_during_an_inquiry_leads_to_another_inquiry(
    owner: RecordingHandler, served_by: Serving
) -> None:
    bank, transfer = served_by(inquiries=[Killed(), TransferResult("failed")]), queued()
    send_due(owner)
    pass_time()
    with pytest.raises(Killed):
        send_due(owner)
    work_on(owner)
    assert (bank.sent, len(bank.inquired), owner.fates) == ([transfer.id], 2, ["failed"])


@pytest.mark.parametrize("fate", ["succeeded", "failed"])
def test_crash_before_the_final_answer_is_recorded_leads_to_an_inquiry(
    owner: RecordingHandler, served_by: Serving, fate: str
) -> None:
    bank = served_by(sends=[TransferResult(fate)], inquiries=[TransferResult(fate)])  # type: ignore[arg-type]
    transfer = queued()
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(services, "complete", _dies)
        send_due(owner)
    work_on(owner)
    assert (bank.sent, owner.fates) == ([transfer.id], [fate])


def test_crash_in_the_handler_rolls_the_completion_back(owner: RecordingHandler, served_by: Serving) -> None:
    bank, transfer = served_by(sends=[TransferResult("succeeded")]), queued()
    owner.breaks_at = "settle"
    with pytest.raises(Killed):
        send_due(owner)
    transfer.refresh_from_db()
    assert (transfer.state, transfer.completed_at) == (TransferState.SUBMITTED, None)
    owner.breaks_at = ""
    work_on(owner)
    assert (len(bank.sent), owner.fates) == (1, ["succeeded"])


def test_nobody_takes_up_what_another_worker_holds_until_its_lease_ends(
    owner: RecordingHandler, served_by: Serving
) -> None:
    bank, transfer = served_by(), queued()
    (held,) = services.claim("withdrawal", ROUTE, clock.now, limit=10)
    assert (held.id, send_due(owner), bank.sent) == (transfer.id, 0, [])
    pass_time(services.LEASE.total_seconds() - 1)
    assert send_due(owner) == 0
    pass_time(2)
    assert (send_due(owner), bank.sent) == (1, [transfer.id])


def test_a_worker_that_wakes_up_too_late_sends_nothing(owner: RecordingHandler, served_by: Serving) -> None:
    bank, transfer = served_by(), queued()
    services.claim("withdrawal", ROUTE, clock.now, limit=10)
    pass_time()
    send_due(owner)
    assert not services.submit(transfer.id, owner, now=clock.now())
    assert (bank.sent, owner.began) == ([transfer.id], [transfer.id])


def test_not_sent_counts_no_more_once_the_bank_was_asked(owner: RecordingHandler, served_by: Serving) -> None:
    """The call took so long that another worker inquired in between."""
    served_by(sends=[TransferResult("unknown")], inquiries=[TransferResult("unknown")])
    transfer = queued()
    send_due(owner)
    pass_time()
    send_due(owner)
    services.record_answer(transfer, TransferResult("not_sent"), owner, was_sent=True, now=clock.now())
    transfer.refresh_from_db()
    assert transfer.state == TransferState.SUBMITTED


def test_one_order_that_cannot_be_taken_up_holds_up_no_other(
    owner: RecordingHandler, served_by: Serving
) -> None:
    bank = served_by()
    broken, sound = queued(), queued()
    with connection.cursor() as cursor:  # as if the key to its account were lost
        cursor.execute("SET LOCAL qr.resealing = 'on'")
        cursor.execute("UPDATE transfers_transfer SET account_sealed = 'lost' WHERE id = %s", [broken.id])
        cursor.execute("SET LOCAL qr.resealing = 'off'")
    send_due(owner)
    assert bank.sent == [sound.id]
    assert Transfer.objects.get(pk=broken.id).state == TransferState.QUEUED


def test_an_adapter_that_fails_leaves_the_order_unknown(owner: RecordingHandler, served_by: Serving) -> None:
    bank, transfer = served_by(sends=[ValueError("what the bank said")]), queued()
    send_due(owner)
    transfer.refresh_from_db()
    assert transfer.state == TransferState.SUBMITTED
    work_on(owner)
    assert (len(bank.sent), owner.fates) == (1, ["succeeded"])


def _dies(*args: object, **how: object) -> None:
    raise Killed
