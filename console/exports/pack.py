"""The accountant's pack: the month of a merchant as tables, and the totals of all merchants.

Each table follows what was posted to the merchant's accounts in the month, so its sums are those of the
summary. It is read in pages, and its cost is that of the month.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from heapq import merge
from itertools import islice
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from console.exports import monthly
from console.exports.monthly import FEE_TYPES, MerchantMonth, Month
from core import clock, money
from core.console.spreadsheets import BoldRow, Cell, Sheet
from core.database import replica
from core.thai import tax_ids, thaibanks
from ledger.balance_transactions import change_of
from ledger.journal_types import BalanceTransactionType as Type, JournalType
from ledger.models import AccountType, BalanceTransaction, Entry, Journal
from merchants.models import Merchant, Mode
from payments.models import Payment
from reconciliation.models import StatementLine
from refunds.models import Refund
from settlements.models import Settlement
from withdrawals.models import Withdrawal

# Each page is a statement that continues after the last row, so none reads skipped rows.
PAGE_ROWS = 2_000
# Percent of a fee without VAT (docs/decisions/54-exports.md).
WITHHELD = 3
PAYMENTS = (Type.PAYMENT, Type.UNCONFIRMED_PAYMENT, Type.UNSETTLED_PAYMENT)
LATER_FEES = (Type.FEE, Type.UNSETTLED_FEE, Type.FEE_ADDED, Type.FEE_RETURNED)
FEE_JOURNALS = (JournalType.PAYMENT, JournalType.FEE, JournalType.FEE_ADDED, JournalType.FEE_RETURNED)
REVERSALS = (Type.REVERSAL, Type.UNCONFIRMED_REVERSAL)
REFUNDED = (JournalType.REFUND_PAID, JournalType.ACCEPTED, JournalType.REVERSAL)
WITHDRAWN = (JournalType.WITHDRAWAL_PAID, JournalType.WITHDRAWAL_RETURNED)
# Columns of the totals of all merchants, as `monthly.LABELS`.
COLUMNS = ((JournalType.PAYMENT,), (AccountType.FEES,), (AccountType.FEE_VAT,), REFUNDED, WITHDRAWN)
# The types of journals of changes of a balance, where they differ.
JOURNAL_OF: dict[str, str] = {**dict.fromkeys(PAYMENTS, "payment"), Type.UNSETTLED_FEE: "fee"}
Rows = Iterator[Sequence[Cell]]
# Satang of fee and VAT by the type of their journal.
Fees = dict[str, list[int]]


def facts(merchant: Merchant, month: Month) -> list[tuple[str, str]]:
    """Who and when, as names and values."""
    is_head = merchant.tax_branch == tax_ids.HEAD_OFFICE
    branch = _("head office") if is_head else _("branch %(number)s") % {"number": merchant.tax_branch}
    return [
        (_("Merchant"), f"{merchant.name} ({merchant.get_mode_display()})"),
        (_("Id"), merchant.pk),
        (_("Tax id"), f"{merchant.tax_id} ({branch})" if merchant.tax_id else "-"),
        (_("Month"), month.name),
        (_("Currency"), money.CURRENCY),
    ]


def withheld(report: MerchantMonth) -> list[tuple[str, int, int]]:
    """Who gets the fees, the fees without VAT, and the tax that the merchant withholds of them; satang.

    The tax is that of the month, rounded to the satang, a half up.
    """
    if not report.merchant.withholds_tax:
        return []
    paid = [(line.company, -line.amount) for line in report.lines if line.type == AccountType.FEES]
    return [(company, fee, (fee * WITHHELD + 50) // 100) for company, fee in paid]


def sheets(report: MerchantMonth, month: Month, now: datetime) -> list[Sheet]:
    pack, sum_of = Pack(report, month, month.until(now)), report.sum_of
    at, payment, reference, kind = _("Time (Bangkok)"), _("Payment"), _("Reference"), _("Kind")
    bank, company, amount = _("Bank"), _("Bank or acquirer"), _("Amount")
    kept = [_("Fee"), _("VAT of the fee")]
    amounts = [_("Gross"), *kept, _("Net")]
    paid = [at, payment, reference, _("Paid by"), *amounts]
    refunded = [at, kind, _("Refund"), payment, reference, amount]
    withdrawn = [at, kind, _("Withdrawal"), reference, bank, _("Reference of the bank"), amount]
    charged = [at, payment, _("Paid at (Bangkok)"), _("Gross"), *kept]
    taxed = [company, _("Rate (%)"), _("Fees without VAT"), _("Tax withheld")]
    settled = [_("Settlement"), company, _("Arrived (Bangkok)"), _("Payments"), *amounts]
    reported = [_("Day"), bank, kind, _("Reference 1"), payment, amount]
    gross, *fees = sum_of(JournalType.PAYMENT), *(-sum_of(each) for each in FEE_TYPES)
    return [
        Sheet("summary", _("Summary"), [_("Summary"), month.name, "", ""], pack.summary(month.end <= now)),
        _sheet("payments", _("Payments"), paid, pack.payments(), 4, gross),
        _sheet("refunds", _("Refunds"), refunded, pack.refunds(), 1, sum_of(*REFUNDED)),
        _sheet("withdrawals", _("Withdrawals"), withdrawn, pack.withdrawals(), 1, sum_of(*WITHDRAWN)),
        _sheet("fees", _("Fees and VAT"), charged, pack.fees(), 2, *fees),
        _sheet("withholding-tax", _("Withholding tax"), taxed, pack.withholding_tax(), 2),
        Sheet("settlements", _("Settlements"), settled, pack.settlements(len(settled))),
        _sheet("bank-lines", _("Bank lines"), reported, pack.bank_lines(), 1),
    ]


@dataclass(frozen=True, slots=True)
class Pack:
    """What one merchant's month consists of. The last row of each table is the sum."""

    report: MerchantMonth
    month: Month
    until: datetime

    def summary(self, has_ended: bool) -> Rows:
        for name, value in facts(self.report.merchant, self.month):
            yield [name, value]
        if not has_ended:
            yield [monthly.unfinished(self.until)]
        yield []
        yield BoldRow([_("Line"), _("Bank or acquirer"), _("Count"), _("Amount")])
        for label, company, count, amount in self.report.printed:
            yield [label, company, count, _baht(amount)]

    def payments(self) -> Rows:
        for row, payment, posted in self._with_payments(PAYMENTS):
            by = _("QR code") if payment.qr_code_id else _("Card")
            kept = [sum(each) for each in zip(*posted.values(), strict=True)] or [None, None]
            amounts = [payment.received, *kept, payment.received - sum(each or 0 for each in kept)]
            yield [_time(row.created_at), payment.pk, payment.reference, by, *map(_baht, amounts)]

    def refunds(self) -> Rows:
        labels = {Type.REFUND_RETURNED: JournalType.ACCEPTED} | dict.fromkeys(REVERSALS, JournalType.REVERSAL)
        for page in _pages(self._changes(Type.REFUND_PAID, Type.REFUND_RETURNED, *REVERSALS)):
            ids = [row.source_id for row in page]
            refunds = Refund.objects.select_related("payment").in_bulk(ids)
            payments = Payment.objects.in_bulk(ids)
            for row in page:
                refund = refunds.get(row.source_id)
                payment = refund.payment if refund else payments[row.source_id]
                label = monthly.LABELS[labels.get(row.type, row.type)]
                cells = [str(label), refund and refund.pk, payment.pk, payment.reference]
                yield [_time(row.created_at), *cells, _baht(_net(row))]

    def withdrawals(self) -> Rows:
        for page in _pages(self._changes(Type.WITHDRAWAL_PAID, Type.WITHDRAWAL_RETURNED)):
            found = Withdrawal.objects.in_bulk([row.source_id for row in page])
            for row in page:
                each = found[row.source_id]
                bank = thaibanks.find(each.bank_code)
                to = bank.local_name if bank else each.bank_code
                cells = [str(monthly.LABELS[row.type]), each.pk, each.reference, to, each.bank_reference]
                yield [_time(row.created_at), *cells, _baht(_net(row))]

    def fees(self) -> Rows:
        """All fees that were posted in the month, also those of earlier payments."""
        for row, payment, posted in self._with_payments(PAYMENTS + LATER_FEES):
            if row.type in LATER_FEES or row.amount < payment.received:
                amounts = map(_baht, [payment.received, *posted[JOURNAL_OF.get(row.type, row.type)]])
                yield [_time(row.created_at), payment.pk, _time(payment.completed_at), *amounts]

    def withholding_tax(self) -> Rows:
        for company, fee, tax in withheld(self.report):
            yield [company, WITHHELD, _baht(fee), _baht(tax)]

    def settlements(self, width: int) -> Rows:
        """Those that arrived in the month, and those that were on the way at its end."""
        arrived = Q(arrived_at__gte=self.month.start, arrived_at__lt=self.until)
        on_the_way = Q(arrived_at__isnull=True) | Q(arrived_at__gte=self.until)
        yield from _summed(self._settlements(arrived), width, 4, (), _("Arrived in the month"))
        yield from _summed(self._settlements(on_the_way), width, 4, (), _("On the way at its end"))

    def _settlements(self, condition: Q) -> Rows:
        found = Settlement.objects.filter(condition, merchant=self.report.merchant, created_at__lt=self.until)
        for each in found.select_related("transfer").order_by("created_at", "pk"):
            at = each.arrived_at if each.arrived_at and each.arrived_at < self.until else None
            cells = [monthly.company_of(f"acquirer:{each.transfer.acquirer}"), _time(at), each.payment_count]
            amounts = [each.gross_amount, each.fee, each.fee_vat, each.net_amount]
            yield [each.pk, *cells, *map(_baht, amounts)]

    def bank_lines(self) -> Rows:
        """Lines of statements about the merchant's account for payments by QR code."""
        merchant, kinds = self.report.merchant, {"credit": _("Credit"), "reversal": _("Reversal")}
        ours = Q(pk=None)
        for each in merchant.all_terms:
            ours |= Q(bank=each.bank, biller_id=each.biller_id)
        found = StatementLine.objects.filter(
            ours, kind__in=kinds, bank_date__lte=self.month.last
        ).select_related("bank_transaction")
        for each in _in_order(found, "bank_date", self.month.first):
            amount = each.amount if each.kind == "credit" else -each.amount
            payment_id = each.bank_transaction and each.bank_transaction.payment_id
            bank = monthly.company_of(f"bank:{each.bank}")
            yield [each.bank_date, bank, kinds[each.kind], each.reference1, payment_id, _baht(amount)]

    def _changes(self, *types: str) -> Iterator[BalanceTransaction]:
        """What changed the balance in the month, in the order of time."""
        found = BalanceTransaction.objects.filter(merchant=self.report.merchant, created_at__lt=self.until)
        each_type = [_in_order(found.filter(type=type), "created_at", self.month.start) for type in types]
        return merge(*each_type, key=lambda row: (row.created_at, row.pk))

    def _with_payments(self, types: Sequence[str]) -> Iterator[tuple[BalanceTransaction, Payment, Fees]]:
        """The changes, their payments, and the fees that were posted for each by the end of the month.

        The fee of a voided card payment comes back for its refund.
        """
        for page in _pages(self._changes(*types)):
            sources = [row.source_id for row in page]
            refunds = dict(Refund.objects.filter(pk__in=sources).values_list("pk", "payment_id"))
            payments = Payment.objects.in_bulk([refunds.get(each, each) for each in sources])
            posted = self._fees_of(payments.values(), refunds)
            for row in page:
                yield row, payments[refunds.get(row.source_id, row.source_id)], posted[row.source_id]

    def _fees_of(self, payments: Collection[Payment], refunds: Collection[str]) -> dict[str, Fees]:
        """By payment or refund, and type of journal. Empty if the fee was not known; zero has no entry."""
        subjects = [*refunds, *(each.pk for each in payments)]
        journals = Journal.objects.filter(subject_id__in=subjects, type__in=FEE_JOURNALS)
        after = journals.filter(type=JournalType.FEE, created_at__gte=self.until)
        later = set(after.values_list("subject_id", flat=True))
        found: dict[str, Fees] = {each: {} for each in subjects}
        for each in payments:
            if each.fee is not None and each.pk not in later:
                found[each.pk] = {JournalType.PAYMENT: [0, 0]}
        until = journals.filter(created_at__lt=self.until)
        entries = Entry.objects.filter(account__type__in=FEE_TYPES, journal__in=until)
        columns = ("journal__subject_id", "journal__type", "account__type", "amount")
        for subject_id, type, account_type, amount in entries.values_list(*columns):
            found[subject_id].setdefault(type, [0, 0])[FEE_TYPES.index(account_type)] = amount
        return found


