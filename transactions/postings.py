"""The ledger's SQL: write a posting by one statement, fold, read. `transactions.ledger` says what for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
LOCK = """
SELECT account.id FROM unnest(%s::text[]) WITH ORDINALITY AS wanted (id, place)
JOIN transactions_account AS account USING (id) ORDER BY wanted.place FOR NO KEY UPDATE OF account
"""
# The UPDATE does not see accounts that the same statement opens, so the answer is how many it found. It locks
# rows in any order, so `locked` takes the locks before it, in the order of `accounts.LOCK_ORDER`.
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
locked AS ({LOCK}),
settled AS (
    UPDATE transactions_account AS account SET settled = account.settled + line.amount
    FROM line WHERE account.id = line.account_id AND line.at_once AND (SELECT count(*) FROM locked) >= 0
    RETURNING account.id
),
unfolded AS (
    INSERT INTO transactions_unfolded (entry_id, account_id, amount)
    SELECT entry.id, entry.account_id, entry.amount
    FROM entry JOIN line USING (account_id) WHERE NOT line.at_once
)
SELECT count(*) FROM settled
"""  # noqa: S608
# Deletes what `{chosen}` names, never all up to an id: rows of lower ids may be committed later. A trigger
# adds that to `settled` after the statement, which still reads what it was.
FOLD = """
WITH gone AS (
    DELETE FROM transactions_unfolded WHERE entry_id = ANY({chosen}) RETURNING account_id, amount
)
SELECT id, settled + (SELECT coalesce(sum(amount), 0) FROM gone WHERE gone.account_id = account.id), coalesce(
    (SELECT owed.settled FROM transactions_account AS owed WHERE owed.id = 'owed:' || account.merchant_id), 0
), (SELECT count(*) FROM gone WHERE gone.account_id = account.id)
FROM transactions_account AS account WHERE id = ANY(%s)
"""
FOLD_ENTRIES = FOLD.format(chosen="%s")
# The newest entries: sweeps take the oldest first and leave dead rows there, over which a search has to step.
# The bounds are of both columns, so that no plan prefers the primary key and reads entries of other accounts.
FOLD_NEWEST = FOLD.format(
    chosen="""ARRAY(
        SELECT entry_id FROM transactions_unfolded
        WHERE (account_id, entry_id) >= (%s, 0) AND (account_id, entry_id) <= (%s, 9223372036854775807)
        ORDER BY account_id DESC, entry_id DESC LIMIT %s
    )"""
)
WAITING = """
SELECT account_id, entry_id FROM transactions_unfolded
WHERE (account_id, entry_id) > (%s, %s) ORDER BY account_id, entry_id LIMIT %s
"""
# In order and within these bounds, so that the index is read whatever the planner believes: on average every
# account has a large share of what waits, and it would read all of the table for each.
PENDING = """
SELECT coalesce(sum(amount), 0) FROM (
    SELECT amount FROM transactions_unfolded
    WHERE (account_id, entry_id) >= (account.id, 0)
        AND (account_id, entry_id) <= (account.id, 9223372036854775807)
    ORDER BY account_id, entry_id
) AS waiting
"""
READ = f"""
SELECT id, settled + ({PENDING})
    - (SELECT coalesce(sum(amount), 0) FROM transactions_entry AS later
       WHERE later.account_id = account.id AND later.created_at >= %s)
FROM transactions_account AS account WHERE id = ANY(%s)
"""  # noqa: S608
# Reads what waits to be folded only of those who owe something.
DEBTS = f"""
SELECT merchant_id, debt FROM transactions_account AS owed, LATERAL (
    SELECT -owed.settled - account.settled - ({PENDING})
    FROM transactions_account AS account WHERE account.id = 'available:' || owed.merchant_id
) AS net (debt)
WHERE owed.kind = 'owed' AND owed.settled < 0 AND debt > 0
"""  # noqa: S608
NEVER = datetime.max.replace(tzinfo=UTC)


class AccountNotOpen(Exception):
    """Money cannot leave an account that never had any."""


@dataclass(frozen=True, slots=True)
class Held:
    """What is settled of an account, and what its merchant owes (zero or less), under the lock; satang.

    folded: how many entries were added just now. is_whole: no others wait.
    """

    settled: int
    owed: int
    folded: int
    is_whole: bool = False


def post(fact: Fact, subject_id: str, lines: Mapping[str, int], at: datetime) -> None:
    """Write a journal of `lines`, account to signed satang; lines of zero are left out.

    Raises IntegrityError where the fact was posted before, and where an account would be overdrawn;
    AccountNotOpen where money is to leave an account that never had any.
    """
    moved = {code: amount for code, amount in lines.items() if amount}
    at_once = [settles_at_once(code, amount) for code, amount in moved.items()]
    total = sum(amount for amount in moved.values() if amount > 0)
    locks = accounts.in_lock_order(
        accounts.lock_of(code) for code, is_at_once in zip(moved, at_once, strict=True) if is_at_once
    )
    values = [list(moved), list(moved.values()), at_once, fact, subject_id, total, at, locks]
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
    sql = LOCK + (" SKIP LOCKED" if skip_locked else "")
    found = rows.run(sql, [accounts.in_lock_order(codes)])
    return [code for (code,) in found.fetchall()]


def fold_newest(code: str, limit: int) -> Held:
    """Move into `settled` up to `limit` entries that wait. The caller holds the account's lock."""
    (held,) = _fold(FOLD_NEWEST, [code, code, limit, [code]]).values()
    return replace(held, is_whole=held.folded < limit)


def fold_entries(entry_ids: Sequence[int], codes: Sequence[str]) -> dict[str, Held]:
    """Move into `settled` those entries of these accounts that wait. The caller holds the accounts' locks."""
    return _fold(FOLD_ENTRIES, [list(entry_ids), list(codes)])


def waiting(after: tuple[str, int], limit: int) -> list[tuple[str, int]]:
    """The next entries that wait to be folded, each by account and id, in this order."""
    found = rows.run(WAITING, [*after, limit]).fetchall()
    return [(code, entry_id) for code, entry_id in found]


def read(codes: Sequence[str], before: datetime | None) -> dict[str, int]:
    """What accounts hold, or held just before an instant, by one snapshot; satang.

    The past is the present without what came since, so only a look far back reads much.
    """
    found = rows.run(READ, [before or NEVER, list(codes)])
    return {code: int(held) for code, held in found.fetchall()}


def debts() -> dict[str, int]:
    """What merchants owe beyond all that came in; satang by merchant."""
    return {merchant_id: int(debt) for merchant_id, debt in rows.run(DEBTS, []).fetchall()}


def _fold(sql: str, values: Sequence[Any]) -> dict[str, Held]:
    found = rows.run(sql, values).fetchall()
    return {code: Held(int(settled), owed, folded) for code, settled, owed, folded in found}


def _opening(codes: Mapping[str, int] | Sequence[str]) -> list[Any]:
    opened = accounts.opened_with(codes)
    return [opened, [accounts.kind_of(code) for code in opened], [accounts.owner_of(code) for code in opened]]
