"""The ledger's SQL: write a posting by one statement, roll up, read. `ledger.services` says what for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from core import rows
from ledger import accounts
from ledger.models import AccountType, JournalType

# ON CONFLICT alone would wait for whoever is about to change the account; a look before does not. By code, so
# that two who open the same accounts at once wait for each other in one direction.
OPEN_ACCOUNTS = """
INSERT INTO ledger_account (id, type, merchant_id, rolled_up_balance)
SELECT id, type, merchant_id, 0 FROM unnest(%s::text[], %s::text[], %s::text[]) AS new (id, type, merchant_id)
WHERE NOT EXISTS (SELECT FROM ledger_account AS old WHERE old.id = new.id)
ORDER BY id ON CONFLICT (id) DO NOTHING
"""
LOCK_ACCOUNTS = """
SELECT account.id FROM unnest(%s::text[]) WITH ORDINALITY AS wanted (id, place)
JOIN ledger_account AS account USING (id) ORDER BY wanted.place FOR NO KEY UPDATE OF account
"""
# The UPDATE does not see accounts that the same statement opens, so the answer is how many it found. It locks
# rows in any order, so `locked` takes the locks before it, in the order of `accounts.LOCK_ORDER`.
POST_JOURNAL = f"""
WITH opened AS ({OPEN_ACCOUNTS}),
line AS (
    SELECT * FROM unnest(%s::text[], %s::bigint[], %s::boolean[]) AS line (account_id, amount, is_immediate)
),
journal AS (
    INSERT INTO ledger_journal (type, subject_id, amount, created_at) VALUES (%s, %s, %s, %s)
    RETURNING id, created_at
),
entry AS (
    INSERT INTO ledger_entry (journal_id, account_id, amount, created_at)
    SELECT journal.id, line.account_id, line.amount, journal.created_at FROM journal, line
    RETURNING id, account_id, amount
),
locked AS ({LOCK_ACCOUNTS}),
updated AS (
    UPDATE ledger_account AS account SET rolled_up_balance = account.rolled_up_balance + line.amount
    FROM line WHERE account.id = line.account_id AND line.is_immediate AND (SELECT count(*) FROM locked) >= 0
    RETURNING account.id
),
pending AS (
    INSERT INTO ledger_pendingentry (entry_id, account_id, amount)
    SELECT entry.id, entry.account_id, entry.amount
    FROM entry JOIN line USING (account_id) WHERE NOT line.is_immediate
)
SELECT count(*) FROM updated
"""  # noqa: S608
# Deletes what `{chosen}` names, never all up to an id: rows of lower ids may be committed later. A trigger
# adds that to `rolled_up_balance` after the statement, which still reads what it was.
ROLL_UP = """
WITH deleted AS (
    DELETE FROM ledger_pendingentry WHERE entry_id = ANY({chosen}) RETURNING account_id, amount
)
SELECT id, rolled_up_balance + (
    SELECT coalesce(sum(amount), 0) FROM deleted WHERE deleted.account_id = account.id
), coalesce(
    (
        SELECT debt.rolled_up_balance FROM ledger_account AS debt
        WHERE debt.id = 'debt:' || account.merchant_id
    ),
    0
), (SELECT count(*) FROM deleted WHERE deleted.account_id = account.id)
FROM ledger_account AS account WHERE id = ANY(%s)
"""
ROLL_UP_ENTRIES = ROLL_UP.format(chosen="%s")
# The newest entries: roll-ups take the oldest first and leave dead rows there, which a search has to skip.
# The bounds are of both columns, so that no plan prefers the primary key and reads entries of other accounts.
ROLL_UP_NEWEST = ROLL_UP.format(
    chosen="""ARRAY(
        SELECT entry_id FROM ledger_pendingentry
        WHERE (account_id, entry_id) >= (%s, 0) AND (account_id, entry_id) <= (%s, 9223372036854775807)
        ORDER BY account_id DESC, entry_id DESC LIMIT %s
    )"""
)
NEXT_PENDING = """
SELECT account_id, entry_id FROM ledger_pendingentry
WHERE (account_id, entry_id) > (%s, %s) ORDER BY account_id, entry_id LIMIT %s
"""
# In order and within these bounds, so that the index is read whatever the planner believes: on average every
# account has a large share of what waits, and it would read all of the table for each.
PENDING_SUM = """
SELECT coalesce(sum(amount), 0) FROM (
    SELECT amount FROM ledger_pendingentry
    WHERE (account_id, entry_id) >= (account.id, 0)
        AND (account_id, entry_id) <= (account.id, 9223372036854775807)
    ORDER BY account_id, entry_id
) AS pending
"""
READ_BALANCES = f"""
SELECT id, rolled_up_balance + ({PENDING_SUM})
    - (SELECT coalesce(sum(amount), 0) FROM ledger_entry AS later
       WHERE later.account_id = account.id AND later.created_at >= %s)
