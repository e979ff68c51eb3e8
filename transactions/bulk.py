"""The same fact about many subjects, posted by one statement: a day's lines of a bank are many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from core import rows
from transactions import accounts
from transactions.ledger_models import Fact
from transactions.postings import open_accounts

# Neither the world outside nor money that comes in is settled at once: all of it waits to be folded.
POST = """
WITH told AS (
    SELECT * FROM unnest(%s::text[], %s::bigint[], %s::text[]) AS told (subject_id, amount, account_id)
),
journal AS (
    INSERT INTO transactions_journal (fact, subject_id, amount, created_at)
    SELECT %s, subject_id, amount, %s FROM told
    RETURNING id, subject_id, created_at
),
entry AS (
    INSERT INTO transactions_entry (journal_id, account_id, amount, created_at)
    SELECT journal.id, line.account_id, line.amount, journal.created_at
    FROM journal JOIN told USING (subject_id),
        LATERAL (VALUES (%s, -told.amount), (told.account_id, told.amount)) AS line (account_id, amount)
    RETURNING id, account_id, amount
)
INSERT INTO transactions_unfolded (entry_id, account_id, amount) SELECT id, account_id, amount FROM entry
"""


@dataclass(frozen=True, slots=True)
class Credit:
    """Satang that a merchant gets for a subject, such as a payment."""

    merchant_id: str
    subject_id: str
    amount: int
    is_confirmed: bool = True


def hold_all(amounts: Mapping[str, int], *, source: str, at: datetime) -> None:
    """What `ledger.hold` posts for each subject and its satang. The caller opens the commit."""
    _post(
        Fact.HELD,
        list(amounts),
        list(amounts.values()),
        [accounts.suspense_of(source)] * len(amounts),
        source,
        at,
    )


def credit_all(fact: Fact, credits: Sequence[Credit], *, source: str, at: datetime) -> None:
    """What `ledger.credit` posts for each, from a bank; one to a subject. The caller opens the commit."""
    subjects, amounts = [each.subject_id for each in credits], [each.amount for each in credits]
    targets = [accounts.credited(each.merchant_id, is_confirmed=each.is_confirmed) for each in credits]
    _post(fact, subjects, amounts, targets, source, at)


def _post(
    fact: Fact, subjects: list[str], amounts: list[int], targets: list[str], source: str, at: datetime
) -> None:
    open_accounts([source, *set(targets)])
    rows.run(POST, [subjects, amounts, targets, fact, at, source])