def totals(reports: Sequence[MerchantMonth], mode: Mode, month: Month, now: datetime) -> list[Sheet]:
    """The tables of all merchants of a mode: a line for each, and the lines of all."""
    sums = [_("Opening balance"), *(str(monthly.LABELS[types[0]]) for types in COLUMNS), _("Closing balance")]
    header = [_("Merchant"), _("Name"), _("Tax id"), _("Branch"), *sums, _("Difference")]
    title = _("Live merchants") if mode == Mode.LIVE else _("Test merchants")
    made = _sheet(mode.value, title, header, map(_total, reports), len(sums) + 1)
    whose, line = [_("Month"), _("Merchant"), _("Name"), _("Mode")], [_("Line"), _("Bank or acquirer")]
    lines = [*whose, *line, _("Count"), _("Amount")]
    return [made, Sheet("lines", _("Lines"), lines, _lines(reports, month, now))]


def _total(report: MerchantMonth) -> list[Cell]:
    merchant, sums = report.merchant, [report.sum_of(*types) for types in COLUMNS]
    amounts = [report.opening, *sums, report.closing, report.closing - report.opening - sum(sums)]
    return [merchant.pk, merchant.name, merchant.tax_id, merchant.tax_branch, *map(_baht, amounts)]


def _lines(reports: Sequence[MerchantMonth], month: Month, now: datetime) -> Rows:
    for report in reports:
        whose = [month.name, report.merchant.pk, report.merchant.name, report.merchant.mode]
        for label, company, count, amount in report.printed:
            yield [*whose, label, company, count, _baht(amount)]
    if month.end > now:
        yield [monthly.unfinished(now)]


