"""A bank contradicts how something ended here: kept once, in the caller's transaction, for staff to end."""

import logging
from datetime import datetime

from core import ids, request_context
from transfers.models import TransferContradiction

log = logging.getLogger("transfers")


def record(
    subject_id: str,
    *,
    merchant_id: str,
    route: str,
    amount: int,
    state: str,
    answer: str,
    bank_reference: str,
    now: datetime,
    answer_amount: int | None = None,
    answer_currency: str = "",
) -> None:
    """state: how the order or the card payment ended here; answer: how it ended by the word of `route`.

    answer_amount and answer_currency: what `route` moved, where that is not `amount` in THB.

    The same contradiction again changes nothing, also after staff have ended it.
    """
    cause = request_context.current()
    contradiction = TransferContradiction(
        id=ids.new("ctr_", now),
        subject_id=subject_id,
        merchant_id=merchant_id,
        route=route,
        amount=amount,
        state=state,
        answer=answer,
        answer_amount=answer_amount,
        answer_currency=answer_currency,
        bank_reference=bank_reference,
        actor=cause.actor,
        request_id=cause.request_id,
        created_at=now,
    )
    TransferContradiction.objects.bulk_create([contradiction], ignore_conflicts=True)
    log.error("%s is %s here, and %s says %s", subject_id, state, route, answer)
