"""Crashes and races: an order reaches the bank at most once, and its handler completes once."""

from collections.abc import Callable

import pytest
from django.db import connection, transaction

from banks import ReportedTransfer, TransferResult, parallel
from core import clock
from tests.concurrency import run_concurrently
from tests.transfers.builders import ROUTE, FakeHandler, Killed, Serving, pass_time, queued, send_due
from transfers import services
from transfers.models import Transfer, TransferState

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("stopped_clock")]


def run_rounds(handler: FakeHandler, rounds: int = 4) -> None:
    for _ in range(rounds):
        pass_time()
        send_due(handler)


@pytest.mark.parametrize("point", ["lock", "submit"])
@pytest.mark.slow
def test_crash_before_submission_leaves_the_transfer_queued(
    handler: FakeHandler, served_by: Serving, point: str
) -> None:
    bank, transfer = served_by(), queued()
    handler.crashes_at = point
    with pytest.raises(Killed):
        send_due(handler)
    transfer.refresh_from_db()
    assert (transfer.state, transfer.submitted_at, bank.sent) == (TransferState.QUEUED, None, [])
    handler.crashes_at = ""
    run_rounds(handler)
    assert (bank.sent, handler.statuses) == ([transfer.id], ["succeeded"])


@pytest.mark.slow
def test_crash_between_commit_and_call_leads_to_an_inquiry(
    handler: FakeHandler, served_by: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank, transfer = served_by(inquiries=[TransferResult("unknown")]), queued()
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(parallel, "run_all_timed", _dies)
        send_due(handler)
    run_rounds(handler)
    transfer.refresh_from_db()
    assert (bank.sent, len(bank.inquired), transfer.state) == ([], 4, TransferState.SUBMITTED)
    assert (handler.submitted, handler.completed) == ([transfer.id], [])


def test_crash_during_the_call_leads_to_an_inquiry(handler: FakeHandler, served_by: Serving) -> None:
    bank, transfer = served_by(sends=[Killed()]), queued()
    with pytest.raises(Killed):
        send_due(handler)
    run_rounds(handler)
    assert (bank.sent, bank.inquired) == ([transfer.id], [transfer.id])
    assert (handler.submitted, handler.statuses) == ([transfer.id], ["succeeded"])


@pytest.mark.slow
def test_crash_during_an_inquiry_leads_to_another_inquiry(handler: FakeHandler, served_by: Serving) -> None:
    bank, transfer = served_by(inquiries=[Killed(), TransferResult("failed")]), queued()
    send_due(handler)
    pass_time()
    with pytest.raises(Killed):
        send_due(handler)
    run_rounds(handler)
    assert (bank.sent, len(bank.inquired), handler.statuses) == ([transfer.id], 2, ["failed"])


@pytest.mark.parametrize("status", ["succeeded", "failed"])
@pytest.mark.slow
def test_crash_before_the_final_answer_is_recorded_leads_to_an_inquiry(
    handler: FakeHandler, served_by: Serving, status: str
) -> None:
    bank = served_by(sends=[TransferResult(status)], inquiries=[TransferResult(status)])  # type: ignore[arg-type]
    transfer = queued()
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(services, "complete", _dies)
        send_due(handler)
    run_rounds(handler)
    assert (bank.sent, handler.statuses) == ([transfer.id], [status])


def test_crash_in_the_handler_rolls_back_the_transfer_completion(
    handler: FakeHandler, served_by: Serving
) -> None:
    bank, transfer = served_by(sends=[TransferResult("succeeded")]), queued()
    handler.crashes_at = "complete"
    with pytest.raises(Killed):
        send_due(handler)
    transfer.refresh_from_db()
    assert (transfer.state, transfer.completed_at) == (TransferState.SUBMITTED, None)
    handler.crashes_at = ""
    run_rounds(handler)
    assert (len(bank.sent), handler.statuses) == (1, ["succeeded"])


def test_leased_transfer_is_not_claimed_before_lease_ends(handler: FakeHandler, served_by: Serving) -> None:
    bank, transfer = served_by(), queued()
    (held,) = services.claim("withdrawal", ROUTE, clock.now, limit=10)
    assert (held.id, send_due(handler), bank.sent) == (transfer.id, 0, [])
    pass_time(services.LEASE.total_seconds() - 1)
    assert send_due(handler) == 0
    pass_time(2)
    assert (send_due(handler), bank.sent) == (1, [transfer.id])


def test_worker_with_expired_lease_sends_nothing(handler: FakeHandler, served_by: Serving) -> None:
    bank, transfer = served_by(), queued()
    services.claim("withdrawal", ROUTE, clock.now, limit=10)
    pass_time()
    send_due(handler)
    assert not services.submit(transfer.id, handler, now=clock.now())
    assert (bank.sent, handler.submitted) == ([transfer.id], [transfer.id])


def test_not_sent_answer_after_an_inquiry_does_not_queue_the_transfer_again(
    handler: FakeHandler, served_by: Serving
) -> None:
    """Another worker inquired during the call."""
    served_by(sends=[TransferResult("unknown")], inquiries=[TransferResult("unknown")])
    transfer = queued()
    send_due(handler)
    pass_time()
    send_due(handler)
    services.record_answer(transfer, TransferResult("not_sent"), handler, was_sent=True, now=clock.now())
    transfer.refresh_from_db()
    assert transfer.state == TransferState.SUBMITTED


def test_unknown_answer_after_an_inquiry_keeps_the_number_of_inquiries(
    handler: FakeHandler, served_by: Serving
) -> None:
    """Another worker inquired during the call."""
    served_by(sends=[TransferResult("unknown")], inquiries=[TransferResult("unknown")])
    transfer = queued()
    send_due(handler)
    pass_time()
    send_due(handler)
    for status in ("unknown", "not_sent"):
        services.record_answer(transfer, TransferResult(status), handler, was_sent=True, now=clock.now())
    transfer.refresh_from_db()
    assert (transfer.state, transfer.inquiries) == (TransferState.SUBMITTED, 1)


def test_transfer_with_unreadable_account_does_not_delay_other_transfers(
    handler: FakeHandler, served_by: Serving
) -> None:
    bank = served_by()
    broken, sound = queued(), queued()
    with connection.cursor() as cursor:  # as if the encryption key were lost
        cursor.execute("SET LOCAL qr.resealing = 'on'")
        cursor.execute(
            "UPDATE transfers_transfer SET account_sealed = 'sealed:lost' WHERE id = %s", [broken.id]
        )
        cursor.execute("SET LOCAL qr.resealing = 'off'")
    send_due(handler)
    assert bank.sent == [sound.id]
    assert Transfer.objects.get(pk=broken.id).state == TransferState.QUEUED


@pytest.mark.slow
def test_error_in_an_adapter_leaves_the_transfer_submitted(handler: FakeHandler, served_by: Serving) -> None:
    bank, transfer = served_by(sends=[ValueError("what the bank result")]), queued()
    send_due(handler)
    transfer.refresh_from_db()
    assert transfer.state == TransferState.SUBMITTED
    run_rounds(handler)
    assert (len(bank.sent), handler.statuses) == (1, ["succeeded"])


def _dies(*args: object, **how: object) -> None:
    raise Killed


WORKERS = 8


def run_until_nothing_is_due(handler: FakeHandler) -> int:
    done = 0
    while taken := send_due(handler):
        done += taken
    return done


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_eight_workers_send_each_order_once(handler: FakeHandler, served_by: Serving) -> None:
    bank = served_by()
    orders = sorted(queued().id for _ in range(60))
    run_concurrently(*[lambda: run_until_nothing_is_due(handler)] * WORKERS)
    assert sorted(bank.sent) == sorted(handler.submitted) == orders
    pass_time()
    run_concurrently(*[lambda: run_until_nothing_is_due(handler)] * WORKERS)
    assert sorted(bank.sent) == sorted(order_id for order_id, _ in handler.completed) == orders
    assert set(Transfer.objects.values_list("state", flat=True)) == {TransferState.SUCCEEDED}


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
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


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("_", range(10))
def test_concurrent_cancel_and_send_of_a_transfer_have_one_outcome(
    handler: FakeHandler, served_by: Serving, _: int
) -> None:
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
