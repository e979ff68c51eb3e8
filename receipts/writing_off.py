"""What a bank took back and nobody here could give becomes the operator's loss."""

from datetime import datetime

from approvals import services as approvals
from approvals.models import Approval, Kind
from core import ids
from receipts import acting, returns
from receipts.models import Act, Deed, Receipt, Resolution
from transactions import accounts, ledger


def request(reversal: Receipt, *, by: str, why: str, now: datetime) -> Act | Approval:
    """Book it now, or wait for a second person. The caller holds the reversal's lock."""
    payee = returns.payee_of(reversal)
    item = approvals.Outgoing(
        kind=Kind.WRITE_OFF,
        subject_id=reversal.id,
        merchant_id=payee.id if payee else None,
        amount=reversal.amount,
        note=why,
        requested_by=f"staff:{by}",
    )
    approval = approvals.judge(item, now=now)
    return approval if approval.is_waiting else _book(reversal, by, why, now)


def book(approval: Approval, *, now: datetime) -> Act:
    """It was approved. Raises approvals.NotDecidable where there is nothing to write off any more."""
    reversal: Receipt = Receipt.objects.locked(approval.subject_id)
    if reversal.resolution != Resolution.OPEN:
        raise approvals.NotDecidable("There is nothing to write off any more.")
    return _book(reversal, approval.requested_by.removeprefix("staff:"), approval.note, now)


def _book(reversal: Receipt, by: str, why: str, now: datetime) -> Act:
    reversal.resolve(Resolution.LOST, now=now)
    act = acting.draft(reversal.id, Deed.LOST, by, why, now)
    # The ledger posts a fact once about each subject.
    act.posted_as = ids.new("los_", now) if act.round else reversal.id
    route = accounts.bank(reversal.bank)
    ledger.lose(subject_id=act.posted_as, amount=reversal.amount, to=route, at=now)
    return acting.write_down(act)
