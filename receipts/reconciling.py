"""A day at a bank, told by its statements and by our receipts: what one side has and the other has not."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from django.db.models import Count, Q, Sum

from core.clock import BANGKOK
from merchants.models import Merchant
from receipts.models import HELD, Kind, LineResult, Outcome, Receipt, Resolution, StatementLine

MOVES_MONEY = [Kind.CREDIT, Kind.REVERSAL]
CREDITED_BY_LINE = Q(receipt__outcome=Outcome.APPLIED) | Q(
    receipt__resolution__in=[Resolution.ACCEPTED, Resolution.ATTACHED]
)


@dataclass(frozen=True, slots=True)
class Difference:
    """One movement of money that the two sides do not agree on. amount: satang, or None where unreadable."""

    what: str
    bank: str
    subject_id: str
    amount: int | None
    reference1: str
    detail: str


@dataclass(frozen=True, slots=True)
class Side:
    """Satang and how many."""

    credits: int
    credit: int
    debits: int
    debit: int


@dataclass(frozen=True, slots=True)
class Day:
    """A day of one bank in sums. `is_told`: a statement with lines of that day was imported."""

    bank: str
    is_told: bool
    theirs: Side
    ours: Side


def banks_of(day: date) -> list[str]:
    """The banks that serve somebody, and those that had anything on that day."""
    served = Merchant.objects.exclude(bank="").values_list("bank", flat=True)
    told = StatementLine.objects.filter(day=day).values_list("bank", flat=True)
    return sorted({*served.distinct(), *told.distinct()})


def summed(bank: str, day: date) -> Day:
    theirs = StatementLine.objects.filter(bank=bank, day=day)
    return Day(bank, theirs.exists(), _side(theirs), _side(_ours(bank, day)))


def differences(bank: str, day: date) -> Iterator[Difference]:
    """What is with the bank and not credited, then what we have and the bank's statements have not."""
    for line in _not_credited(bank, day).iterator():
        why = line.receipt.outcome or "not judged"
        yield _difference("at the bank, not credited", line.receipt, f"{why}, line {line.number}")
    for line in _unconfirmed(bank, day).iterator():
        statement = line.statement
        where = f"{statement.name} line {line.number}, uploaded by {statement.imported_by}"
        yield _difference("reported by one file alone", line.receipt, where)
    for line in _unreadable(bank, day).iterator():
        where = f"{line.statement.name} line {line.number}"
        yield Difference("at the bank, unreadable", bank, line.statement_id, None, "", where)
    for receipt in _ours(bank, day).filter(statement_line__isnull=True).order_by("paid_at", "id").iterator():
        detail = receipt.outcome or "not judged"
        yield _difference("with us, in no statement", receipt, detail)


def _not_credited(bank: str, day: date) -> Any:
    """Lines whose receipt waits, for staff or for its judgement."""
    waits = Q(receipt__outcome__in=HELD, receipt__resolution=Resolution.OPEN)
    lines = StatementLine.objects.filter(waits | Q(receipt__outcome=Outcome.WAITING), bank=bank, day=day)
    return lines.select_related("receipt").defer("line_sealed").order_by("number")


def _unconfirmed(bank: str, day: date) -> Any:
    """Lines whose money is credited, and which neither the bank nor a second person has confirmed."""
    lines = StatementLine.objects.filter(CREDITED_BY_LINE, receipt__is_confirmed=False, bank=bank, day=day)
    found = lines.select_related("receipt", "statement").defer("line_sealed")
    return found.order_by("statement", "number")


def _unreadable(bank: str, day: date) -> Any:
    """Nobody can tell their day: those of every file that has lines of it."""
    files = StatementLine.objects.filter(bank=bank, day=day).values("statement")
    lines = StatementLine.objects.filter(statement__in=files, result=LineResult.UNREADABLE)
    return lines.select_related("statement").defer("line_sealed").order_by("statement", "number")


def _ours(bank: str, day: date) -> Any:
    start = datetime.combine(day, time.min, BANGKOK)
    return Receipt.objects.filter(
        bank=bank, paid_at__gte=start, paid_at__lt=start + timedelta(days=1), kind__in=MOVES_MONEY
    )


def _side(rows: Any) -> Side:
    credit, debit = Q(kind=Kind.CREDIT), Q(kind=Kind.REVERSAL)
    found = rows.aggregate(
        credits=Count("pk", filter=credit),
        credit=Sum("amount", filter=credit, default=0),
        debits=Count("pk", filter=debit),
        debit=Sum("amount", filter=debit, default=0),
    )
    return Side(**{name: int(value) for name, value in found.items()})


def _difference(what: str, receipt: Receipt, detail: str) -> Difference:
    return Difference(what, receipt.bank, receipt.id, receipt.amount, receipt.reference1, detail)