FROM ledger_account AS account WHERE id = ANY(%s)
"""  # noqa: S608
# Reads what is pending only of those who owe something.
READ_DEBTS = f"""
SELECT merchant_id, net.debt FROM ledger_account AS debtor, LATERAL (
    SELECT -debtor.rolled_up_balance - account.rolled_up_balance - ({PENDING_SUM})
    FROM ledger_account AS account WHERE account.id = 'available:' || debtor.merchant_id
) AS net (debt)
WHERE debtor.type = 'debt' AND debtor.rolled_up_balance < 0 AND net.debt > 0
"""  # noqa: S608
END_OF_TIME = datetime.max.replace(tzinfo=UTC)


class AccountNotOpen(Exception):
    """Money cannot leave an account that never had any."""


@dataclass(frozen=True, slots=True)
class LockedBalance:
    """The rolled-up balance of an account, and its merchant's debt (zero or less), under the lock; satang.

    count: entries that were rolled up now. is_complete: no entries are pending any more.
    """

    rolled_up: int
    debt: int
    count: int
    is_complete: bool = False


def post(type: JournalType, subject_id: str, lines: Mapping[str, int], now: datetime) -> None:
    """Write a journal of `lines`, account to signed satang; lines of zero are left out.

    Raises IntegrityError where that journal was posted before, and where an account would be overdrawn;
    AccountNotOpen where money is to leave an account that never had any.
    """
    moved = {code: amount for code, amount in lines.items() if amount}
    is_immediate = [updates_balance_at_once(code, amount) for code, amount in moved.items()]
    total = sum(amount for amount in moved.values() if amount > 0)
    locks = accounts.in_lock_order(
        accounts.lock_account_of(code)
        for code, is_immediate in zip(moved, is_immediate, strict=True)
        if is_immediate
    )
    values = [list(moved), list(moved.values()), is_immediate, type, subject_id, total, now, locks]
    (rolled_up,) = rows.run(POST_JOURNAL, [*_account_columns(moved), *values]).fetchone()
    if rolled_up != sum(is_immediate):
        raise AccountNotOpen(", ".join(moved))


def updates_balance_at_once(code: str, amount: int) -> bool:
    """Whether a line changes `rolled_up_balance` itself, which has a CHECK, and needs no pending entry."""
    account_type = accounts.type_of(code)
    takes = (
        account_type in (AccountType.AVAILABLE, AccountType.UNCONFIRMED, AccountType.SUSPENSE) and amount < 0
    )
    return takes or account_type in (AccountType.RESERVED, AccountType.DEBT, AccountType.WRITE_OFFS)


def open_accounts(codes: Sequence[str]) -> None:
    rows.run(OPEN_ACCOUNTS, _account_columns(codes))


def lock_accounts(codes: Sequence[str], *, skip_locked: bool = False) -> list[str]:
    """Lock accounts until the commit; returns those that are there (and free)."""
    sql = LOCK_ACCOUNTS + (" SKIP LOCKED" if skip_locked else "")
    found = rows.run(sql, [accounts.in_lock_order(codes)])
    return [code for (code,) in found.fetchall()]


def roll_up_newest(code: str, limit: int) -> LockedBalance:
    """Roll up at most `limit` pending entries of an account. The caller holds the account's lock."""
    (held,) = _roll_up(ROLL_UP_NEWEST, [code, code, limit, [code]]).values()
    return replace(held, is_complete=held.count < limit)


def roll_up_entries(entry_ids: Sequence[int], codes: Sequence[str]) -> dict[str, LockedBalance]:
    """Roll up those of the entries that are pending. The caller holds the accounts' locks."""
    return _roll_up(ROLL_UP_ENTRIES, [list(entry_ids), list(codes)])


def next_pending(after: tuple[str, int], limit: int) -> list[tuple[str, int]]:
    """The next pending entries, each by account and id, in this order."""
    found = rows.run(NEXT_PENDING, [*after, limit]).fetchall()
    return [(code, entry_id) for code, entry_id in found]


def read_balances(codes: Sequence[str], before: datetime | None) -> dict[str, int]:
    """What accounts hold, or held just before an instant, by one snapshot; satang.

    The past is the present without what came since, so only a look far back reads much.
    """
    found = rows.run(READ_BALANCES, [before or END_OF_TIME, list(codes)])
    return {code: int(held) for code, held in found.fetchall()}


def read_debts() -> dict[str, int]:
    """What merchants owe beyond all that came in; satang by merchant."""
    return {merchant_id: int(debt) for merchant_id, debt in rows.run(READ_DEBTS, []).fetchall()}


def _roll_up(sql: str, values: Sequence[Any]) -> dict[str, LockedBalance]:
    found = rows.run(sql, values).fetchall()
    return {code: LockedBalance(int(rolled_up), debt, count) for code, rolled_up, debt, count in found}


def _account_columns(codes: Mapping[str, int] | Sequence[str]) -> list[Any]:
    opened = accounts.accounts_to_open(codes)
    return [
        opened,
        [accounts.type_of(code) for code in opened],
        [accounts.merchant_id_of(code) for code in opened],
    ]
