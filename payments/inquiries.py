"""Ask acquirers what became of charges whose call was not answered, or whose process died."""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

import banks
from banks import Said
from core import origin
from payments import cards
from payments.card_models import OPEN
from payments.models import CardCharge, ChargeAnswer

log = logging.getLogger("payments")
# Longer than an inquiry can take, so that only those of a process that died come due by it.
LEASE = timedelta(seconds=120)


def inquire_due(*, now: Callable[[], datetime], limit: int = 50) -> int:
    """Inquire what is due, one after the other. Sweeps may run at once. Returns how many."""
    for number in range(limit):
        charge = _claim()
        if charge is None:
            return number
        try:
            _inquire(charge, now)
        except Exception:
            log.exception("charge %s could not be inquired", charge.payment_id)
    return limit


@transaction.atomic
def _claim() -> CardCharge | None:
    """A due charge, leased to the caller by the database's clock. No two sweeps get the same."""
    due = CardCharge.objects.filter(state__in=OPEN, due_at__lte=Now()).order_by("due_at")
    charge = due.select_for_update(skip_locked=True).first()
    if charge is not None:
        ours = CardCharge.objects.filter(pk=charge.pk)
        ours.update(due_at=Now() + LEASE, inquiries=F("inquiries") + 1)
    return charge


def _inquire(charge: CardCharge, now: Callable[[], datetime]) -> None:
    acquirer, began = banks.acquirer(charge.acquirer), time.monotonic()
    said = acquirer.find(charge.payment_id, charge_id=charge.charge_id, since=charge.created_at)
    took_ms, at = round((time.monotonic() - began) * 1000), now()
    with transaction.atomic():
        payment = cards.settle(charge.payment_id, said, now=at)
        if payment is not None:
            _keep(charge, said, took_ms, at)


def _keep(charge: CardCharge, said: Said, took_ms: int, at: datetime) -> None:
    request_id = origin.current().request_id
    ChargeAnswer.objects.create(
        charge=charge, said=said.outcome, took_ms=took_ms, at=at, request_id=request_id
    )
