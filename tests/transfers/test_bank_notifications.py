"""The bank speaks of its own accord."""

from collections.abc import Callable

import pytest

from banks import ReportedTransfer, TransferResult
from core import clock
from tests.transfers.builders import Bank, RecordingHandler, pass_time, queued, send_due
from transfers import services
from transfers.models import Transfer, TransferState

Serving = Callable[..., Bank]
pytestmark = pytest.mark.django_db
ROAD: dict[TransferState, list[TransferResult]] = {
    TransferState.SUBMITTED: [TransferResult("processing")],
    TransferState.SUCCEEDED: [TransferResult("succeeded")],
    TransferState.FAILED: [TransferResult("failed")],
}


def transfer_in(state: TransferState, owner: RecordingHandler, served_by: Serving) -> Transfer:
    transfer = queued()
    if state == TransferState.CANCELED:
        services.cancel(transfer.id, now=clock.now())
    if state in ROAD:
        served_by(sends=ROAD[state])
        send_due(owner)
    if state == TransferState.RETURNED:
        served_by(sends=[TransferResult("succeeded")])
        send_due(owner)
        services.apply_notification(ReportedTransfer(transfer.id, "returned"), owner, now=clock.now())
    owner.completed.clear()
    return transfer


@pytest.mark.parametrize(
    ("state", "fate", "weight", "completed", "ends"),
    [
        (TransferState.SUBMITTED, "succeeded", "new", ["succeeded"], TransferState.SUCCEEDED),
        (TransferState.SUBMITTED, "failed", "new", ["failed"], TransferState.FAILED),
        (TransferState.SUBMITTED, "returned", "new", ["succeeded", "returned"], TransferState.RETURNED),
        (TransferState.SUCCEEDED, "succeeded", "repeat", [], TransferState.SUCCEEDED),
        (TransferState.SUCCEEDED, "returned", "new", ["returned"], TransferState.RETURNED),
        (TransferState.SUCCEEDED, "failed", "conflict", [], TransferState.SUCCEEDED),
        (TransferState.FAILED, "failed", "repeat", [], TransferState.FAILED),
        (TransferState.FAILED, "succeeded", "conflict", [], TransferState.FAILED),
        (TransferState.FAILED, "returned", "conflict", [], TransferState.FAILED),
        (TransferState.RETURNED, "returned", "repeat", [], TransferState.RETURNED),
        (TransferState.RETURNED, "succeeded", "repeat", [], TransferState.RETURNED),
        (TransferState.RETURNED, "failed", "conflict", [], TransferState.RETURNED),
        (TransferState.QUEUED, "succeeded", "conflict", [], TransferState.QUEUED),
        (TransferState.CANCELED, "succeeded", "conflict", [], TransferState.CANCELED),
    ],
)
def test_a_notification_settles_repeats_or_contradicts(
    owner: RecordingHandler,
    served_by: Serving,
    state: TransferState,
    fate: str,
    weight: str,
    completed: list[str],
    ends: TransferState,
) -> None:
    transfer = transfer_in(state, owner, served_by)
    notification = ReportedTransfer(transfer.id, fate, "b-9")  # type: ignore[arg-type]
    assert services.classify_notification(notification, bank="sandbox") == weight
    for _ in range(2):
        services.apply_notification(notification, owner, now=clock.now())
    transfer.refresh_from_db()
    assert (owner.fates, transfer.state) == (completed, ends)


def test_money_that_came_back_says_so(owner: RecordingHandler, served_by: Serving) -> None:
    transfer = transfer_in(TransferState.SUCCEEDED, owner, served_by)
    services.apply_notification(ReportedTransfer(transfer.id, "returned", "b-1"), owner, now=clock.now())
    transfer.refresh_from_db()
    assert owner.completed == [(transfer.id, TransferResult("returned", "b-1", "returned_by_bank"))]
    assert (transfer.failure_code, transfer.bank_reference) == ("returned_by_bank", "b-1")


def test_a_notification_ends_the_inquiries(owner: RecordingHandler, served_by: Serving) -> None:
    bank = served_by()
    transfer = queued()
    send_due(owner)
    services.apply_notification(ReportedTransfer(transfer.id, "succeeded"), owner, now=clock.now())
    pass_time()
    assert send_due(owner) == 0
    assert (bank.inquired, owner.fates) == ([], ["succeeded"])


def test_what_the_bank_called_it_is_kept_when_it_says_no_more(
    owner: RecordingHandler, served_by: Serving
) -> None:
    served_by(sends=[TransferResult("processing", "b-1")])
    transfer = queued()
    send_due(owner)
    services.apply_notification(ReportedTransfer(transfer.id, "succeeded"), owner, now=clock.now())
    transfer.refresh_from_db()
    assert (transfer.bank_reference, owner.completed) == (
        "b-1",
        [(transfer.id, TransferResult("succeeded", "b-1"))],
    )


def test_another_bank_cannot_speak_of_it(owner: RecordingHandler, served_by: Serving) -> None:
    transfer = transfer_in(TransferState.SUBMITTED, owner, served_by)
    assert (
        services.classify_notification(ReportedTransfer(transfer.id, "succeeded"), bank="scb") == "conflict"
    )
    assert (
        services.classify_notification(ReportedTransfer("wd_unknown", "succeeded"), bank="sandbox")
        == "conflict"
    )
