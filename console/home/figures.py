"""Amounts and numbers of a period, from the counts of all merchants (`counts/sql/rules.sql`).

They are exact for all rows that were rolled up, so they lag by 10 to 20 seconds. No payment is read, so the
cost does not grow with the number of payments. Fees are entries of their accounts in the period, by an index
that has their amounts, and up to MAX_FEES: these take half a second.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import banks
from console.home.period import Period
from core.database import rows
from ledger import accounts
from ledger.accounts import SANDBOX
from merchants.models import Mode
from payments.cards import ACQUIRERS

MAX_MERCHANTS = 10
MAX_FEES = 1_000_000
RECEIVED = ["payment/succeeded", "payment/refunded"]
REFUNDED = ["refund/succeeded"]
# Hours of a day that begins at 17:00 UTC are in two UTC days, so a period has days and hours of counts.
_BY_BAR = """
SELECT list, kind, date_trunc(%(unit)s, starts_at, 'Asia/Bangkok') AS at,
    sum(count)::bigint, sum(amount)::bigint
FROM counts_listcount
WHERE owner_id = %(mode)s AND list = ANY(%(lists)s) AND bucket = 'hour'
    AND starts_at >= %(start)s AND starts_at < %(end)s
GROUP BY 1, 2, 3
"""
# What settles fees later takes them off these accounts.
_FEES = """
SELECT date_bin(%(step)s, created_at, %(start)s) AS at, sum(amount)::bigint,
    coalesce(sum(amount) FILTER (WHERE account_id = ANY(%(vat)s)), 0)::bigint, count(*)
FROM (
    SELECT account_id, created_at, amount FROM ledger_entry
    WHERE account_id = ANY(%(fees)s) AND amount > 0 AND created_at >= %(start)s AND created_at < %(end)s
    LIMIT %(most)s
) AS entry GROUP BY 1
"""
_BY_MERCHANT = """
WITH listed AS (
    SELECT owner_id, list, kind, sum(count)::bigint AS count, sum(amount)::bigint AS amount
    FROM counts_listcount
    WHERE list IN ('payments', 'transactions') AND (
        bucket = 'day' AND starts_at >= %(first_day)s AND starts_at < %(last_day)s
        OR bucket = 'hour' AND starts_at >= %(start)s AND starts_at < least(%(first_day)s, %(end)s)
        OR bucket = 'hour' AND starts_at >= greatest(%(last_day)s, %(first_day)s) AND starts_at < %(end)s
    )
    GROUP BY 1, 2, 3
), merchant AS (
    SELECT owner_id,
        coalesce(sum(count) FILTER (WHERE kind = ANY(%(received)s)), 0)::bigint AS payments,
        coalesce(sum(amount) FILTER (WHERE kind = ANY(%(received)s)), 0)::bigint AS volume,
        coalesce(-sum(amount) FILTER (WHERE kind = ANY(%(refunded)s)), 0)::bigint AS refunds,
        coalesce(sum(count) FILTER (WHERE list = 'payments' AND kind IN ('succeeded', 'refunded')), 0)::bigint
            AS succeeded,
        coalesce(sum(count) FILTER (WHERE list = 'payments' AND kind IN ('failed', 'expired')), 0)::bigint
            AS unpaid
    FROM listed GROUP BY 1
)
SELECT known.id, known.name, payments, volume, refunds, succeeded, unpaid
FROM merchant JOIN merchants_merchant AS known ON known.id = owner_id AND known.mode = %(mode)s
ORDER BY volume DESC, payments DESC, known.id LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class Sum:
    """A number of rows and their satang."""

    count: int = 0
    amount: int = 0


@dataclass(frozen=True, slots=True)
class Bar:
    """What arrived in one hour or day, and the fees of it, with VAT."""

    at: datetime
    received: Sum
    fees: int = 0

    @property
    def net(self) -> int:
        return self.received.amount - self.fees


