"""A copy of an acquirer's ledger in memory."""

from collections.abc import Sequence
from datetime import datetime

from banks import LedgerEntry


class MemoryLedger:
    def __init__(self) -> None:
        self.read_until: datetime | None = None
        self._entries: dict[str, LedgerEntry] = {}

    def add(self, entries: Sequence[LedgerEntry], read_until: datetime) -> None:
        for each in entries:
            self._entries.setdefault(each.id, each)
        self.read_until = read_until

    def entries(self, after: datetime | None, until: datetime) -> list[LedgerEntry]:
        return [
            each
            for each in self._entries.values()
            if each.transferable_at <= until and (after is None or each.transferable_at > after)
        ]
