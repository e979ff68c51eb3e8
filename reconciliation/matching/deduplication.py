"""Several reports of the same money become one bank transaction.

Statement lines have no reference of the bank, so they are compared by bank, kind, biller id, reference,
amount and day. A lock on these is held until the commit, so that concurrent reports of the same money find
each other.
"""

import hashlib
from collections.abc import Iterable
from datetime import datetime, time, timedelta

from django.db import transaction
from django.db.models import QuerySet

from banks import ReportedTransaction
from banks.parsing import CLOCK_TOLERANCE
from core import digests
from core.clock import BANGKOK
from core.database import rows
from reconciliation.models import (
    BankNotification,
    BankTransaction,
    BankTransactionKind,
    NotificationResult,
    ReconciliationException,
    ReportSource,
    ResolutionState,
    StatementLine,
    listing,
)

SECOND = timedelta(seconds=1)
# Fields that a report of the same money can leave out, besides the payer's account.
OPTIONAL_FIELDS = ["payer_name", "slip_reference"]
# Without the last condition the planner does not use the partial index.
WITH_BANK_REFERENCE = """
WHERE t.bank = %s AND t.kind = %s
    AND (t.bank_reference = %s OR t.later_bank_reference = %s AND t.later_bank_reference <> '')
ORDER BY t.id LIMIT 1
"""
# With the locks of the report: see `sql/locks.sql`.
FIND_REPORTED = (
    f"SELECT {rows.columns(BankTransaction, 't')} "  # noqa: S608
    "FROM reconciliation_find_reported(%s::bigint[], %s, %s, %s, %s, %s, %s) AS t"
)
LOCK_SQL = "SELECT count(pg_advisory_xact_lock(name)) FROM unnest(%s::bigint[]) AS name"
BankTransactionReport = BankTransaction | ReportedTransaction


def lock_name(bank: str, report: BankTransactionReport) -> str:
    """Name the lock of reports that can be the same. A reversal has the same lock as its credit."""
    return f"money {bank} {report.biller_id} {report.reference1} {report.amount}"


def lock_keys(names: Iterable[str]) -> list[int]:
    """The keys of these advisory locks. They are sorted, which prevents deadlocks."""
    digests = (hashlib.blake2b(name.encode(), digest_size=8).digest() for name in names)
    return sorted({int.from_bytes(digest, signed=True) for digest in digests})


def lock_names(names: Iterable[str]) -> None:
    """Take these locks until the commit."""
    rows.run(LOCK_SQL, [lock_keys(names)])


def pair_name(bank_transaction: BankTransaction) -> str:
    """Name the lock that a credit and its reversal share.

    Otherwise they could miss each other, because concurrent transactions do not see each other's rows before
    the commit.
    """
    return f"pairing {bank_transaction.bank} {bank_transaction.current_bank_reference}"


def is_same_bank_transaction(one: BankTransactionReport, other: BankTransactionReport) -> bool:
    """Whether two reports are of the same money, if one of them has no bank reference.

    Sources round times and their clocks differ, so only the bank day must agree. The time of a reversal does
    not matter: a bank reverses a credit only once.
    """
    names = ("kind", "biller_id", "reference1", "amount")
    return all(getattr(one, name) == getattr(other, name) for name in names) and (
        one.kind == BankTransactionKind.REVERSAL or is_same_bank_day(one.paid_at, other.paid_at)
    )


def is_same_bank_day(one: datetime, other: datetime) -> bool:
    """One day in Bangkok, or about midnight. `reconciliation_same_bank_day` is the same in the database."""
    is_same_day = one.astimezone(BANGKOK).date() == other.astimezone(BANGKOK).date()
    return is_same_day or abs(one - other) <= CLOCK_TOLERANCE


def bank_day_range(moments: Iterable[datetime]) -> tuple[datetime, datetime]:
    """Return the range of instants that `is_same_bank_day` can accept for any of these moments."""
    found = sorted(moments)
    first = datetime.combine(found[0].astimezone(BANGKOK), time(), BANGKOK)
    last = datetime.combine(found[-1].astimezone(BANGKOK), time(), BANGKOK)
    return first - CLOCK_TOLERANCE, last + timedelta(days=1) + CLOCK_TOLERANCE


