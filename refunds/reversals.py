"""Refunds that a bank made by itself: it took back what it had paid in."""

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


def record(payment: Payment, *, reversal_id: str, route: str, amount: int, now: datetime) -> None:
    """As much of `amount` (satang) as no refund has sent back goes by the refund path, completed at birth.

    The caller holds the payment's lock and posts to the ledger, which the bank does not ask for what is set
    aside.
    """
    takeback = Takeback.objects.create(
        reversal_id=reversal_id, payment=payment, amount=amount, route=route, created_at=now
    )
    _show(takeback, payment, now)


def show_rest(payment: Payment, now: datetime) -> None:
    """A refund will not go after all: nobody may ask again for what the bank has taken meanwhile.

    The caller holds the payment's lock.
    """
    takeback = Takeback.objects.filter(payment=payment, shown__lt=F("amount")).first()
    if takeback is not None:
        _show(takeback, payment, now)


def _show(takeback: Takeback, payment: Payment, now: datetime) -> None:
    part = min(takeback.amount - takeback.shown, payment.left_to_refund)
    if part == 0:
        return
    payments.reserve_refund(payment, part, now=now)
    by_bank = {"reason": Reason.OTHER, "note": NOTE, "reversal": takeback, "route": takeback.route}
    refund = store(payment, part, now, status=Status.COMPLETED, completed_at=now, **by_bank)
    payments.complete_refund(payment, part, now=now)
    transactions.settle_refund(refund_id=refund.id, status=HistoryStatus.SUCCEEDED)
    takeback.shown += part
    takeback.save(update_fields=["shown"])
    publish("refund.completed", refund, now)
