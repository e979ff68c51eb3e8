"""The ledger's SQL: write a posting by one statement, fold, read. `transactions.ledger` says what for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from core import rows
from transactions import accounts
from transactions.ledger_models import Fact, Kind

# ON CONFLICT alone would wait for whoever is about to change the account; a look before does not. By code, so
# that two who open the same accounts at once wait for each other in one direction.
OPEN = """
INSERT INTO transactions_account (id, kind, merchant_id, settled)
SELECT id, kind, merchant_id, 0 FROM unnest(%s::text[], %s::text[], %s::text[]) AS new (id, kind, merchant_id)
WHERE NOT EXISTS (SELECT FROM transactions_account AS old WHERE old.id = new.id)
ORDER BY id ON CONFLICT (id) DO NOTHING
"""
# The UPDATE does not see accounts that the same statement opens, so the answer is how many it found.
POST = f"""
WITH opened AS ({OPEN}),
line AS (SELECT * FROM unnest(%s::text[], %s::bigint[], %s::boolean[]) AS line (account_id, amount, at_once)),
journal AS (
    INSERT INTO transactions_journal (fact, subject_id, amount, created_at) VALUES (%s, %s, %s, %s)
    RETURNING id, created_at
),
entry AS (
    INSERT INTO transactions_entry (journal_id, account_id, amount, created_at)
    SELECT journal.id, line.account_id, line.amount, journal.created_at FROM journal, line
    RETURNING id, account_id, amount
),
settled AS (
    UPDATE transactions_account AS account SET settled = account.settled + line.amount
    FROM line WHERE account.id = line.account_id AND line.at_once
    RETURNING account.id
),
unfolded AS (
    INSERT INTO transactions_unfolded (entry_id, account_id, amount)
    SELECT entry.id, entry.account_id, entry.amount
    FROM entry JOIN line USING (account_id) WHERE NOT line.at_once
)
SELECT count(*) FROM settled
"""  # noqa: S608
LOCK = "SELECT id FROM transactions_account WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE"
# By what is deleted, never up to an id: rows of lower ids may be committed later. A trigger adds it to
# `settled` after the statement, which still reads what it was.
FOLD = """
WITH gone AS (DELETE FROM transactions_unfolded WHERE account_id = ANY(%s) RETURNING account_id, amount)
SELECT id, settled + (SELECT coalesce(sum(amount), 0) FROM gone WHERE gone.account_id = account.id), coalesce(
    (SELECT owed.settled FROM transactions_account AS owed WHERE owed.id = 'owed:' || account.merchant_id), 0
)
FROM transactions_account AS account WHERE id = ANY(%s)
"""
READ = """
SELECT id, settled
    + (SELECT coalesce(sum(amount), 0) FROM transactions_unfolded AS new WHERE new.account_id = account.id)
    - (SELECT coalesce(sum(amount), 0) FROM transactions_entry AS later
       WHERE later.account_id = account.id AND later.created_at >= %s)
FROM transactions_account AS account WHERE id = ANY(%s)
"""
NEVER = datetime.max.replace(tzinfo=UTC)


class AccountNotOpen(Exception):
    """Money cannot leave an account that never had any."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a folded account holds, and what its merchant owes (zero or less), under the lock; satang."""

    settled: int
    owed: int


def post(fact: Fact, subject_id: str, lines: Mapping[str, int], at: datetime) -> None:
    """Write a journal of `lines`, account to signed satang; lines of zero are left out.

    Raises IntegrityError where the fact was posted before, and where an account would be overdrawn;
    AccountNotOpen where money is to leave an account that never had any.
    """
    moved = {code: amount for code, amount in lines.items() if amount}
    at_once = [settles_at_once(code, amount) for code, amount in moved.items()]
    total = sum(amount for amount in moved.values() if amount > 0)
    values = [list(moved), list(moved.values()), at_once, fact, subject_id, total, at]
    (settled,) = rows.run(POST, [*_opening(moved), *values]).fetchone()
    if settled != sum(at_once):
        raise AccountNotOpen(", ".join(moved))


def settles_at_once(code: str, amount: int) -> bool:
    """Whether a line changes `settled` itself, where a CHECK judges it, and does not wait to be folded."""
    kind = accounts.kind_of(code)
    takes = kind in (Kind.AVAILABLE, Kind.UNCONFIRMED, Kind.SUSPENSE) and amount < 0
    return takes or kind in (Kind.RESERVED, Kind.OWED, Kind.LOSSES)


def open_accounts(codes: Sequence[str]) -> None:
    rows.run(OPEN, _opening(codes))


def lock(codes: Sequence[str], *, skip_locked: bool = False) -> list[str]:
    """Lock accounts until the commit; returns those that are there (and free)."""
    found = rows.run(LOCK + (" SKIP LOCKED" if skip_locked else ""), [list(codes)])
    return [code for (code,) in found.fetchall()]


def fold(codes: Sequence[str]) -> dict[str, Held]:
    """Move into `settled` what waits of these accounts. The caller holds their locks."""
    found = rows.run(FOLD, [list(codes), list(codes)])
    return {code: Held(int(settled), owed) for code, settled, owed in found.fetchall()}


def read(codes: Sequence[str], before: datetime | None) -> dict[str, int]:
    """What accounts hold, or held just before an instant, by one snapshot; satang.

    The past is the present without what came since, so only a look far back reads much.
    """
    found = rows.run(READ, [before or NEVER, list(codes)])
    return {code: int(held) for code, held in found.fetchall()}


def _opening(codes: Mapping[str, int] | Sequence[str]) -> list[Any]:
    opened = accounts.opened_with(codes)
    return [opened, [accounts.kind_of(code) for code in opened], [accounts.owner_of(code) for code in opened]]
