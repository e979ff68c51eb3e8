"""What a day did to the ledger: totals of each account, and a hash over all entries."""

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from typing import Any

from django.db import connection

from core import dates
from core.database import rows
from ledger.models import EXTERNAL_ACCOUNT_TYPES

AMOUNTS = ("opening", "incoming", "outgoing", "closing")
# Reads a range of the index of each account, so the cost is that of the day and not of the history.
DAY_TOTALS = """
    SELECT account.id, account.type, account.merchant_id,
        coalesce(day.incoming, 0)::bigint, coalesce(day.outgoing, 0)::bigint, coalesce(day.entries, 0)
    FROM ledger_account AS account CROSS JOIN LATERAL (
        SELECT sum(amount) FILTER (WHERE amount > 0) AS incoming,
            sum(amount) FILTER (WHERE amount < 0) AS outgoing, count(*) AS entries
        FROM ledger_entry WHERE account_id = account.id AND created_at >= %s AND created_at < %s
    ) AS day
    ORDER BY account.id
"""
OPENING = "SELECT account_id, sum(amount)::bigint FROM ledger_entry WHERE created_at < %s GROUP BY account_id"
ENTRIES = """
    SELECT entry.account_id, entry.id, entry.journal_id, entry.amount, entry.created_at
    FROM ledger_account AS account CROSS JOIN LATERAL (
        SELECT * FROM ledger_entry WHERE account_id = account.id AND created_at >= %s AND created_at < %s
    ) AS entry
    ORDER BY entry.account_id, entry.created_at, entry.id
"""


@dataclass(frozen=True, slots=True)
class AccountTotals:
    """One account on one day, in satang. `outgoing` is negative or zero."""

    account: str
    type: str
    merchant: str | None
    opening: int
    incoming: int
    outgoing: int
    entries: int

    @property
    def closing(self) -> int:
        return self.opening + self.incoming + self.outgoing

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"closing": self.closing}


def bounds(day: date) -> tuple[datetime, datetime]:
    """The first instant of a day in Bangkok, and the first one after it."""
    return dates.midnight(day), dates.end_of(day)


def opening_balances(start: datetime) -> dict[str, int]:
    """The balance of each account before `start`. Reads the whole history: for the first close only."""
    return dict(rows.run(OPENING, [start]).fetchall())


def of_day(day: date, opening: dict[str, int]) -> list[AccountTotals]:
    """All accounts that had a balance or an entry, sorted by account."""
    read = rows.run(DAY_TOTALS, list(bounds(day))).fetchall()
    found = [
        AccountTotals(account, type, merchant, opening.get(account, 0), incoming, outgoing, entries)
        for account, type, merchant, incoming, outgoing, entries in read
    ]
    return [totals for totals in found if totals.opening or totals.entries]


def entries_hash(day: date) -> str:
    """SHA-256 over a line for each entry of the day, sorted by account, time and id. Reads them in chunks."""
    total = hashlib.sha256()
    with connection.chunked_cursor() as cursor:
        cursor.execute(ENTRIES, list(bounds(day)))
        for account, entry, journal, amount, created_at in cursor:
            at = created_at.astimezone(UTC).isoformat(timespec="microseconds")
            total.update(f"{account} {entry} {journal} {amount} {at}\n".encode())
    return total.hexdigest()


def by_merchant(accounts: Iterable[AccountTotals]) -> list[dict[str, Any]]:
    """The sums of the accounts of each merchant."""
    merchants: dict[str, list[AccountTotals]] = {}
    for each in accounts:
        if each.merchant:
            merchants.setdefault(each.merchant, []).append(each)
    return [{"merchant": name, **_sums(found)} for name, found in sorted(merchants.items())]


def by_bank(accounts: Iterable[AccountTotals]) -> list[dict[str, Any]]:
    """Banks and acquirers. Their account falls when money comes in."""
    outside = (each for each in accounts if each.type in EXTERNAL_ACCOUNT_TYPES)
    return [{"account": each.account, **_sums([each])} for each in outside]


def _sums(accounts: list[AccountTotals]) -> dict[str, int]:
    return {name: sum(getattr(each, name) for each in accounts) for name in AMOUNTS}
