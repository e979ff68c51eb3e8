"""What a bank took back and nobody here could give becomes the operator's loss."""

from datetime import datetime

from approvals import services as approvals
from approvals.models import Approval, ApprovalKind
from core import ids
from ledger import accounts
from ledger import services as ledger
from reconciliation.exceptions import resolution_records, returns
from reconciliation.models import BankTransaction, Resolution, ResolutionState, ResolutionType


def request(reversal: BankTransaction, *, actor: str, note: str, now: datetime) -> Resolution | Approval:
    """Book it now, or wait for a second person. The caller holds the reversal's lock."""
    merchant = returns.merchant_of_biller(reversal)
    outgoing = approvals.OutgoingMoney(
        kind=ApprovalKind.WRITE_OFF,
        subject_id=reversal.id,
        merchant_id=merchant.id if merchant else None,
        amount=reversal.amount,
        note=note,
        requested_by=f"staff:{actor}",
    )
    approval = approvals.request(outgoing, now=now)
    return approval if approval.is_waiting else _book(reversal, actor, note, now)


def book_approved(approval: Approval, *, now: datetime) -> Resolution:
    """It was approved. Raises approvals.NotDecidable where there is nothing to write off any more."""
    reversal: BankTransaction = BankTransaction.objects.locked(approval.subject_id)
    if reversal.resolution_state != ResolutionState.OPEN:
        raise approvals.NotDecidable("There is nothing left to write off.")
    return _book(reversal, approval.requested_by.removeprefix("staff:"), approval.note, now)


def _book(reversal: BankTransaction, actor: str, note: str, now: datetime) -> Resolution:
    reversal.resolve(ResolutionState.WRITTEN_OFF, now=now)
    resolution = resolution_records.draft(reversal.id, ResolutionType.WRITTEN_OFF, actor, note, now)
    # The ledger posts a fact once about each subject.
    resolution.ledger_subject_id = ids.new("los_", now) if resolution.reopen_count else reversal.id
    route = accounts.bank(reversal.bank)
    ledger.write_off(subject_id=resolution.ledger_subject_id, amount=reversal.amount, to=route, now=now)
    return resolution_records.save(resolution)
