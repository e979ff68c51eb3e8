"""One report of money is one bank transaction, whoever tells of it: lines of statements have no transaction
id.

They are known by what they move. Whoever is about to make a bank transaction or to join one first holds a
lock on that, until the commit, so that a callback, an answer and a line that come at once find each other.
"""

import hashlib
from collections.abc import Iterable
from datetime import datetime, time, timedelta
from typing import Any, Protocol

from django.db import transaction
from django.db.models import Q, QuerySet

from banks.parsing import CLOCK_TOLERANCE
from core import rows, vault
from core.clock import BANGKOK
from reconciliation.models import (
    BankNotification,
    BankTransaction,
    BankTransactionKind,
    NotificationResult,
    ReportSource,
    StatementLine,
)

SECOND = timedelta(seconds=1)
# What messages of the same money may leave out, beside the payer's account.
OPTIONAL_FIELDS = ["payer_name", "slip_reference"]
LOCK_SQL = "SELECT count(pg_advisory_xact_lock(name)) FROM unnest(%s::bigint[]) AS name"


class MovementReport(Protocol):
    """What a notification, a bank transaction and a line of a statement say of the money."""

    @property
    def kind(self) -> str: ...
    @property
    def biller_id(self) -> str: ...
    @property
    def reference1(self) -> str: ...
    @property
    def amount(self) -> int: ...
    @property
    def paid_at(self) -> datetime: ...


def lock_name(bank: str, report: MovementReport) -> str:
    """The lock of all reports that might be one. Without kind and time: a reversal looks for its credit."""
    return f"money {bank} {report.biller_id} {report.reference1} {report.amount}"


def lock_names(names: Iterable[str]) -> None:
    """Hold these locks until the commit. In one order for everybody, so that nobody waits in a circle."""
    rows.run(LOCK_SQL, [sorted({_lock_key(name) for name in names})])


def is_same_movement(one: MovementReport, other: MovementReport) -> bool:
    """Whether two reports, of which one has no transaction id, are the same report.

    Sources round times and have clocks of their own, so the bank day counts. The time of a reversal does not
    count: a bank reverses a credit only once.
    """
    return _identity(one) == _identity(other) and (
        one.kind == BankTransactionKind.REVERSAL or is_same_bank_day(one.paid_at, other.paid_at)
    )


def is_same_bank_day(one: datetime, other: datetime) -> bool:
    """Whether two sources can mean one report by these times: one day in Bangkok.

    At midnight a source can round up, or its clock can be ahead, by `CLOCK_TOLERANCE` at most. The database
    has the same rule: `reconciliation_in_one_bank_day`.
    """
    is_same_day = one.astimezone(BANGKOK).date() == other.astimezone(BANGKOK).date()
    return is_same_day or abs(one - other) <= CLOCK_TOLERANCE


def bank_day_range(moments: Iterable[datetime]) -> tuple[datetime, datetime]:
    """The first instant that `is_same_bank_day` accepts for any of these moments, and the first one after."""
    found = sorted(moments)
    first = datetime.combine(found[0].astimezone(BANGKOK), time(), BANGKOK)
    last = datetime.combine(found[-1].astimezone(BANGKOK), time(), BANGKOK)
    return first - CLOCK_TOLERANCE, last + timedelta(days=1) + CLOCK_TOLERANCE


def closeness(one: MovementReport, other: MovementReport) -> tuple[bool, timedelta]:
    """Sorts the reports that fit: those of the same second first, then by the time between them."""
    return _truncate_to_second(one.paid_at) != _truncate_to_second(other.paid_at), abs(
        one.paid_at - other.paid_at
    )


def reversal_cutoff(reversal: MovementReport) -> datetime:
    """What a reversal takes back came before this instant: by the end of its second, for lines tell no more.

    Some banks tell a reversal with the time of its credit.
    """
    return _truncate_to_second(reversal.paid_at) + SECOND


def is_separated_by_reversal(
    one: MovementReport, other: MovementReport, reversals: Iterable[MovementReport]
) -> bool:
    """Whether the bank reversed this money between the two times: then the later one is other money."""
    first, last = sorted([one.paid_at, other.paid_at])
    return any(first < reversal_cutoff(reversal) <= last for reversal in reversals)


def find_statement_movement(new_movement: BankTransaction) -> BankTransaction | None:
    """The bank transaction that a line made of this money and no message has joined.

    The caller holds the lock.
    """
    fitting = [
        movement
        for movement in _unidentified(new_movement.bank, new_movement.kind, new_movement)
        if is_same_movement(movement, new_movement)
    ]
    if new_movement.kind == BankTransactionKind.REVERSAL:
        fitting = _reversal_candidates(new_movement, fitting)
    elif fitting:
        fitting = _credit_candidates(new_movement, fitting)
    return min(fitting, key=lambda movement: closeness(movement, new_movement), default=None)


def find_by_bank_id(bank: str, transaction_id: str, kind: str) -> BankTransaction | None:
    """The bank transaction that this bank calls so, by its first name or its second."""
    # The empty name is left out for the planner, which else does not see that the partial index will do.
    second = Q(later_bank_transaction_id=transaction_id) & ~Q(later_bank_transaction_id="")
    known = BankTransaction.objects.filter(
        Q(bank_transaction_id=transaction_id) | second, bank=bank, kind=kind
    )
    found: BankTransaction | None = known.first()
    return found


