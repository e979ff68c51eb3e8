"""Card charges of another amount: staff refund them at the acquirer and end the payment here."""

from datetime import datetime

from django.db import transaction

from payments import cards
from payments.card_models import OPEN
from payments.models import CardCharge, Status
from receipts import acting
from receipts.acting import NotPossible
from receipts.models import Act, Deed
from transfers.models import Contradiction


@transaction.atomic
def book_as_failed(contradiction_id: str, *, by: str, why: str, now: datetime) -> Act:
    """The payment fails, and its merchant is told. Raises NotPossible, AlreadyDone."""
    found = Contradiction.objects.get(pk=contradiction_id)
    try:
        if found.state != Status.PENDING:
            raise cards.ChargeHasEnded(found.subject_id)
        cards.end_as_failed(found.subject_id, now=now)
    except cards.ChargeHasEnded:
        raise NotPossible("This card payment is not pending any more.") from None
    acting.contradiction(contradiction_id)
    return acting.write_down(acting.draft(contradiction_id, Deed.BOOKED_FAILED, by, why, now))


def is_pending(found: Contradiction) -> bool:
    """Whether it is about a card payment that nobody has ended: dismissing it would leave that pending."""
    return CardCharge.objects.filter(pk=found.subject_id, state__in=OPEN).exists()
