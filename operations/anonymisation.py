"""Erase the personal data of payers after the days that the settings say."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from django.db.models import Q

from core import ids
from operations import erasure
from operations.erasure import Counts, NotFinished
from reconciliation.models import BankTransaction

BATCH = 200
HAS_PAYER = ~Q(payer_name="") | ~Q(payer_account_sealed="")
REASON = "PERSONAL_DATA_RETENTION_DAYS"


def anonymise(*, before: datetime) -> Counts:
    """Erase the payers of bank transactions that were received earlier. Returns the changed rows by model.

    Commits each batch, so it may be interrupted and run again. What has not ended waits for another night.
    """
    counts: Counts = Counter()
    for movement_ids in _batches(ids.first("rcp_", before)):
        counts += _erase_batch(movement_ids)
    return counts


def _batches(end: str) -> Iterator[list[str]]:
    """The ids of bank transactions with a payer, the oldest first. Ids sort by time."""
    with_payer, after = BankTransaction.objects.filter(HAS_PAYER, pk__lt=end).order_by("pk"), ""
    while movement_ids := list(with_payer.filter(pk__gt=after).values_list("pk", flat=True)[:BATCH]):
        yield movement_ids
        after = movement_ids[-1]


def _erase_batch(movement_ids: list[str]) -> Counts:
    """Erase all of them, or one by one if some have not ended."""
    try:
        return _erase(movement_ids)
    except NotFinished:
        counts: Counts = Counter()
        for movement_id in movement_ids:
            try:
                counts += _erase([movement_id])
            except NotFinished:
                continue
        return counts


def _erase(movement_ids: list[str]) -> Counts:
    return erasure.erase_recorded(erasure.select(movement_ids), by="anonymise", reason=REASON)
