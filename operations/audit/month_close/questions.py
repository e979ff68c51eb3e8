"""What is not clear about the money of a month, with names, and what is only on the way.

A question is of the month in which it arose, or whose statement has it, and of all later ones until somebody
has answered it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.db.models import Count, Min, Model, Q, QuerySet, Sum
from django.db.models.functions import Coalesce
from django.utils.translation import gettext, gettext_noop

from core import clock
from core.database import rows
from ledger import accounts, queries, services as ledger
from ledger.journal_types import JournalType
from ledger.models import Entry
from merchants.models import Merchant
from operations.audit import runner
from operations.audit.month_close.categories import ACCOUNTS, Party, accounts_of
from payments.card_models import IS_ON_THE_WAY, IS_OPEN, CardCharge
from reconciliation.models import (
    HELD_RESULTS,
    BankTransaction,
    ExceptionReason,
    ReconciliationException,
    ResolutionState,
    Return,
    ReturnStatus,
    StatementLine,
)
from reconciliation.models.bank_transactions import CREDITED
from settlements.models import (
    OPEN_STATES as OPEN_TRANSFER_STATES,
    AcquirerTransfer,
    OpenQuestion,
    QuestionKind,
)
from transfers.models import UNFINISHED_STATES, Transfer
from transfers.schedule import OVERDUE_AFTER

RECEIVED = Coalesce("payment__amount_received", "payment__amount")
# Of days that have a statement.
IN_NO_STATEMENT = """
SELECT day.bank, found.id, found.amount, found.received_at
FROM (
    SELECT DISTINCT bank, bank_date FROM reconciliation_statementline
    WHERE bank = ANY(%s) AND bank_date >= %s AND bank_date < %s
) AS day CROSS JOIN LATERAL (
    SELECT id, amount, received_at FROM reconciliation_banktransaction AS reported
    WHERE reported.bank = day.bank AND matched_at IS NOT NULL AND kind <> 'decline'
        AND paid_at >= day.bank_date::timestamp AT TIME ZONE 'Asia/Bangkok'
        AND paid_at < (day.bank_date + 1)::timestamp AT TIME ZONE 'Asia/Bangkok'
        AND resolution_state NOT IN ('merged', 'dismissed', 'undone') AND NOT EXISTS (
            SELECT FROM reconciliation_statementline AS line WHERE line.bank_transaction_id = reported.id
        )
) AS found
"""
# Postings that change what an earlier month had. The subject of a reversal is its payment.
CORRECTING = (
    *(JournalType.FEE, JournalType.FEE_ADDED, JournalType.FEE_RETURNED, JournalType.DIFFERENCE_BOOKED),
    *(JournalType.REVERSAL, JournalType.WITHDRAWAL_RETURNED, JournalType.HELD, JournalType.ACCEPTED),
    *(JournalType.MERGED, JournalType.UNMERGED, JournalType.UNDONE),
    *(JournalType.WRITTEN_OFF, JournalType.RECOVERED),
)
CORRECTIONS = f"""
WITH {ACCOUNTS},
posted AS (
    SELECT DISTINCT entry.id, entry.type, coalesce(payment_id, subject_id) AS subject_id, entry.amount
    FROM account CROSS JOIN LATERAL (
        SELECT journal.* FROM ledger_entry CROSS JOIN LATERAL (
            SELECT id, type, subject_id, amount FROM ledger_journal
            WHERE id = journal_id AND type = ANY(%(posted)s) OFFSET 0
        ) AS journal
        WHERE account_id = account.id AND created_at >= %(start)s AND created_at < %(end)s OFFSET 0
    ) AS entry
    LEFT JOIN reconciliation_banktransaction AS reversal
        ON reversal.id = subject_id AND entry.type = 'reversal'
)
SELECT to_char(since AT TIME ZONE 'Asia/Bangkok', 'YYYY-MM'), posted.type, posted.subject_id, posted.amount
FROM posted LEFT JOIN settlements_openquestion AS question ON question.id = posted.subject_id
CROSS JOIN LATERAL (
    SELECT coalesce(opened_at, min(created_at)) AS since FROM ledger_journal AS earlier
    WHERE earlier.subject_id = posted.subject_id
) AS first
WHERE since < %(start)s ORDER BY 1, posted.id
"""  # noqa: S608


LABELS: dict[str, str] = {
    **{f"exception_{each}": str(each.label) for each in ExceptionReason},
    **{f"settlement_{each}": str(each.label) for each in QuestionKind},
    "unexplained": gettext_noop("No category has these entries"),
    "unnamed": gettext_noop("No exception has this money without an owner"),
    "not_on_the_way": gettext_noop("No payment and no question has this money of the acquirer"),
    "not_matched": gettext_noop("Not matched yet"),
    "unconfirmed": gettext_noop("Only an uploaded statement reports it"),
    "in_no_statement": gettext_noop("Not in the statement of its day"),
    "result_unknown": gettext_noop("Nobody has said what became of it"),
    "fee_unknown": gettext_noop("The acquirer has not said what it keeps"),
    "card_payments": gettext_noop("Card payments that the acquirer has not transferred"),
    "transfer": gettext_noop("A transfer that has not arrived"),
    "order": gettext_noop("An order under way"),
    "debt": gettext_noop("A debt of a merchant"),
}


@dataclass(frozen=True, slots=True)
class Item:
    """amount: satang, or None if nobody knows. model: of the row with the id `subject`, if it is one row."""

    kind: str
    party: str
    subject: str
    amount: int | None
    since: datetime
    model: type[Model]
    count: int = 1

    @property
    def label(self) -> str:
        return gettext(LABELS[self.kind])

    @property
    def page(self) -> str:
        return f"admin:{self.model._meta.app_label}_{self.model._meta.model_name}_change"

    def as_json(self) -> dict[str, Any]:
        names = ("kind", "party", "subject", "count", "amount")
        return {name: getattr(self, name) for name in names} | {"since": clock.iso(self.since)}


def unexplained(parties: Sequence[Party], now: datetime, *, is_sandbox: bool) -> Iterator[Item]:
    """Entries of no category, and money without an owner that no exception or return has."""
    for each in parties:
        if each.unexplained:
            yield Item("unexplained", each.name, "", each.unexplained, now, Entry)
    code = accounts.SANDBOX_SUSPENSE if is_sandbox else accounts.SUSPENSE
    reasons = [*HELD_RESULTS, ExceptionReason.EXCESS, ExceptionReason.RETURNED]
    waiting = ReconciliationException.objects.filter(reason__in=reasons, is_sandbox=is_sandbox)
    is_of_these = Q(route=accounts.bank(accounts.SANDBOX))
    returns = Return.objects.filter(is_of_these if is_sandbox else ~is_of_these, status=ReturnStatus.PENDING)
    named = sum(found.aggregate(sum=Sum("amount", default=0))["sum"] for found in (waiting, returns))
    if missing := queries.read_balances([code], None).get(code, 0) - named:
        yield Item("unnamed", "", "", missing, now, Entry)


def not_on_the_way(now: datetime, *, is_sandbox: bool) -> Iterator[Item]:
    """What acquirers owe by our books, and neither a payment nor a question has, as in the audit."""
    for each in runner.differences_of(runner.OWED_BY_ACQUIRERS):
        if (each.id == accounts.SANDBOX) == is_sandbox:
            expected, found = (int(text.replace("nothing", "0")) for text in (each.expected, each.found))
            yield Item("not_on_the_way", each.id, "", expected - found, now, Entry)


def open_questions(
    banks: Sequence[str], first: date, after: date, end: datetime, now: datetime
) -> Iterator[Item]:
    """What somebody must answer before the month can be closed. `after` is the first day after it."""
    of_lines = StatementLine.objects.filter(
        bank__in=banks,
        bank_date__gte=first,
        bank_date__lt=after,
        bank_transaction__match_result__in=HELD_RESULTS,
        bank_transaction__resolution_state=ResolutionState.OPEN,
    ).values("bank_transaction_id")
    waiting = ReconciliationException.objects.filter(Q(opened_at__lt=end) | Q(pk__in=of_lines))
    yield from _items("exception_", waiting, "bank", "amount", "opened_at", "reason")
    asked = OpenQuestion.objects.filter(closed_at=None, opened_at__lt=end)
    yield from _items("settlement_", asked, "acquirer", "difference", "opened_at", "kind")
    reported = BankTransaction.objects.filter(received_at__lt=end)
    yield from _items("not_matched", reported.not_matched(), "bank", "amount", "received_at")
    yield from _items("unconfirmed", reported.unconfirmed().filter(CREDITED), "bank", "amount", "received_at")
    for bank, subject, amount, since in rows.run(IN_NO_STATEMENT, [list(banks), first, after]).fetchall():
        yield Item("in_no_statement", bank, subject, amount, since, BankTransaction)
    overdue = min(now - OVERDUE_AFTER, end)
    silent = Transfer.objects.open_since(overdue)
    yield from _items("result_unknown", silent, "route", "amount", "created_at")
    charges = CardCharge.objects.filter(IS_OPEN, created_at__lt=overdue)
    yield from _items("result_unknown", charges, "acquirer", "payment__amount", "created_at")
    without_fee = CardCharge.objects.filter(awaits_fee=True, completed_at__lt=end)
    yield from _items("fee_unknown", without_fee, "acquirer", "payment__amount", "completed_at")


def on_the_way(end: datetime, questions: Sequence[Item]) -> Iterator[Item]:
    """Money of the month that is where it should be: nobody must do anything now."""
    net = RECEIVED - Coalesce("payment__fee", 0) - Coalesce("payment__fee_vat", 0)
    charges = CardCharge.objects.filter(IS_ON_THE_WAY, paid_at__lt=end).values("acquirer")
    sums = charges.annotate(amount=Sum(net), since=Min("paid_at"), number=Count("pk")).order_by("acquirer")
    for each in sums:
        amount, since, count = each["amount"], each["since"], each["number"]
        yield Item("card_payments", each["acquirer"], "", amount, since, CardCharge, count)
    arriving = AcquirerTransfer.objects.filter(state__in=OPEN_TRANSFER_STATES, created_at__lt=end)
    yield from _items("transfer", arriving, "acquirer", "net_amount", "created_at")
    orders = Transfer.objects.filter(state__in=UNFINISHED_STATES, created_at__lt=end)
    yield from _items(
        "order", orders.exclude(pk__in=[each.subject for each in questions]), "route", "amount", "created_at"
    )
    # Later payments repay a debt, and no person can end it: so it does not stop a close.
    for merchant_id, amount in sorted(ledger.debts().items()):
        merchant = Merchant.objects.get(pk=merchant_id)
        since = Entry.objects.filter(account=accounts.debt(merchant_id)).latest("created_at").created_at
        if since < end:
            yield Item("debt", merchant.bank, merchant_id, amount, since, Merchant)


def corrections(
    start: datetime, end: datetime, closed: set[str], *, is_sandbox: bool
) -> list[dict[str, Any]]:
    """Postings of the month that change what a closed month (`YYYY-MM`) had."""
    values = accounts_of(is_sandbox=is_sandbox) | {"start": start, "end": end, "posted": list(CORRECTING)}
    return [
        {"month": month, "type": kind, "subject": subject, "amount": amount}
        for month, kind, subject, amount in rows.run(CORRECTIONS, values).fetchall()
        if month in closed
    ]


def _items(
    kind: str, found: QuerySet[Any], party: str, amount: str, since: str, *suffix: str
) -> Iterator[Item]:
    """The rows, the oldest first. suffix: a column that makes the kind more exact."""
    for name, subject, satang, at, *more in found.order_by(since, "pk").values_list(
        party, "pk", amount, since, *suffix
    ):
        yield Item(kind + "".join(more), name.rpartition(":")[2], subject, satang, at, found.model)