def closeness(one: BankTransactionReport, other: BankTransactionReport) -> tuple[bool, timedelta]:
    """Sort key of similar reports: the same second first, then by the time between them."""
    is_other_second = _truncate_to_second(one.paid_at) != _truncate_to_second(other.paid_at)
    return is_other_second, abs(one.paid_at - other.paid_at)


def reversal_cutoff(reversal: BankTransactionReport) -> datetime:
    """Return the instant before which the reversed credit was paid: the end of the reversal's second.

    Statement lines have whole seconds, and some banks report a reversal with the time of its credit.
    """
    return _truncate_to_second(reversal.paid_at) + SECOND


def is_separated_by_reversal(
    one: BankTransactionReport, other: BankTransactionReport, reversals: Iterable[BankTransactionReport]
) -> bool:
    """Whether a reversal happened between the two times. Then the later report is about other money."""
    first, last = sorted([one.paid_at, other.paid_at])
    return any(first < reversal_cutoff(reversal) <= last for reversal in reversals)


def find_reported(new_bank_transaction: BankTransaction) -> BankTransaction | None:
    """Return the stored bank transaction of a report, and lock its names until the commit.

    It has the same bank reference. Or else a statement line made it, and it has no bank id yet.
    """
    new, bank = new_bank_transaction, new_bank_transaction.bank
    # Also lock the bank's id: no id may be the first id of one bank transaction and the later id of another.
    keys = lock_keys([f"name {bank} {new.bank_reference}", lock_name(bank, new)])
    report = [bank, new.kind, new.bank_reference, new.biller_id, new.reference1, new.amount]
    found = [
        rows.instance(BankTransaction, values)
        for values in rows.run(FIND_REPORTED, [keys, *report]).fetchall()
    ]
    if found and new.bank_reference in found[0].bank_references:
        return found[0]
    fitting = [each for each in found if is_same_bank_transaction(each, new)]
    if new.kind == BankTransactionKind.REVERSAL:
        fitting = _reversal_candidates(new, fitting)
    elif fitting:
        fitting = _credit_candidates(new, fitting)
    return min(fitting, key=lambda bank_transaction: closeness(bank_transaction, new), default=None)


def find_by_bank_reference(bank: str, reference: str, kind: str) -> BankTransaction | None:
    """Return the bank transaction with this reference, either the first one or the later one."""
    found = rows.find(BankTransaction, WITH_BANK_REFERENCE, bank, kind, reference, reference)
    return found[0] if found else None


def counterpart(bank_transaction: BankTransaction) -> BankTransaction | None:
    """The reversal of a credit, or the credit of a reversal."""
    is_reversal = bank_transaction.kind == BankTransactionKind.REVERSAL
    kind = BankTransactionKind.CREDIT if is_reversal else BankTransactionKind.REVERSAL
    bank, names = bank_transaction.bank, bank_transaction.bank_references
    found = (find_by_bank_reference(bank, name, kind) for name in names)
    return next((each for each in found if each is not None), None)


def set_bank_reference(bank_transaction: BankTransaction, reference: str) -> None:
    """Store the reference of a bank transaction that a statement line made. The caller holds both locks."""
    bank_transaction.set_fields(later_bank_reference=reference)
    listed = list(ReconciliationException.objects.filter(pk=bank_transaction.id))
    for row in listed:
        row.bank_reference = reference
    listing.show(listed)


@transaction.atomic
def add_payer_details(bank_transaction: BankTransaction, other: BankTransaction) -> None:
    """Add the payer details of another report of the same money. Stored details do not change.

    other: the bank transaction that the report would have made.
    """
    if not _new_details(bank_transaction, other):
        return
    known = BankTransaction.objects.locked(bank_transaction.id)
    known.set_fields(**_new_details(known, other))


def identify_credit_of(reversal: BankTransaction) -> None:
    """Give a reversal's bank id to its credit, if only a line reported that. The caller holds the locks."""
    if find_by_bank_reference(reversal.bank, reversal.bank_reference, BankTransactionKind.CREDIT):
        return
    nameless = unidentified_credits(reversal)
    if len(nameless) == 1:
        set_bank_reference(nameless[0], reversal.bank_reference)


