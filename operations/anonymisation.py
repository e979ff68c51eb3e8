"""Erase the personal data of payers after the days that the settings say."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from django.db.models import Q

from core import ids
from operations import erasure
from operations.erasure import Counts, NotFinished
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
    for movement_ids in _waiting():
        counts += _erase_batch(movement_ids)
    for movement_ids in _newly_old(ids.first("rcp_", before)):
        counts += _erase_batch(movement_ids)
        # A run that is killed before this line looks at the batch again.
        ErasureCursor.objects.update_or_create({"last_id": movement_ids[-1]}, pk=ErasureCursor.ONLY)
    return counts


def _waiting() -> Iterator[list[str]]:
    """The ids of bank transactions that had not ended in a run before."""
    waiting = list(WaitingErasure.objects.order_by("pk").values_list("pk", flat=True))
    yield from (waiting[start : start + BATCH] for start in range(0, len(waiting), BATCH))


def _newly_old(end: str) -> Iterator[list[str]]:
    """The ids of bank transactions with a payer that no run has seen, the oldest first. Ids sort by time."""
    cursor = ErasureCursor.objects.first()
    with_payer = BankTransaction.objects.filter(HAS_PAYER, pk__lt=end).order_by("pk")
    after = cursor.last_id if cursor else ""
    while movement_ids := list(with_payer.filter(pk__gt=after).values_list("pk", flat=True)[:BATCH]):
        yield movement_ids
        after = movement_ids[-1]


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
