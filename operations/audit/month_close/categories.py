"""Where the money of a month belongs: each entry on an account of a bank or acquirer, each statement line.

Satang as people count them: what a bank or acquirer owes us is positive. So the signs of entries are turned.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from django.db import models
from django.utils.translation import gettext_lazy as _

from core.database import rows
from ledger.accounts import SANDBOX
from ledger.journal_types import JournalType
from ledger.models import EXTERNAL_ACCOUNT_TYPES, AccountType
from ledger.queries import PENDING_SUM
from reconciliation.models import MatchResult, ResolutionState


class Category(models.TextChoices):
    PAYMENT = "payment", _("Payments")
    EXCESS = "excess", _("Excess and money of no payment")
    REFUND = "refund", _("Refunds")
    REVERSAL = "reversal", _("Payments that a bank took back")
    WITHDRAWAL = "withdrawal", _("Withdrawals")
    FEE = "fee", _("Fees")
    VAT = "vat", _("VAT of fees")
    TRANSFER = "transfer", _("Transfers of acquirers")
    PRICE = "price", _("Prices of transfers")
    LOSS = "loss", _("Losses booked by a person")


# What an entry on an account of a bank or acquirer belongs to, and one of money without an owner.
OF_JOURNALS: dict[str, Category] = {
    JournalType.PAYMENT: Category.PAYMENT,
    JournalType.HELD: Category.EXCESS,
    JournalType.SENT_BACK: Category.EXCESS,
    JournalType.MERGED: Category.EXCESS,
    JournalType.UNMERGED: Category.EXCESS,
    JournalType.UNDONE: Category.EXCESS,
    JournalType.REFUND_PAID: Category.REFUND,
    JournalType.ACCEPTED: Category.REFUND,
    JournalType.REVERSAL: Category.REVERSAL,
    JournalType.WITHDRAWAL_PAID: Category.WITHDRAWAL,
    JournalType.WITHDRAWAL_RETURNED: Category.WITHDRAWAL,
    JournalType.TRANSFER_RECEIVED: Category.TRANSFER,
    JournalType.TRANSFER_SEEN: Category.TRANSFER,
    JournalType.DIFFERENCE_BOOKED: Category.LOSS,
    JournalType.WRITTEN_OFF: Category.LOSS,
    JournalType.RECOVERED: Category.LOSS,
}
# Entries of a fee have an account of their own. A transfer settles them.
OF_FEES = {AccountType.FEES: Category.FEE, AccountType.FEE_VAT: Category.VAT}
FEE_JOURNALS = (JournalType.PAYMENT, JournalType.FEE, JournalType.FEE_ADDED, JournalType.FEE_RETURNED)
# What a line of a statement belongs to, by the state of its bank transaction or else by its match result.
OF_LINES: dict[str, Category] = {
    MatchResult.APPLIED: Category.PAYMENT,
    MatchResult.REVERSED: Category.REVERSAL,
    MatchResult.ORDERED: Category.REFUND,
    ResolutionState.ACCEPTED: Category.PAYMENT,
    ResolutionState.ATTACHED: Category.PAYMENT,
    ResolutionState.SENDING_BACK: Category.EXCESS,
    ResolutionState.SENT_BACK: Category.EXCESS,
    ResolutionState.TAKEN_BACK: Category.EXCESS,
    ResolutionState.MERGED: Category.EXCESS,
    ResolutionState.UNDONE: Category.EXCESS,
    ResolutionState.ACQUIRER: Category.TRANSFER,
    ResolutionState.DISMISSED: Category.REVERSAL,
    ResolutionState.WRITTEN_OFF: Category.LOSS,
}
IN_QUESTION = "question"
# Accounts that belong to no merchant, but not the operator's losses: each of these has its entry here too.
ACCOUNTS = """
account AS (
    SELECT id, type, CASE type WHEN 'suspense' THEN '' ELSE split_part(id, ':', 2) END AS party
    FROM ledger_account
    WHERE type = ANY(%(types)s) AND (split_part(id, ':', 2) = %(sandbox)s) = %(is_sandbox)s
)
"""
# One statement, so that balances and entries are of one snapshot. It reads the entries of the month, and for
# the balances those since. OFFSET 0 and the inner SELECT make it use the indexes: the planner would read the
# history instead. A transfer has its price as a loss of the operator.
READ = f"""
WITH {ACCOUNTS}
SELECT party, account.type, entry.type, -sum(entry.amount)::bigint, coalesce(sum(price.amount), 0)::bigint
FROM account CROSS JOIN LATERAL (
    SELECT journal_id, amount, (SELECT type FROM ledger_journal WHERE id = journal_id) AS type
    FROM ledger_entry WHERE account_id = account.id AND created_at >= %(start)s AND created_at < %(end)s
    OFFSET 0
) AS entry
LEFT JOIN ledger_entry AS price ON entry.type = 'transfer_received' AND account.type = 'acquirer'
    AND price.journal_id = entry.journal_id AND price.account_id IN ('write_offs', 'write_offs:sandbox')
    AND price.created_at >= %(start)s AND price.created_at < %(end)s