def unidentified_credits(reversal: BankTransaction) -> list[BankTransaction]:
    """Return credits of statement lines that this reversal can be for: without bank id, not reversed yet."""
    of_code = BankTransaction.objects.filter(
        bank=reversal.bank, biller_id=reversal.biller_id, reference1=reversal.reference1
    )
    reversed_references = of_code.filter(kind=BankTransactionKind.REVERSAL).values("bank_reference")
    nameless = of_code.filter(
        kind=BankTransactionKind.CREDIT,
        amount=reversal.amount,
        source=ReportSource.STATEMENT,
        later_bank_reference="",
        paid_at__lt=reversal_cutoff(reversal),
    ).exclude(resolution_state=ResolutionState.UNDONE)
    return list(nameless.exclude(bank_reference__in=reversed_references))


def _credit_candidates(
    new_bank_transaction: BankTransaction, credits: list[BankTransaction]
) -> list[BankTransaction]:
    """Exclude credits that were reversed before the new one, or under another bank reference.

    Credits of the same second come first: a reversal can have been attached to the wrong line.
    """
    if same := [credit for credit in credits if not closeness(credit, new_bank_transaction)[0]]:
        return same
    reversals = list(
        BankTransaction.objects.filter(
            bank=new_bank_transaction.bank,
            kind=BankTransactionKind.REVERSAL,
            biller_id=new_bank_transaction.biller_id,
            reference1=new_bank_transaction.reference1,
            amount=new_bank_transaction.amount,
        )
    )
    ids = {each.bank_reference: each.id_at_bank for each in reversals}
    return [
        credit
        for credit in credits
        if not is_separated_by_reversal(credit, new_bank_transaction, reversals)
        and ids.get(credit.bank_reference, "") in ("", new_bank_transaction.bank_reference)
    ]


def _reversal_candidates(reversal: BankTransaction, debits: list[BankTransaction]) -> list[BankTransaction]:
    """Exclude reversals of credits that have another bank id."""
    credit = find_by_bank_reference(reversal.bank, reversal.bank_reference, BankTransactionKind.CREDIT)
    taken = [
        (debit, find_by_bank_reference(debit.bank, debit.bank_reference, BankTransactionKind.CREDIT))
        for debit in debits
    ]
    undecided = [debit for debit, other in taken if other is None]
    if credit is not None:
        return [debit for debit, other in taken if other == credit] or undecided
    return undecided + [debit for debit, other in taken if other is not None and not other.id_at_bank]


def _new_details(bank_transaction: BankTransaction, other: BankTransaction) -> dict[str, str]:
    details = {name: getattr(other, name) for name in OPTIONAL_FIELDS if not getattr(bank_transaction, name)}
    # An account number is only valid together with its bank.
    is_same_bank = bank_transaction.payer_bank_code in ("", other.payer_bank_code)
    if other.payer_account and is_same_bank and not bank_transaction.payer_account_digest:
        sealed = digests.seal(other.payer_account, context=bank_transaction.id)
        details |= {
            "payer_bank_code": other.payer_bank_code,
            "payer_account_sealed": sealed.token,
            "payer_account_digest": sealed.digest,
        }
    found = {field: value for field, value in details.items() if value}
    return {} if found and _is_erased(bank_transaction) else found  # what was erased does not come back


def _is_erased(bank_transaction: BankTransaction) -> bool:
    """Whether an erasure has emptied it. Without an account, only its reports show that."""
    if bank_transaction.payer_account_digest:
        return not bank_transaction.payer_account_sealed
    messages = BankNotification.objects.filter(bank_transaction=bank_transaction, body_sealed="")
    lines = StatementLine.objects.filter(bank_transaction=bank_transaction, line_sealed="")
    return bool(messages.exists() or lines.exists())


def _truncate_to_second(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)


def sources_of(bank_transactions: QuerySet[BankTransaction]) -> list[ReportSource]:
    """Return the sources whose reports agree, in the order of `ReportSource`."""
    agree = BankNotification.objects.filter(
        bank_transaction__in=bank_transactions, result__in=[NotificationResult.NEW, NotificationResult.REPEAT]
    )
    found = set(agree.values_list("source", flat=True).distinct())
    if StatementLine.objects.filter(bank_transaction__in=bank_transactions).exists():
        found.add(ReportSource.STATEMENT)
    return [source for source in ReportSource if source in found]
