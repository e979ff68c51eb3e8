"""The same type of journal about many subjects, posted by one statement: a day's lines of a bank are many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from core import rows
from ledger import accounts
from ledger.models import JournalType
from ledger.postings import open_accounts

# Entries of banks and acquirers, and money that comes in, do not change a balance at once.
# They are stored as pending entries.
POST_JOURNALS = """
WITH posting AS (
    SELECT * FROM unnest(%s::text[], %s::bigint[], %s::text[]) AS posting (subject_id, amount, account_id)
),
journal AS (
    INSERT INTO ledger_journal (type, subject_id, amount, created_at)
    SELECT %s, subject_id, amount, %s FROM posting
    RETURNING id, subject_id, created_at
),
entry AS (
    INSERT INTO ledger_entry (journal_id, account_id, amount, created_at)
    SELECT journal.id, line.account_id, line.amount, journal.created_at
    FROM journal JOIN posting USING (subject_id),
        LATERAL (VALUES (%s, -posting.amount), (posting.account_id, posting.amount))
            AS line (account_id, amount)
    RETURNING id, account_id, amount
)
INSERT INTO ledger_pendingentry (entry_id, account_id, amount) SELECT id, account_id, amount FROM entry
"""


@dataclass(frozen=True, slots=True)
class Credit:
    """Satang that a merchant gets for a subject, such as a payment."""

    merchant_id: str
    subject_id: str
    amount: int
    is_confirmed: bool = True


def hold_all(amounts: Mapping[str, int], *, source: str, now: datetime) -> None:
    """What `ledger.hold` posts for each subject and its satang. The caller opens the commit."""
    _post(
        JournalType.HELD,
        list(amounts),
        list(amounts.values()),
        [accounts.suspense_for(source)] * len(amounts),
        source,
        now,
    )


def credit_all(type: JournalType, credits: Sequence[Credit], *, source: str, now: datetime) -> None:
    """What `ledger.credit` posts for each, from a bank; one to a subject. The caller opens the commit."""
    subjects, amounts = [each.subject_id for each in credits], [each.amount for each in credits]
    targets = [accounts.credit_account(each.merchant_id, is_confirmed=each.is_confirmed) for each in credits]
    _post(type, subjects, amounts, targets, source, now)


def _post(
    type: JournalType, subjects: list[str], amounts: list[int], targets: list[str], source: str, now: datetime
) -> None:
    open_accounts([source, *set(targets)])
    rows.run(POST_JOURNALS, [subjects, amounts, targets, type, now, source])
