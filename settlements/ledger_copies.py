"""What we keep of an acquirer's ledger: entries that no transfer has paid, and until when it was read."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from django.db import transaction

from banks import LedgerEntry
from banks import SettledItem as ReportedItem
from settlements.models import AcquirerReading, AcquirerTransfer, AcquirerTransferState, UnpaidEntry


class StoredLedger:
    """A `banks.LedgerCopy`. Readers at once keep each entry once."""

    def __init__(self, acquirer: str) -> None:
        self._acquirer = acquirer
        known = AcquirerReading.objects.filter(pk=acquirer)
        self.read_until: datetime | None = known.values_list("ledger_until", flat=True).first()

    @transaction.atomic
    def add(self, entries: Sequence[LedgerEntry], read_until: datetime) -> None:
        reading, _ = AcquirerReading.objects.select_for_update().get_or_create(pk=self._acquirer)
        UnpaidEntry.objects.bulk_create(
            [
                UnpaidEntry(
                    acquirer=self._acquirer,
                    entry_id=each.id,
                    transferable_at=each.transferable_at,
                    item=asdict(each.item),
                )
                for each in entries
            ],
            ignore_conflicts=True,
        )
        self.read_until = reading.ledger_until = max(read_until, reading.ledger_until or read_until)
        reading.save(update_fields=["ledger_until"])

    def entries(self, after: datetime | None, until: datetime) -> list[LedgerEntry]:
        found = UnpaidEntry.objects.filter(acquirer=self._acquirer, transferable_at__lte=until).order_by("pk")
        if after is not None:
            found = found.filter(transferable_at__gt=after)
        return [LedgerEntry(each.entry_id, each.transferable_at, ReportedItem(**each.item)) for each in found]

    def finish(self, now: datetime) -> None:
        """Note that the reading is complete, and delete what transfers that arrived have paid."""
        AcquirerReading.objects.update_or_create(pk=self._acquirer, defaults={"read_at": now})
        paid = AcquirerTransfer.objects.filter(acquirer=self._acquirer, state=AcquirerTransferState.PAID)
        newest = paid.order_by("-created_at").values_list("created_at", flat=True).first()
        if newest is not None:
            UnpaidEntry.objects.filter(acquirer=self._acquirer, transferable_at__lte=newest).delete()
