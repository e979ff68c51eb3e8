"""The month of a merchant for the accountant: opening balance, what moved it, closing balance.

A balance is all money of the merchant: available, reserved, pending settlement and unconfirmed, less its
debt. So what only moves between these, such as a reservation, is no line of the report. Fees are lines of
their own, and payments are gross.
"""

from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime

from django.http import HttpRequest
from django.utils.dates import MONTHS
from django.utils.functional import Promise
from django.utils.translation import get_language, gettext, gettext_lazy as _

from console.home.period import DAY, Period
from core import clock, dates
from core.database import rows
from core.thai import thaibanks
from ledger.journal_types import JournalType
from ledger.models import MERCHANT_ACCOUNT_TYPES, AccountType
from ledger.queries import PENDING_SUM
from merchants.models import Merchant

BALANCE_BEFORE = f"""
SELECT merchant_id, %s, type, 0, sum(rolled_up_balance + ({PENDING_SUM}) - (
    SELECT coalesce(sum(amount), 0) FROM ledger_entry AS later
    WHERE later.account_id = account.id AND later.created_at >= %s
))::bigint
FROM account GROUP BY merchant_id, type
"""  # noqa: S608
# One statement, so that balances and entries are of one snapshot. It reads the entries of each account by
# their index, and no others.
READ = f"""
WITH account AS (
    SELECT id, type, merchant_id, rolled_up_balance FROM ledger_account
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
SELECT merchant_id, coalesce(other.fee, journal.type), other.account_id, count(*), -sum(other.amount)::bigint
FROM entry JOIN ledger_journal AS journal ON journal.id = entry.journal_id
CROSS JOIN LATERAL (
    SELECT CASE WHEN split_part(account_id, ':', 1) = ANY(%s) THEN split_part(account_id, ':', 1) END AS fee,
        min(account_id) AS account_id, sum(amount) AS amount
    FROM ledger_entry
    WHERE ledger_entry.journal_id = journal.id AND split_part(account_id, ':', 1) <> ALL(%s)
    GROUP BY 1
) AS other
GROUP BY merchant_id, coalesce(other.fee, journal.type), other.account_id
UNION ALL ({BALANCE_BEFORE}) UNION ALL ({BALANCE_BEFORE})
"""  # noqa: S608
OPENING, CLOSING = "opening", "closing"
FEE_TYPES = (AccountType.FEES, AccountType.FEE_VAT)
LABELS: dict[str, Promise] = {
    JournalType.PAYMENT: _("Payments"),
    AccountType.FEES: _("Fees"),
    AccountType.FEE_VAT: _("VAT of fees"),
    JournalType.REFUND_PAID: _("Refunds"),
    JournalType.ACCEPTED: _("Refunds that came back"),
    JournalType.REVERSAL: _("Payments that a bank took back"),
    JournalType.WITHDRAWAL_PAID: _("Withdrawals"),
    JournalType.WITHDRAWAL_RETURNED: _("Withdrawals that came back"),
}
ORDER = list(LABELS)
# Of a balance. A debt lowers what is available, until it is more.
PARTS: dict[str, Promise] = {
    AccountType.AVAILABLE: _("Available"),
    AccountType.RESERVED: _("Reserved"),
    AccountType.UNSETTLED: _("Pending settlement"),
    AccountType.UNCONFIRMED: _("Unconfirmed"),
    AccountType.DEBT: _("Debt"),
}
COMPANIES: dict[str, Promise] = {
    "bank:sandbox": _("Sandbox bank"),
    "acquirer:sandbox": _("Sandbox acquirer"),
    "sandbox": _("Sandbox"),
    "omise": _("Opn Payments"),
    "suspense": _("Money that had waited"),
}


class Month(Period):
    def __str__(self) -> str:
        return f"{self.first:%Y-%m}"

    @property
    def name(self) -> str:
        """In the language of the reader: `November 2026`, and 2569 in Thai."""
        year = self.first.year + clock.BUDDHIST_OFFSET * is_buddhist()
        return f"{MONTHS[self.first.month]} {year}"

    def until(self, now: datetime) -> datetime:
        """The end, or the present instant if the month goes on."""
        return min(self.end, now)