def set_bank_id(movement: BankTransaction, transaction_id: str) -> None:
    """The bank has told its id of what a line made known. The caller holds the locks of both."""
    movement.later_bank_transaction_id = transaction_id
    movement.save(update_fields=["later_bank_transaction_id"])


@transaction.atomic
def add_payer_details(movement: BankTransaction, other: BankTransaction) -> None:
    """Bring what another message says of the same money and nobody has said before; what is there stays.

    told: the bank transaction that the message would have made.
    """
    if not _new_details(movement, other):
        return
    known = BankTransaction.objects.locked(movement.id)
    details = _new_details(known, other)
    for field, value in details.items():
        setattr(known, field, value)
    known.save(update_fields=list(details))


def identify_credit_of(reversal: BankTransaction) -> None:
    """A bank takes money back by the id of its credit: if only a line told of that, it has no id yet.

    The caller holds the locks. Where several credits fit nobody knows which, and staff decide.
    """
    if find_by_bank_id(reversal.bank, reversal.bank_transaction_id, BankTransactionKind.CREDIT):
        return
    nameless = list(unidentified_credits(reversal)[:2])
    if len(nameless) == 1:
        set_bank_id(nameless[0], reversal.bank_transaction_id)


def unidentified_credits(reversal: BankTransaction) -> Any:
    """What this reversal may take back of what lines told: not named, and not taken back by another."""
    taken_back = BankTransaction.objects.filter(
        bank=reversal.bank,
        kind=BankTransactionKind.REVERSAL,
        biller_id=reversal.biller_id,
        reference1=reversal.reference1,
    )
    return (
        _unidentified(reversal.bank, BankTransactionKind.CREDIT, reversal)
        .filter(paid_at__lt=reversal_cutoff(reversal))
        .exclude(bank_transaction_id__in=taken_back.values("bank_transaction_id"))
    )


def _credit_candidates(
    new_movement: BankTransaction, credits: list[BankTransaction]
) -> list[BankTransaction]:
    """Those that may be this credit: none that was reversed before it, or under another transaction id.

    The same second proves more than a reversal, which may have joined the wrong line.
    """
    if same := [
        credit
        for credit in credits
        if _truncate_to_second(credit.paid_at) == _truncate_to_second(new_movement.paid_at)
    ]:
        return same
    reversals = list(
        BankTransaction.objects.filter(
            bank=new_movement.bank,
            kind=BankTransactionKind.REVERSAL,
            biller_id=new_movement.biller_id,
            reference1=new_movement.reference1,
            amount=new_movement.amount,
        )
    )
    ids = {each.bank_transaction_id: each.id_at_bank for each in reversals}
    return [
        credit
        for credit in credits
        if not is_separated_by_reversal(credit, new_movement, reversals)
        and ids.get(credit.bank_transaction_id, "") in ("", new_movement.bank_transaction_id)
    ]


def _reversal_candidates(reversal: BankTransaction, debits: list[BankTransaction]) -> list[BankTransaction]:
    """Those that may be this reversal: none that took back a credit which the bank calls otherwise."""
    credit = find_by_bank_id(reversal.bank, reversal.bank_transaction_id, BankTransactionKind.CREDIT)
    taken = [
        (debit, find_by_bank_id(debit.bank, debit.bank_transaction_id, BankTransactionKind.CREDIT))
        for debit in debits
    ]
    undecided = [debit for debit, other in taken if other is None]
    if credit is not None:
        return [debit for debit, other in taken if other == credit] or undecided
    return undecided + [debit for debit, other in taken if other is not None and not other.id_at_bank]


def _new_details(movement: BankTransaction, other: BankTransaction) -> dict[str, str]:
    details = {field: getattr(other, field) for field in OPTIONAL_FIELDS if not getattr(movement, field)}
    # An account means nothing but with its bank.
    is_same_bank = movement.payer_bank_code in ("", other.payer_bank_code)
    if other.payer_account and is_same_bank and not movement.payer_account_sealed:
        sealed = vault.seal(other.payer_account, context=movement.id)
        details |= {"payer_bank_code": other.payer_bank_code, "payer_account_sealed": sealed}
    return {field: value for field, value in details.items() if value}


def _unidentified(bank: str, kind: str, report: MovementReport) -> Any:
    """Bank transactions that lines made of such a report and that the bank has not named, oldest first."""
    return BankTransaction.objects.filter(
        bank=bank,
        biller_id=report.biller_id,
        reference1=report.reference1,
        amount=report.amount,
        kind=kind,
        source=ReportSource.STATEMENT,
        later_bank_transaction_id="",
    ).order_by("id")


def _identity(report: MovementReport) -> tuple[str, str, str, int]:
    return str(report.kind), report.biller_id, report.reference1, report.amount


def _truncate_to_second(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)


def _lock_key(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), signed=True)


def sources_of(movements: QuerySet[BankTransaction]) -> list[ReportSource]:
    """The ways that agree, in the order of `Source`; who contradicts the first word is none."""
    agree = BankNotification.objects.filter(
        movement__in=movements, result__in=[NotificationResult.NEW, NotificationResult.REPEAT]
    )
    found = set(agree.values_list("source", flat=True).distinct())
    if StatementLine.objects.filter(movement__in=movements).exists():
        found.add(ReportSource.STATEMENT)
    return [source for source in ReportSource if source in found]
