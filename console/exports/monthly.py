"""The month of a merchant for the accountant: opening balance, what moved it, closing balance.

A balance is all money of the merchant: available, reserved, unconfirmed, less its debt. So what only moves
between these accounts, such as a reservation, is no line of the report.
"""

from calendar import monthrange
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.home.period import DAY, Period
from core import dates, money
from core.console.spreadsheets import Cell
from core.database import rows
from ledger.journal_types import JournalType
from ledger.models import MERCHANT_ACCOUNT_TYPES
from ledger.queries import PENDING_SUM
from merchants.models import Merchant

BALANCE_BEFORE = f"""
SELECT merchant_id, %s, '', 0, sum(rolled_up_balance + ({PENDING_SUM}) - (
    SELECT coalesce(sum(amount), 0) FROM ledger_entry AS later
    WHERE later.account_id = account.id AND later.created_at >= %s
))::bigint
FROM account GROUP BY merchant_id
"""  # noqa: S608
# One statement, so that balances and entries are of one snapshot. It reads the entries of each account by
# their index, and no others.
READ = f"""
WITH account AS (
    SELECT id, merchant_id, rolled_up_balance FROM ledger_account
    WHERE type = ANY(%s) AND (%s = '' OR merchant_id = %s)
),
entry AS (
    SELECT account.merchant_id, entry.journal_id, sum(entry.amount) AS amount
    FROM account CROSS JOIN LATERAL (
        SELECT journal_id, amount FROM ledger_entry
        WHERE account_id = account.id AND created_at >= %s AND created_at < %s
    ) AS entry
    GROUP BY account.merchant_id, entry.journal_id HAVING sum(entry.amount) <> 0
)
SELECT merchant_id, journal.type, coalesce(other.account_id, ''), count(*), sum(entry.amount)::bigint
FROM entry JOIN ledger_journal AS journal ON journal.id = entry.journal_id
LEFT JOIN LATERAL (
    SELECT min(account_id) AS account_id FROM ledger_entry
    WHERE ledger_entry.journal_id = journal.id AND split_part(account_id, ':', 1) <> ALL(%s)
) AS other ON true
GROUP BY merchant_id, journal.type, other.account_id
UNION ALL ({BALANCE_BEFORE}) UNION ALL ({BALANCE_BEFORE})
"""  # noqa: S608
OPENING, CLOSING = "opening", "closing"
LABELS: dict[str, Promise] = {
    JournalType.PAYMENT: _("Payments"),
    JournalType.ACCEPTED: _("Refunds that came back"),
    JournalType.REFUND_PAID: _("Refunds"),
    JournalType.WITHDRAWAL_PAID: _("Withdrawals"),
    JournalType.WITHDRAWAL_RETURNED: _("Withdrawals that came back"),
    JournalType.REVERSAL: _("Payments that a bank took back"),
}
ORDER = list(LABELS)


class Month(Period):
    """A whole month."""

    def __str__(self) -> str:
        return f"{self.first:%Y-%m}"


@dataclass(frozen=True, slots=True)
class Line:
    """Entries of one kind with one counterpart, such as `bank:scb`; satang."""

    type: str
    counterpart: str
    count: int
    amount: int

    @property
    def label(self) -> str:
        return str(LABELS.get(self.type, self.type))


@dataclass(slots=True)
class MerchantMonth:
    """The report of one merchant; satang."""

    merchant: Merchant
    opening: int = 0
    closing: int = 0
    lines: list[Line] = field(default_factory=list)

    @property
    def moved(self) -> int:
        return sum(line.amount for line in self.lines)

    @property
    def is_used(self) -> bool:
        """Whether there was a balance or an entry."""
        return bool(self.lines or self.opening or self.closing)

    @property
    def agrees(self) -> bool:
        """Whether the lines explain the difference of the two balances of the ledger."""
        return self.opening + self.moved == self.closing


class MonthError(Exception):
    """The text is no month that can be reported."""


def parse(text: str, today: date) -> Month:
    """The month `YYYY-MM`; without a text the last one that has ended. Raises MonthError."""
    if not text:
        last = today.replace(day=1) - DAY
        return Month(last.replace(day=1), last)
    try:
        first = dates.day(f"{text}-01")
    except ValueError:
        raise MonthError from None
    if not date(2000, 1, 1) <= first <= today:
        raise MonthError
    return Month(first, first.replace(day=monthrange(first.year, first.month)[1]))


def read(month: Month, merchant_id: str = "") -> list[MerchantMonth]:
    """The report of one merchant, or of all that had a balance or an entry, sorted by name."""
    types = list(MERCHANT_ACCOUNT_TYPES)
    values = [types, merchant_id, merchant_id, month.start, month.end, types]
    found = rows.run(READ, [*values, OPENING, month.start, CLOSING, month.end]).fetchall()
    wanted = Merchant.objects.filter(pk__in={merchant_id, *(row[0] for row in found)})
    reports = {merchant.pk: MerchantMonth(merchant) for merchant in wanted}
    for owner, kind, counterpart, count, amount in found:
        if kind == OPENING:
            reports[owner].opening = amount
        elif kind == CLOSING:
            reports[owner].closing = amount
        else:
            reports[owner].lines.append(Line(kind, counterpart, count, amount))
    for report in reports.values():
        report.lines.sort(key=lambda line: (_place(line.type), line.counterpart))
    used = (each for each in reports.values() if each.is_used or merchant_id)
    return sorted(used, key=lambda each: (each.merchant.name, each.merchant.pk))


def _place(kind: str) -> tuple[int, str]:
    return (ORDER.index(kind) if kind in ORDER else len(ORDER), kind)


HEADER = (
    _("Month"), _("Merchant"), _("Name"), _("Mode"), _("Line"), _("Bank"), _("Count"), _("Amount (THB)"),
    _("Currency"),
)  # fmt: skip


def table(month: Month, reports: Iterable[MerchantMonth]) -> Iterator[list[Cell]]:
    """The rows of the file. The last row of a merchant says whether the ledger agrees."""
    for report in reports:
        merchant = report.merchant
        start: list[Cell] = [str(month), merchant.pk, merchant.name, merchant.mode]
        for label, counterpart, count, amount in lines_of(report):
            yield [*start, str(label), counterpart, count, money.decimal(amount), money.CURRENCY]


def lines_of(report: MerchantMonth) -> Iterator[tuple[str | Promise, str, int | None, int]]:
    """Label, counterpart, count and satang of each line. The last one is the difference of the ledger."""
    yield _("Opening balance"), "", None, report.opening
    for line in report.lines:
        yield line.label, line.counterpart, line.count, line.amount
    yield _("Closing balance"), "", None, report.closing
    verdict = _("Agrees with the ledger") if report.agrees else _("DOES NOT AGREE with the ledger")
    yield verdict, "", None, report.closing - report.opening - report.moved
