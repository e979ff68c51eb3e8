"""The same fact about many subjects, posted by one statement: a day's lines of a bank are many."""

from collections.abc import Mapping
from datetime import datetime

from core import rows
from transactions.accounts import SUSPENSE
from transactions.ledger_models import Fact
from transactions.postings import open_accounts

# Neither the world outside nor money that comes in is settled at once: all of it waits to be folded.
POST = """
WITH journal AS (
    INSERT INTO transactions_journal (fact, subject_id, amount, created_at)
    SELECT %s, subject_id, amount, %s FROM unnest(%s::text[], %s::bigint[]) AS held (subject_id, amount)
    RETURNING id, amount, created_at
),
entry AS (
    INSERT INTO transactions_entry (journal_id, account_id, amount, created_at)
    SELECT journal.id, line.account_id, line.sign * journal.amount, journal.created_at
    FROM journal, (VALUES (%s, -1), (%s, 1)) AS line (account_id, sign)
    RETURNING id, account_id, amount
)
INSERT INTO transactions_unfolded (entry_id, account_id, amount) SELECT id, account_id, amount FROM entry
"""


def hold_all(amounts: Mapping[str, int], *, source: str, at: datetime) -> None:
    """What `ledger.hold` posts for each subject and its satang. The caller opens the commit."""
    open_accounts([source, SUSPENSE])
    rows.run(POST, [Fact.HELD, at, list(amounts), list(amounts.values()), source, SUSPENSE])