# Label, company, count and satang.
Printed = tuple[str, str, int | None, int]


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

    @property
    def company(self) -> str:
        """The bank or acquirer in words."""
        return company_of(self.counterpart)


@dataclass(slots=True)
class MerchantMonth:
    """The report of one merchant; satang."""

    merchant: Merchant
    opening_parts: dict[str, int] = field(default_factory=dict)
    closing_parts: dict[str, int] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)

    @property
    def opening(self) -> int:
        return sum(self.opening_parts.values())

    @property
    def closing(self) -> int:
        return sum(self.closing_parts.values())

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

    def sum_of(self, *types: str) -> int:
        return sum(line.amount for line in self.lines if line.type in types)

    @property
    def printed(self) -> Iterator[Printed]:
        """The lines with both balances and their parts. The last one is the difference of the ledger."""
        yield gettext("Opening balance"), "", None, self.opening
        yield from _parts(self.opening_parts)
        for line in self.lines:
            yield line.label, line.company, line.count, line.amount
        yield gettext("Closing balance"), "", None, self.closing
        yield from _parts(self.closing_parts)
        verdict = (
            gettext("Agrees with the ledger") if self.agrees else gettext("DOES NOT AGREE with the ledger")
        )
        yield verdict, "", None, self.closing - self.opening - self.moved


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


def chosen(request: HttpRequest, today: date) -> tuple[Month, str]:
    """The month that the address names, or the last one and why it is not that."""
    try:
        return parse(request.GET.get("month", ""), today), ""
    except MonthError:
        return parse("", today), gettext("Choose a month that has begun.")


def read(month: Month, merchant_id: str = "", *, until: datetime | None = None) -> list[MerchantMonth]:
    """The report of one merchant, or of all with a balance or an entry, by name. until: an earlier end."""
    types, end = list(MERCHANT_ACCOUNT_TYPES), until or month.end
    values = [types, merchant_id, merchant_id, month.start, end, list(FEE_TYPES), types]
    found = rows.run(READ, [*values, OPENING, month.start, CLOSING, end]).fetchall()
    wanted = Merchant.objects.filter(pk__in={merchant_id, *(row[0] for row in found)})
    reports = {merchant.pk: MerchantMonth(merchant) for merchant in wanted}
    for owner, kind, counterpart, count, amount in found:
        if kind == OPENING:
            reports[owner].opening_parts[counterpart] = amount
        elif kind == CLOSING:
            reports[owner].closing_parts[counterpart] = amount
        else:
            reports[owner].lines.append(Line(kind, counterpart, count, amount))
    for report in reports.values():
        report.lines.sort(key=lambda line: (_place(line.type), line.counterpart))
    used = (each for each in reports.values() if each.is_used or merchant_id)
    return sorted(used, key=lambda each: (each.merchant.name, each.merchant.pk))


def _place(kind: str) -> tuple[int, str]:
    return (ORDER.index(kind) if kind in ORDER else len(ORDER), kind)


def is_buddhist() -> bool:
    """Whether the reader expects years of the Buddhist calendar."""
    return get_language() == "th"


def unfinished(until: datetime) -> str:
    """What a file of a month says that goes on."""
    at = until.astimezone(clock.BANGKOK).replace(tzinfo=None, microsecond=0)
    text = gettext("The month has not ended. The figures are of %(time)s.")
    return text % {"time": dates.buddhist(at) if is_buddhist() else at}


def company_of(account: str) -> str:
    """The bank or acquirer of an account such as `bank:scb` or `fees:omise`, in words."""
    owner = account.partition(":")[2] or account
    if account.startswith("suspense"):
        owner = "suspense"
    known = COMPANIES.get(account) or COMPANIES.get(owner)
    bank = thaibanks.find(owner)
    return str(known or (bank.local_name if bank else owner))


def _parts(held: dict[str, int]) -> Iterator[Printed]:
    net = held.get(AccountType.AVAILABLE, 0) + held.get(AccountType.DEBT, 0)
    shown = held | {AccountType.AVAILABLE: max(net, 0), AccountType.DEBT: min(net, 0)}
    for part, label in PARTS.items():
        if shown.get(part):
            yield f"– {label}", "", None, shown[part]
