"""What a bank took back of a payment by itself, shown as refunds as far as others leave room."""

from datetime import datetime

from django.db.models import F

from payments import services as payments
from payments.models import Payment
from refunds.models import Reason, Status, Takeback
from refunds.storing import store
from refunds.telling import publish
from transactions import services as transactions
from transactions.models import Status as HistoryStatus

NOTE = "Taken back by the bank."


def show(payment: Payment, now: datetime) -> None:
    """As much as no other refund has sent back goes by the refund path, completed at birth.

    The caller holds the payment's lock. Called again when a refund under way does not go: nobody may ask
    again for what the bank has taken meanwhile.
    """
    takeback = Takeback.objects.filter(payment=payment, shown__lt=F("amount")).first()
    part = 0 if takeback is None else min(takeback.amount - takeback.shown, payment.left_to_refund)
    if takeback is None or part == 0:
        return
    payments.reserve_refund(payment, part, now=now)
    by_bank = {"reason": Reason.OTHER, "note": NOTE, "reversal": takeback, "route": takeback.route}
    refund = store(payment, part, now, status=Status.COMPLETED, completed_at=now, **by_bank)
    payments.complete_refund(payment, part, now=now)
    transactions.settle_refund(refund_id=refund.id, status=HistoryStatus.SUCCEEDED)
    takeback.shown += part
    takeback.save(update_fields=["shown"])
    publish("refund.completed", refund, now)
