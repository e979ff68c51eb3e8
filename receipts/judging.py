"""What becomes of a receipt: read the table from top to bottom, the first case that fits decides."""

from payments.models import Payment, Status
from receipts.models import Kind, Outcome, Receipt


def judge(receipt: Receipt, payment: Payment | None) -> Outcome:
    """The outcome for money, or for a decline, and the payment that its reference names.

    The payment's expiry is materialised already. For reversals see `receipts.reversals`.
    """
    if receipt.kind == Kind.DECLINE:
        return Outcome.DECLINED
    if payment is None:
        return Outcome.UNMATCHED
    if payment.status not in (Status.PENDING, Status.EXPIRED):
        return Outcome.DUPLICATE
    if receipt.amount != payment.amount:
        return Outcome.AMOUNT_MISMATCH
    if payment.expires_at is not None and receipt.paid_at > payment.expires_at:
        return Outcome.LATE
    return Outcome.APPLIED
