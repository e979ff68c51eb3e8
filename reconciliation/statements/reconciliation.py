"""Compare a day of a bank's statements with our bank transactions: totals and differences."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from django.db.models import Count, Q, Sum

from core import request_context
from core.clock import BANGKOK
from merchants.models import Merchant
from reconciliation import models
from reconciliation.models.bank_transactions import IS_MATCHED

CREDITED_BY_LINE = Q(bank_transaction__match_result=models.MatchResult.APPLIED) | Q(
    bank_transaction__resolution_state__in=[models.ResolutionState.ACCEPTED, models.ResolutionState.ATTACHED]
)


@dataclass(frozen=True, slots=True)
class Difference:
    """A bank transaction on which the two sides differ. amount: satang, or None for an unreadable line."""

    what: str
    bank: str
    subject_id: str
    amount: int | None
    reference1: str
    detail: str


@dataclass(frozen=True, slots=True)
class DayComparison:
    """Numbers of lines and satang of a day at a bank. has_statement: whether a statement has lines of it."""

    bank: str
    has_statement: bool
    theirs: dict[str, int]
    ours: dict[str, int]


def banks_with_activity(day: date) -> list[str]:
    """The banks of merchants, and the banks with lines of that day."""
    imported = models.StatementLine.objects.filter(bank_date=day).values_list("bank", flat=True)
    return sorted({*Merchant.objects.banks(), *imported.distinct()})


def compare_totals(bank: str, day: date) -> DayComparison:
    theirs = models.StatementLine.objects.filter(bank=bank, bank_date=day)
    return DayComparison(bank, theirs.exists(), _totals(theirs), _totals(_our_transactions(bank, day)))


def find_differences(bank: str, day: date) -> Iterator[Difference]:
    """Lines that are not credited, not confirmed or unreadable; then bank transactions without a line."""
    lines: Any = models.StatementLine.objects.filter(bank=bank, bank_date=day).defer("line_sealed")
    # Their bank transaction is an open exception or not matched yet.
    waits = Q(
        bank_transaction__match_result__in=models.HELD_RESULTS,
        bank_transaction__resolution_state=models.ResolutionState.OPEN,
    )
    not_credited = lines.filter(
        waits | Q(bank_transaction__match_result=models.MatchResult.PENDING)
    ).order_by("line_number")
    for line in not_credited.select_related("bank_transaction").iterator():
        status = line.bank_transaction.match_result or "not matched"
        detail = f"{status}, line {line.line_number}"
        yield _difference("at the bank, not credited", line.bank_transaction, detail)
    # Neither the bank nor a second person has confirmed their credited money.
    unconfirmed = lines.filter(CREDITED_BY_LINE, bank_transaction__is_confirmed=False)
    unconfirmed = unconfirmed.select_related("bank_transaction", "statement")
    for line in unconfirmed.order_by("statement", "line_number").iterator():
        uploader = request_context.display_name(line.statement.actor)
        detail = f"{line.statement.file_name} line {line.line_number}, uploaded by {uploader}"
        yield _difference("reported only by an uploaded file", line.bank_transaction, detail)
    # Their day is unknown, so those of each file that has lines of the day.
    unreadable = models.StatementLine.objects.filter(
        statement__in=lines.values("statement"), result=models.LineResult.UNREADABLE
    )
    unreadable = unreadable.select_related("statement").defer("line_sealed")
    for line in unreadable.order_by("statement", "line_number").iterator():
        detail = f"{line.statement.file_name} line {line.line_number}"
        yield Difference("at the bank, unreadable", bank, line.statement_id, None, "", detail)
    for bank_transaction in (
        _our_transactions(bank, day).filter(statement_line__isnull=True).order_by("paid_at", "id").iterator()
    ):
        detail = bank_transaction.match_result or "not matched"
        yield _difference("recorded here, in no statement", bank_transaction, detail)


def _our_transactions(bank: str, day: date) -> Any:
    start = datetime.combine(day, time.min, BANGKOK)
    that_day = models.BankTransaction.objects.filter(
        IS_MATCHED | Q(match_result=models.MatchResult.PENDING),  # an index each
        bank=bank,
        paid_at__gte=start,
        paid_at__lt=start + timedelta(days=1),
    )
    return that_day.exclude(
        Q(kind=models.BankTransactionKind.DECLINE) | Q(resolution_state=models.ResolutionState.UNDONE)
    )


def _totals(rows: Any) -> dict[str, int]:
    credit, debit = Q(kind=models.BankTransactionKind.CREDIT), Q(kind=models.BankTransactionKind.REVERSAL)
    totals: dict[str, int] = rows.aggregate(
        credits=Count("pk", filter=credit),
        credit=Sum("amount", filter=credit, default=0),
        debits=Count("pk", filter=debit),
        debit=Sum("amount", filter=debit, default=0),
    )
    return totals


def _difference(what: str, found: models.BankTransaction, detail: str) -> Difference:
    return Difference(what, found.bank, found.id, found.amount, found.reference1, detail)
