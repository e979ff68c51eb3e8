"""Erase the personal data of payers after the days that the settings say."""

from collections import Counter
from datetime import datetime

from django.db.models import Q

from core import ids
from operations.data_protection import erasure
from operations.data_protection.erasure import Counts, NotFinished
from operations.models import ErasureCursor, WaitingErasure
from reconciliation.models import BankTransaction

BATCH = 200
HAS_PAYER = ~Q(payer_name="") | ~Q(payer_account_sealed="")
REASON = "PERSONAL_DATA_RETENTION_DAYS"


def anonymise(*, before: datetime) -> Counts:
    """Erase the payers of bank transactions that were received earlier. Returns the changed rows by model.

    Commits each batch, so it may be interrupted and run again. It goes on where the last run ended, and looks
    again at those that had not ended then.
    """
    counts: Counts = Counter()
    waiting = list(WaitingErasure.objects.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(waiting), BATCH):
        counts += _erase_batch(waiting[start : start + BATCH])
    # Ids sort by time.
    old = BankTransaction.objects.filter(HAS_PAYER, pk__lt=ids.first("rcp_", before)).order_by("pk")
    cursor = ErasureCursor.objects.first() or ErasureCursor()
    while movement_ids := list(old.filter(pk__gt=cursor.last_id).values_list("pk", flat=True)[:BATCH]):
        counts += _erase_batch(movement_ids)
        # A run that is killed before the next line looks at the batch again.
        cursor.last_id = movement_ids[-1]
        cursor.save()
    return counts


def _erase_batch(movement_ids: list[str]) -> Counts:
    """Erase all of them, or one by one if some have not ended. These wait."""
    unfinished: list[str] = []
    try:
        counts = _erase(movement_ids)
    except NotFinished:
        counts = Counter()
        for movement_id in movement_ids:
            try:
                counts += _erase([movement_id])
            except NotFinished:
                unfinished.append(movement_id)
    WaitingErasure.objects.filter(pk__in=set(movement_ids) - set(unfinished)).delete()
    waiting = [WaitingErasure(movement_id=each) for each in unfinished]
    WaitingErasure.objects.bulk_create(waiting, ignore_conflicts=True)
    return counts


def _erase(movement_ids: list[str]) -> Counts:
    return erasure.erase_recorded(erasure.select(movement_ids), by="anonymise", reason=REASON)
