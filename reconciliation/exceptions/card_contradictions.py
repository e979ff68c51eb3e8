"""Card charges of another amount: staff refund them at the acquirer and end the payment here."""

from datetime import datetime

from django.db import transaction

from payments import cards
from payments.card_models import OPEN_STATES
from payments.models import CardCharge, PaymentStatus
from reconciliation.exceptions import resolution_records
from reconciliation.exceptions.resolution_records import ActionNotAllowed
from reconciliation.models import Resolution, ResolutionType
from transfers.models import TransferContradiction


@transaction.atomic
def mark_failed(contradiction_id: str, *, actor: str, note: str, now: datetime) -> Resolution:
    """The payment fails, and its merchant is told. Raises ActionNotAllowed, AlreadyResolved."""
    contradiction = TransferContradiction.objects.get(pk=contradiction_id)
    try:
        if contradiction.state != PaymentStatus.PENDING:
            raise cards.ChargeAlreadyCompleted(contradiction.subject_id)
        cards.fail_manually(contradiction.subject_id, now=now)
    except cards.ChargeAlreadyCompleted:
        raise ActionNotAllowed("This card payment is no longer pending.") from None
    resolution_records.lock_contradiction(contradiction_id)
    return resolution_records.save(
        resolution_records.draft(contradiction_id, ResolutionType.BOOKED_FAILED, actor, note, now)
    )


def is_payment_pending(contradiction: TransferContradiction) -> bool:
    """Whether it is about a card payment that nobody has ended: dismissing it would leave that pending."""
    return CardCharge.objects.filter(pk=contradiction.subject_id, state__in=OPEN_STATES).exists()
