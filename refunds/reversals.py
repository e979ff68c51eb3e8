"""A bank took back what it had paid in, by itself."""

from contextlib import suppress
from datetime import datetime

from django.db.models import F

from payments.models import Payment
from refunds import completion
from refunds.models import Refund, RefundReversal, RefundStatus
from transfers import services as transfers


def has_reversal(payment: Payment) -> bool:
    """Whether its bank took something back before. The caller holds the payment's lock."""
    return RefundReversal.objects.filter(payment=payment).exists()


def reversed_amount(payment: Payment) -> int:
    """Satang of the payment that its bank took back."""
    return sum(RefundReversal.objects.filter(payment=payment).values_list("amount", flat=True))


def record(payment: Payment, *, reversal_id: str, route: str, amount: int, now: datetime) -> None:
    """Show `amount` (satang) as a refund.

    Others that leave no room for it do not go, as far as no bank was told of them: the payer has the money.
    The caller holds the payment's lock and posts to the ledger, which the bank does not ask for what is set
    aside.
    """
    taken = RefundReversal.objects.create(
        reversal_id=reversal_id, payment=payment, amount=amount, route=route, created_at=now
    )
    completion.record_reversal_refund(payment, now)
    under_way = Refund.objects.filter(payment=payment, status=RefundStatus.PENDING).order_by(
        "-created_at", "-id"
    )
    for refund_id in under_way.values_list("pk", flat=True):
        if not RefundReversal.objects.filter(pk=taken.pk, refunded_amount__lt=F("amount")).exists():
            return
        with suppress(transfers.AlreadySubmitted):
            completion.cancel(Refund.objects.locked(refund_id), payment, now=now)
