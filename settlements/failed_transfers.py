"""Failed transfers whose payments a later one paid without listing them, as staff find out."""

from datetime import datetime
from typing import cast

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet, Sum
from django.utils.translation import gettext as _

from audit_trail.acts import Act
from audit_trail.recording import recorded
from banks import SettledItem as ReportedItem
from banks.base import SettledItemKind
from settlements import items, questions
from settlements.models import OF_FAILED_TRANSFERS, AcquirerTransfer, AcquirerTransferState, OpenQuestion


def candidates(question: OpenQuestion) -> "QuerySet[AcquirerTransfer]":
    """Failed transfers whose items are the difference of the question, to the satang."""
    transfer = question.transfer
    failed = AcquirerTransfer.objects.filter(acquirer=question.acquirer, state=AcquirerTransferState.FAILED)
    if transfer is None or question.kind not in OF_FAILED_TRANSFERS:
        return failed.none()
    earlier = failed.filter(created_at__lt=transfer.created_at, answered=None)
    sums = earlier.annotate(sum=Sum("items__net_amount"))
    return sums.filter(sum=question.difference).order_by("-created_at")


@transaction.atomic
def pay_by_later_one(question_id: str, *, failed_id: str, note: str, now: datetime) -> OpenQuestion:
    """Close a question: the money is that of a failed transfer, whose payments are settled."""
    # The order of a reading: it locks a transfer, and then asks about it.
    transfer = AcquirerTransfer.objects.select_for_update().get(questions=question_id)
    question = questions.lock_open(question_id)
    failed = candidates(question).filter(pk=failed_id).first()
    if failed is None or transfer.state != AcquirerTransferState.PAID:
        raise ValidationError(_("The transfer has not arrived, or the sums differ."))
    with recorded(Act.QUESTION_CLOSED, question):
        question.closed_at, question.note, question.failed_transfer = now, note, failed
        question.save(update_fields=["closed_at", "note", "failed_transfer"])
        listed = [
            ReportedItem(
                kind=cast("SettledItemKind", each.kind),
                reference=each.reference,
                order_id=each.refund_id or "",
                amount=each.amount,
                fee=each.fee,
                fee_vat=each.fee_vat,
                net=each.net_amount,
                description=each.description,
            )
            for each in failed.items.order_by("pk")
        ]
        items.store(transfer, listed, now)
        items.settle_rest(transfer, now)
    return question