@dataclass(frozen=True, slots=True)
class Figures:
    """What happened in a period. Payments and withdrawals count when they were created.

    fees: what banks and acquirers keep, with fee_vat, by the time at which it was known.
    has_all_fees: whether there are fewer entries than MAX_FEES.
    """

    received: Sum
    fees: int
    fee_vat: int
    has_all_fees: bool
    refunded: Sum
    withdrawn: Sum
    payments: dict[str, int]
    bars: list[Bar]

    @property
    def net(self) -> int:
        return self.received.amount - self.fees

    @property
    def success_rate(self) -> float | None:
        """The share of ended payments that succeeded, from 0 to 1."""
        return success_rate(
            self.payments.get("succeeded", 0) + self.payments.get("refunded", 0),
            self.payments.get("failed", 0) + self.payments.get("expired", 0),
        )


@dataclass(frozen=True, slots=True)
class MerchantFigures:
    id: str
    name: str
    payments: int
    volume: int
    refunds: int
    success_rate: float | None


def read(period: Period, mode: Mode) -> Figures:
    """The figures of all merchants of a mode, by two statements."""
    names = [SANDBOX] if mode == Mode.TEST else [*banks.LIVE_BANKS, ACQUIRERS[mode]]
    values = {
        "unit": "hour" if period.step < timedelta(days=1) else "day",
        "mode": mode.value,
        "lists": ["payments", "transactions", "withdrawals"],
        "start": period.start,
        "end": period.end,
        "fees": [code(name) for code in (accounts.fees, accounts.fee_vat) for name in names],
        "vat": [accounts.fee_vat(name) for name in names],
        "step": period.step,
        "most": MAX_FEES,
    }
    fees = rows.run(_FEES, values).fetchall()
    fees_by_bar = {at: amount for at, amount, _, _ in fees}
    found = rows.run(_BY_BAR, values).fetchall()
    by_bar: Counter[tuple[datetime, str]] = Counter()
    payments: Counter[str] = Counter()
    for list_name, kind, at, count, amount in found:
        if list_name == "payments":
            payments[kind] += count
        elif list_name == "transactions" and kind in RECEIVED:
            by_bar[at, "count"] += count
            by_bar[at, "amount"] += amount
    refunded = _sum(found, "transactions", REFUNDED)
    return Figures(
        received=_sum(found, "transactions", RECEIVED),
        fees=sum(fees_by_bar.values()),
        fee_vat=sum(vat for _, _, vat, _ in fees),
        has_all_fees=sum(count for *_, count in fees) < MAX_FEES,
        refunded=Sum(refunded.count, -refunded.amount),
        withdrawn=_sum(found, "withdrawals", ["succeeded"]),
        payments=dict(payments),
        bars=[
            Bar(at, Sum(by_bar[at, "count"], by_bar[at, "amount"]), fees_by_bar.get(at, 0))
            for at in period.instants()
        ],
    )


def merchants(period: Period, mode: Mode) -> list[MerchantFigures]:
    """The merchants that received most, by one statement."""
    first_day = _utc_day(period.start)
    first_day += timedelta(days=first_day < period.start)  # the first that begins in the period
    found = rows.run(
        _BY_MERCHANT,
        {
            "mode": mode.value,
            "start": period.start,
            "end": period.end,
            "first_day": first_day,
            "last_day": _utc_day(period.end),
            "received": RECEIVED,
            "refunded": REFUNDED,
            "limit": MAX_MERCHANTS,
        },
    ).fetchall()
    return [
        MerchantFigures(id, name, payments, volume, refunds, success_rate(succeeded, unpaid))
        for id, name, payments, volume, refunds, succeeded, unpaid in found
    ]


def success_rate(succeeded: int, unpaid: int) -> float | None:
    """None if no payment has ended."""
    ended = succeeded + unpaid
    return succeeded / ended if ended else None


def _sum(found: Iterable[Any], wanted: str, kinds: list[str]) -> Sum:
    matching = [(count, amount) for name, kind, _, count, amount in found if name == wanted and kind in kinds]
    return Sum(sum(count for count, _ in matching), sum(amount for _, amount in matching))


def _utc_day(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