GROUP BY party, account.type, entry.type
UNION ALL
SELECT party, '', at.name, -sum(rolled_up_balance + ({PENDING_SUM}) - (
    SELECT coalesce(sum(amount), 0) FROM ledger_entry AS later
    WHERE later.account_id = account.id AND later.created_at >= at.instant
))::bigint, 0
FROM account JOIN ledger_account USING (id)
CROSS JOIN (VALUES ('opening', %(start)s::timestamptz), ('closing', %(end)s)) AS at (name, instant)
GROUP BY party, at.name
"""  # noqa: S608
LINES = """
-- A line without a bank transaction cannot be read, and is an exception.
SELECT line.bank, coalesce(nullif(resolution_state, ''), match_result), count(*),
    sum(CASE line.kind WHEN 'credit' THEN line.amount ELSE -line.amount END)::bigint
FROM reconciliation_statementline AS line
JOIN reconciliation_banktransaction AS bank_transaction ON bank_transaction.id = bank_transaction_id
WHERE line.bank = ANY(%s) AND bank_date >= %s AND bank_date < %s GROUP BY 1, 2
"""
FIRST_ENTRY = f"""
WITH {ACCOUNTS}
SELECT min(created_at) FROM account CROSS JOIN LATERAL (
    SELECT created_at FROM ledger_entry WHERE account_id = account.id ORDER BY created_at LIMIT 1
) AS entry
"""  # noqa: S608


@dataclass(slots=True)
class Party:
    """The month of a bank or acquirer; without a name that of money without an owner. Satang."""

    name: str
    opening: int = 0
    closing: int = 0
    amounts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(Category.values, 0))

    @property
    def unexplained(self) -> int:
        """What no category explains."""
        return self.closing - self.opening - sum(self.amounts.values())

    def as_json(self) -> dict[str, int | str]:
        return {"party": self.name, "opening": self.opening, **self.amounts, "closing": self.closing}


def category_of(account_type: str, journal_type: str) -> Category | None:
    if account_type in OF_FEES and journal_type in FEE_JOURNALS:
        return OF_FEES[AccountType(account_type)]
    return OF_JOURNALS.get(journal_type)


def parties(start: datetime, end: datetime, *, is_sandbox: bool) -> list[Party]:
    """The banks and acquirers with an account, by name; money without an owner is the last."""
    found: dict[str, Party] = {}
    values = {**accounts_of(is_sandbox=is_sandbox), "start": start, "end": end}
    for name, account_type, kind, amount, price in rows.run(READ, values).fetchall():
        party = found.setdefault(name, Party(name))
        if not account_type:
            setattr(party, kind, amount)
        elif category := category_of(account_type, kind):
            party.amounts[category] += amount - price
            party.amounts[Category.PRICE] += price
    return sorted(found.values(), key=lambda each: (not each.name, each.name))


def total(found: Sequence[Party]) -> Party:
    """All together: what is owed to merchants, less the losses of the operator."""
    amounts = {name: sum(each.amounts[name] for each in found) for name in Category.values}
    return Party("all", sum(each.opening for each in found), sum(each.closing for each in found), amounts)


def statement_lines(banks: Sequence[str], first: date, after: date) -> list[dict[str, int | str]]:
    """How many statement lines of the month belong to what: a category or an open question; satang."""
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for bank, state, count, amount in rows.run(LINES, [list(banks), first, after]).fetchall():
        key = (bank, OF_LINES.get(state, IN_QUESTION))
        before = sums.get(key, (0, 0))
        sums[key] = (before[0] + count, before[1] + amount)
    return [
        {"bank": bank, "category": str(category), "count": count, "amount": amount}
        for (bank, category), (count, amount) in sorted(sums.items())
    ]


def first_entry(*, is_sandbox: bool = False) -> datetime | None:
    """When money first moved."""
    at: datetime | None = rows.run(FIRST_ENTRY, accounts_of(is_sandbox=is_sandbox)).fetchone()[0]
    return at


def accounts_of(*, is_sandbox: bool) -> dict[str, object]:
    types = [*EXTERNAL_ACCOUNT_TYPES, AccountType.SUSPENSE]
    return {"types": types, "sandbox": SANDBOX, "is_sandbox": is_sandbox}
