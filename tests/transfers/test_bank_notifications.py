"""Notifications of banks about transfers."""

import pytest

from banks import ReportedTransfer, TransferResult
from core import clock
from tests.transfers.builders import FakeHandler, Serving, pass_time, queued, send_due
from transfers import services
from transfers.models import Transfer, TransferState

pytestmark = pytest.mark.django_db
STEPS: dict[TransferState, list[TransferResult]] = {
    TransferState.SUBMITTED: [TransferResult("processing")],
    TransferState.SUCCEEDED: [TransferResult("succeeded")],
    TransferState.FAILED: [TransferResult("failed")],
}


def transfer_in(state: TransferState, handler: FakeHandler, served_by: Serving) -> Transfer:
    transfer = queued()
    if state == TransferState.CANCELED:
        services.cancel(transfer.id, now=clock.now())
    if state in STEPS:
        served_by(sends=STEPS[state])
        send_due(handler)
    if state == TransferState.RETURNED:
        served_by(sends=[TransferResult("succeeded")])
        send_due(handler)
        services.apply_notification(ReportedTransfer(transfer.id, "returned"), handler, now=clock.now())
    handler.completed.clear()
    return transfer


@pytest.mark.parametrize(
    ("state", "status", "change", "completed", "ends"),
    [
        ("submitted", "succeeded", "new", ["succeeded"], "succeeded"),
        ("submitted", "failed", "new", ["failed"], "failed"),
        ("submitted", "returned", "new", ["succeeded", "returned"], "returned"),
        ("succeeded", "succeeded", "repeat", [], "succeeded"),
        ("succeeded", "returned", "new", ["returned"], "returned"),
        ("succeeded", "failed", "conflict", [], "succeeded"),
        ("failed", "failed", "repeat", [], "failed"),
        ("failed", "succeeded", "conflict", [], "failed"),
        ("failed", "returned", "conflict", [], "failed"),
        ("returned", "returned", "repeat", [], "returned"),
        ("returned", "succeeded", "repeat", [], "returned"),
        ("returned", "failed", "conflict", [], "returned"),
        ("queued", "succeeded", "conflict", [], "queued"),
        ("canceled", "succeeded", "conflict", [], "canceled"),
    ],
)
def test_notification_completes_repeats_or_contradicts_a_transfer(
    handler: FakeHandler,
    served_by: Serving,
    state: str,
    status: str,
    change: str,
    completed: list[str],
    ends: str,
) -> None:
    transfer = transfer_in(TransferState(state), handler, served_by)
    notification = ReportedTransfer(transfer.id, status, "b-9")  # type: ignore[arg-type]
    assert services.classify_notification(notification, bank="sandbox") == change
    for _ in range(2):
        services.apply_notification(notification, handler, now=clock.now())
    transfer.refresh_from_db()
    assert (handler.statuses, transfer.state) == (completed, ends)


def test_returned_transfer_keeps_reference_and_failure_code(handler: FakeHandler, served_by: Serving) -> None:
    transfer = transfer_in(TransferState.SUCCEEDED, handler, served_by)
    services.apply_notification(ReportedTransfer(transfer.id, "returned", "b-1"), handler, now=clock.now())
    transfer.refresh_from_db()
    assert handler.completed == [(transfer.id, TransferResult("returned", "b-1", "returned_by_bank"))]
    assert (transfer.failure_code, transfer.bank_reference) == ("returned_by_bank", "b-1")


def test_bank_notification_ends_the_transfer_inquiries(handler: FakeHandler, served_by: Serving) -> None:
    bank = served_by()
    transfer = queued()
    send_due(handler)
    services.apply_notification(ReportedTransfer(transfer.id, "succeeded"), handler, now=clock.now())
    pass_time()
    assert send_due(handler) == 0
    assert (bank.inquired, handler.statuses) == ([], ["succeeded"])


def test_bank_reference_is_kept_when_notification_has_none(handler: FakeHandler, served_by: Serving) -> None:
    served_by(sends=[TransferResult("processing", "b-1")])
    transfer = queued()
    send_due(handler)
    services.apply_notification(ReportedTransfer(transfer.id, "succeeded"), handler, now=clock.now())
    transfer.refresh_from_db()
    assert transfer.bank_reference == "b-1"
    assert handler.completed == [(transfer.id, TransferResult("succeeded", "b-1"))]


def test_report_of_other_bank_or_unknown_order_is_conflict(handler: FakeHandler, served_by: Serving) -> None:
    transfer = transfer_in(TransferState.SUBMITTED, handler, served_by)
    for order_id, bank in ((transfer.id, "scb"), ("wd_unknown", "sandbox")):
        report = ReportedTransfer(order_id, "succeeded")
        assert services.classify_notification(report, bank=bank) == "conflict"