def _sheet(name: str, title: str, header: Sequence[str], rows: Rows, sums: int, *expected: int) -> Sheet:
    """A table that ends with the sums of its last columns. expected: satang of the first of these."""
    return Sheet(name, title, header, _summed(rows, len(header), sums, expected))


def _summed(rows: Rows, width: int, sums: int, expected: Sequence[int], label: str = "") -> Rows:
    found = [Decimal()] * sums
    for row in rows:
        amounts = [cell if isinstance(cell, Decimal) else Decimal() for cell in row[-sums:]]
        found = [total + amount for total, amount in zip(found, amounts, strict=True)]
        yield row
    agrees = all(total == _baht(satang) for total, satang in zip(found, expected, strict=False))
    text = label or (_("Sum") if agrees else _("Sum, which is NOT that of the summary"))
    yield BoldRow([text, *[None] * (width - sums - 1), *found])


def _in_order(found: QuerySet[Any], by: str, first: Any) -> Iterator[Any]:
    """The rows from `first` on, by this column and the primary key."""
    read: Callable[[QuerySet[Any]], list[Any]] = replica.reads(list)
    rows = found.filter(**{f"{by}__gte": first}).order_by(by, "pk")
    page = read(rows[:PAGE_ROWS])
    while page:
        yield from page
        last = getattr(page[-1], by)
        rows = found.filter(Q(**{f"{by}__gt": last}) | Q(pk__gt=page[-1].pk), **{f"{by}__gte": last})
        page = read(rows.order_by(by, "pk")[:PAGE_ROWS])


def _pages(rows: Iterator[Any]) -> Iterator[list[Any]]:
    return iter(lambda: list(islice(rows, PAGE_ROWS)), [])


def _net(row: BalanceTransaction) -> int:
    """Satang by which the whole balance changed."""
    return sum(change_of(row))


def _baht(satang: int | None) -> Decimal | None:
    return None if satang is None else money.decimal(satang)


def _time(at: datetime | None) -> datetime | None:
    return at and at.astimezone(clock.BANGKOK).replace(tzinfo=None, microsecond=0)
