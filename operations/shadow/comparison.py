"""Compare payments of a merchant with those of another gateway, in a database file that nobody else opens."""

import sqlite3
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db.models import Q, QuerySet, Value

from core.database.columns import Folded
from merchants.models import Merchant
from payments.models import CLOCK_SKEW, PAID_STATUSES, Payment

ANY_TIME = 2**62
# So far from the month payments with a reference of the files are looked for.
MARGIN = timedelta(days=31)
BATCH = 100
_SCHEMA = Path(__file__).with_name("comparison.sql").read_text("utf-8")


class Comparison:
    """Times of one payment may differ by `apart` seconds. `comparison.sql` has the rules."""

    def __init__(self, first: datetime, after: datetime, apart: int) -> None:
        self.first, self.after, self.apart = first, after, apart
        self.db = sqlite3.connect("")  # on the disk, without a name
        self.db.row_factory = sqlite3.Row
        self.db.executescript(_SCHEMA)
        self.db.execute("INSERT INTO month VALUES (?, ?, ?)", (first.timestamp(), after.timestamp(), apart))

    def add_theirs(self, found: Iterable[tuple[Any, ...]]) -> None:
        self.db.executemany("INSERT INTO reports VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", found)

    def add_ours(self, merchant: Merchant) -> None:
        """Read what was paid in the month, and what the files name, and pair it with theirs."""
        known, first, after = Payment.objects.of(merchant), self.first, self.after
        self._read(_paid(known, first, after))
        self._pair("paid_reference", "paid_reference", self.apart)
        near = known.filter(created_at__gte=first - MARGIN, created_at__lt=after + MARGIN)
        left = self.db.execute("SELECT DISTINCT reference FROM theirs_keys WHERE reference IS NOT NULL")
        for rows in iter(lambda: left.fetchmany(BATCH), []):
            texts = [text for (text,) in rows]
            folded = [Folded(Value(text)) for text in texts]
            self._read(near.filter(reference__folded__in=folded, reference__in=texts))
            self._read(known.filter(pk__in=texts))
        self._pair("reference", "id", ANY_TIME)  # acquirers of cards know our ids
        self._pair("paid_reference", "paid_reference", self.apart)
        self._pair("paid_reference", "paid_reference", ANY_TIME)
        self._pair("reference", "reference", ANY_TIME)
        self._pair_by_amount()
        # At the ends of the month the times may be of two months.
        apart = timedelta(seconds=self.apart)
        self._read(_paid(known, first - apart, first) | _paid(known, after, after + apart))
        self._pair_by_amount()

    def report(self) -> Iterator[dict[str, Any]]:
        """The differences in the order of time, and the totals."""
        for statement in ("SELECT * FROM report", "SELECT * FROM totals"):
            yield from map(dict, self.db.execute(statement))

    def _read(self, found: QuerySet[Payment]) -> None:
        for each in found.iterator():
            at = int((each.completed_at or each.created_at).timestamp())
            row = (each.id, each.reference or "", each.received, each.status in PAID_STATUSES, at)
            amounts = (each.fee, each.fee_vat, each.net)
            self.db.execute("INSERT OR IGNORE INTO ours VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*row, *amounts))

    def _pair_by_amount(self) -> None:
        self._pair("amount_alone", "amount", self.apart)
        self._pair("amount", "amount_alone", self.apart)

    def _pair(self, their_key: str, our_key: str, apart: int) -> None:
        """Pair payments with the same key, in the order of their times."""
        left, right = (
            self.db.execute(f"SELECT {key}, at, id FROM {table} WHERE {key} IS NOT NULL ORDER BY 1, 2, 3")  # noqa: S608
            for table, key in (("theirs_keys", their_key), ("ours_keys", our_key))
        )
        self.db.executemany("INSERT INTO pairs VALUES (?, ?)", _alike(left, right, apart))


def _paid(known: QuerySet[Payment], first: datetime, after: datetime) -> QuerySet[Payment]:
    paid = Q(status__in=PAID_STATUSES, completed_at__gte=first, completed_at__lt=after)
    return known.filter(paid, created_at__lt=after + CLOCK_SKEW)


def _alike(left: Iterator[Any], right: Iterator[Any], apart: int) -> Iterator[tuple[str, str]]:
    there, here = next(left, None), next(right, None)
    while there and here:
        if there[0] == here[0] and abs(there[1] - here[1]) <= apart:
            yield there[2], here[2]
            there, here = next(left, None), next(right, None)
        elif there[:2] < here[:2]:
            there = next(left, None)
        else:
            here = next(right, None)
