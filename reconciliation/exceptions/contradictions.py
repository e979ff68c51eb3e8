"""What staff decide if a bank or acquirer contradicts our record of an order or a card charge."""

from datetime import datetime

from django.utils.translation import gettext as _

from audit_trail.acts import ActRefused
from payments import cards
from payments.card_models import OPEN_STATES
from payments.models import CardCharge, PaymentStatus
from reconciliation.exceptions import resolution_records
from reconciliation.matching import order_completion
from reconciliation.models import Resolution, ResolutionType
from transfers import services as transfers
from transfers.models import TransferContradiction, TransferState


def is_card_payment_pending(contradiction: TransferContradiction) -> bool:
    """Whether the card payment has not ended. A dismissal would leave it pending forever."""
    return CardCharge.objects.filter(pk=contradiction.subject_id, state__in=OPEN_STATES).exists()


@resolution_records.decision(ResolutionType.BOOKED_FAILED)
def mark_failed(contradiction_id: str, *, note: str, now: datetime) -> Resolution:
    """Fail a payment whose card was charged a wrong amount, after staff refunded it. Raises ActRefused."""
    contradiction = TransferContradiction.objects.get(pk=contradiction_id)
    try:
        if contradiction.state != PaymentStatus.PENDING:
            raise cards.ChargeAlreadyCompleted(contradiction.subject_id)
        cards.fail_manually(contradiction.subject_id, now=now)
    except cards.ChargeAlreadyCompleted:
        raise ActRefused(_("This card payment is no longer pending.")) from None
    resolution_records.lock_message(contradiction_id)
    return resolution_records.record(contradiction_id, ResolutionType.BOOKED_FAILED, note, now)


@resolution_records.decision(ResolutionType.BOOKED_RETURNED)
def mark_returned(contradiction_id: str, *, note: str, now: datetime) -> Resolution:
    """Take back the money of an order that the bank reported as sent but never sent.

    The money of a withdrawal returns to the merchant's balance. The money of a refund or a return becomes an
    exception again. Raises ActRefused, AlreadyResolved.
    """
    contradiction = TransferContradiction.objects.get(pk=contradiction_id)
    if not is_never_sent(contradiction):
        raise ActRefused(
            _("Only an order that succeeded here and failed at the bank can be marked as returned.")
        )
    order_id = contradiction.subject_id
    transfers.mark_returned(order_id, order_completion.handler_of(order_id), now=now)
    resolution_records.lock_message(contradiction_id)
    return resolution_records.record(contradiction_id, ResolutionType.BOOKED_RETURNED, note, now)


def is_never_sent(contradiction: TransferContradiction) -> bool:
    return (contradiction.state, contradiction.answer) == (TransferState.SUCCEEDED, "failed")
