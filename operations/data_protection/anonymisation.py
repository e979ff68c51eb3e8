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
    old = BankTransaction.objects.filter(HAS_PAYER, pk__lt=ids.first("btx_", before)).order_by("pk")
    cursor = ErasureCursor.objects.first() or ErasureCursor()
    while found := list(old.filter(pk__gt=cursor.last_id).values_list("pk", flat=True)[:BATCH]):
        counts += _erase_batch(found)
        # A run that is killed before the next line looks at the batch again.
        cursor.last_id = found[-1]
        cursor.save()
    return counts


def _erase_batch(bank_transaction_ids: list[str]) -> Counts:
    """Erase all of them, or one by one if some have not ended. These wait."""
    unfinished: list[str] = []
    try:
        counts = _erase(bank_transaction_ids)
    except NotFinished:
        counts = Counter()
        for bank_transaction_id in bank_transaction_ids:
            try:
                counts += _erase([bank_transaction_id])
            except NotFinished:
                unfinished.append(bank_transaction_id)
    WaitingErasure.objects.filter(pk__in=set(bank_transaction_ids) - set(unfinished)).delete()
    waiting = [WaitingErasure(bank_transaction_id=each) for each in unfinished]
    WaitingErasure.objects.bulk_create(waiting, ignore_conflicts=True)
    return counts


def _erase(bank_transaction_ids: list[str]) -> Counts:
    return erasure.erase_recorded(erasure.select(bank_transaction_ids), by="anonymise", reason=REASON)
