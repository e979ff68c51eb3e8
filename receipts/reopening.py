"""What staff ended by mistake waits again: a dismissed reversal or message, a loss, and a merge.

Who did it and why is one act more; what was decided before stays written down.
"""

from datetime import datetime

from django.db import transaction

from receipts import acting, merging, reversals, services
from receipts.acting import NotPossible
from receipts.models import Act, Deed, Receipt, Resolution

ENDED = (Resolution.DISMISSED, Resolution.LOST, Resolution.MERGED)


def reopen(subject_id: str, *, by: str, why: str, now: datetime) -> Act:
    """Open it again; what a bank took back and can be taken by now is taken in the next commit."""
    if not subject_id.startswith("rcp_"):
        return _message(subject_id, by, why, now)
    act = _receipt(subject_id, by, why, now)
    services.apply(receipt_id=subject_id, now=now)
    return act


@transaction.atomic
def _message(notice_id: str, by: str, why: str, now: datetime) -> Act:
    found = acting.message(notice_id)
    last = acting.last(notice_id)
    if found is None or last is None or last.deed != Deed.DISMISSED:
        raise _refusal(last)
    return acting.write_down(acting.draft(notice_id, Deed.REOPENED, by, why, now))


@transaction.atomic
def _receipt(receipt_id: str, by: str, why: str, now: datetime) -> Act:
    receipt = Receipt.objects.locked(receipt_id)
    if receipt.resolution not in ENDED:
        raise _refusal(acting.last(receipt_id))
    undo = merging.undo if receipt.resolution == Resolution.MERGED else reversals.reopen
    undo(receipt, now=now)
    return acting.write_down(acting.draft(receipt_id, Deed.REOPENED, by, why, now))


def _refusal(last: Act | None) -> NotPossible:
    if last is not None and last.deed == Deed.REOPENED:
        return acting.already(last.subject_id)
    return NotPossible("Only what was dismissed, merged or booked as a loss can be opened again.")
