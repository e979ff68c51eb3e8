"""The ledger's SQL: post journals with one statement, roll up pending entries, read balances."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from django.db.models import Model

from core.database import rows
from ledger import accounts, balance_transactions
from ledger.journal_types import JournalType
from ledger.models import AccountType

# ON CONFLICT alone waits for a transaction that changes the account; the NOT EXISTS before it does not wait.
# The order by id prevents deadlocks between transactions that open the same accounts.
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
# The time of a journal is after that of every entry that its debits could spend. `now` was read before the
# lock, perhaps by a machine whose clock is behind, and by it a balance could be negative in between. The
# caller has locked these accounts before this statement, so nobody adds another debit.
POSTED_AT = """
greatest(%s::timestamptz, (
    SELECT max(created_at) + interval '1 millisecond' FROM unnest(%s::text[]) AS debited (id), LATERAL (
        SELECT created_at FROM ledger_entry WHERE account_id = debited.id ORDER BY created_at DESC LIMIT 1
    ) AS newest
))
"""
# Follows the WITH of a statement, which can insert other rows too.
# Entries that change a balance at once are those of the accounts in the last two arrays; all others are
# pending. The UPDATE does not see accounts that the same statement opens, so the result is how many it
# updated. It locks rows in any order, so `locked` locks them first, in the order of `accounts.LOCK_ORDER`.
POST_JOURNALS = f"""
opened AS ({OPEN_ACCOUNTS}),
line AS (
    SELECT * FROM unnest(%s::text[], %s::text[], %s::bigint[]) AS line (subject_id, account_id, amount)
),
journal AS (
    INSERT INTO ledger_journal (type, subject_id, amount, created_at)
    SELECT %s, subject_id, amount, {POSTED_AT}
    FROM unnest(%s::text[], %s::bigint[]) AS total (subject_id, amount)
    RETURNING id, subject_id, amount, created_at
),
entry AS (
    INSERT INTO ledger_entry (journal_id, account_id, amount, created_at)
    SELECT journal.id, line.account_id, line.amount, journal.created_at
    FROM journal JOIN line USING (subject_id)
    RETURNING id, account_id, amount
),
shown AS (
    INSERT INTO ledger_balancetransaction (id, merchant_id, type, amount, source_id, created_at)
    SELECT row.id, merchant_id, row.type, row.amount, source_id, journal.created_at
    FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::text[])
        AS row (id, subject_id, merchant_id, type, amount, source_id)
    JOIN journal USING (subject_id)
),
locked AS ({LOCK_ACCOUNTS}),
updated AS (
    UPDATE ledger_account AS account SET rolled_up_balance = account.rolled_up_balance + change.amount
    FROM (
        SELECT account_id, sum(amount) AS amount FROM line WHERE account_id = ANY(%s::text[])
        GROUP BY account_id
    ) AS change
    WHERE account.id = change.account_id AND (SELECT count(*) FROM locked) >= 0
    RETURNING account.id
),
pending AS (
    INSERT INTO ledger_pendingentry (account_id, entry_id, amount)
    SELECT account_id, id, amount FROM entry WHERE account_id <> ALL(%s::text[])
)
SELECT count(*) FROM updated
"""  # noqa: S608
# Deletes the chosen entries, never all up to an id: rows with lower ids may be committed later. A trigger
# adds them to `rolled_up_balance` after the statement, so the statement reads the old value. The rows are
# chosen by their place, which stays: they are never updated, and the lock of the account lets nobody delete
# them. A join could read the pending entries of all accounts.
ROLL_UP = """
WITH deleted AS (
    DELETE FROM ledger_pendingentry WHERE ctid = ANY(ARRAY({chosen})) RETURNING account_id, amount
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
ROLL_UP_ENTRIES = ROLL_UP.format(
    chosen="""
        SELECT found.ctid FROM unnest(%s::text[], %s::bigint[]) AS chosen (account_id, entry_id), LATERAL (
            SELECT ctid FROM ledger_pendingentry AS pending
            WHERE (pending.account_id, pending.entry_id) = (chosen.account_id, chosen.entry_id) OFFSET 0
        ) AS found
    """
)
# Takes the newest entries: the periodic roll-up takes the oldest first and leaves dead rows there.
ROLL_UP_NEWEST = ROLL_UP.format(
    chosen="""
        SELECT ctid FROM ledger_pendingentry WHERE account_id = %s
        ORDER BY account_id DESC, entry_id DESC LIMIT %s
    """
)
NEXT_PENDING = """
SELECT account_id, entry_id FROM ledger_pendingentry
WHERE (account_id, entry_id) > (%s, %s) ORDER BY account_id, entry_id LIMIT %s
"""
# The order and the bounds make the planner use the index. By its statistics each account has a large share of
# the pending entries, and it would read the whole table for each account.
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
# Reads pending entries only of merchants with a debt.
READ_DEBTS = f"""
SELECT merchant_id, net.debt FROM ledger_account AS debtor, LATERAL (
    SELECT -debtor.rolled_up_balance - account.rolled_up_balance - ({PENDING_SUM})
    FROM ledger_account AS account WHERE account.id = 'available:' || debtor.merchant_id
) AS net (debt)
WHERE debtor.type = 'debt' AND debtor.rolled_up_balance < 0 AND net.debt > 0
"""  # noqa: S608
SPENDABLE = (AccountType.AVAILABLE, AccountType.UNCONFIRMED, AccountType.UNSETTLED, AccountType.SUSPENSE)
END_OF_TIME = datetime.max.replace(tzinfo=UTC)


class AccountNotOpen(Exception):
    """Money must leave an account that was never opened."""


@dataclass(frozen=True, slots=True)
class LockedBalance:
    """The rolled-up balance of a locked account and its merchant's debt (zero or less); satang."""

    rolled_up: int
    debt: int
    count: int  # entries that were rolled up now
    is_complete: bool = False  # no entries are pending any more


def post(
    type: JournalType,
    lines_by_subject: Mapping[str, Mapping[str, int]],
    now: datetime,
    *,
    sources: Mapping[str, str] | None = None,
    also: Sequence[Model] = (),
) -> None:
    """Write one journal per subject with one statement. Lines map accounts to signed satang.

    The caller has locked the accounts that money leaves, other than external ones. So the order of their
    debits is that of their times, which can be later than `now`.

    sources: what merchants see as the source of the change, by subject, if it is not the subject.
    also: rows of one model that the statement inserts, too.

    Raises IntegrityError if such a journal was posted before or an account would be overdrawn, and
    AccountNotOpen if money must leave an account that was never opened.
    """
    lines = [
        (subject_id, code, amount)
        for subject_id, amounts in lines_by_subject.items()
        for code, amount in amounts.items()
        if amount
    ]
    totals = [sum(max(amount, 0) for amount in amounts.values()) for amounts in lines_by_subject.values()]
    changes = [(code, amount) for _, code, amount in lines if updates_balance_at_once(code, amount)]
    immediate = sorted({code for code, _ in changes})
    debited = list({code for code, amount in changes if amount < 0})
    locks = accounts.in_lock_order(accounts.lock_account_of(code) for code in immediate)
    columns = [[line[index] for line in lines] for index in range(3)]
    journals = [type, now, debited, list(lines_by_subject), totals]
    values = [
        *_account_columns({code for _, code, _ in lines}),
        *columns,
        *journals,
        *balance_transactions.columns(type, lines_by_subject, sources or {}, now),
        locks,
        immediate,
        immediate,
    ]
    insert, columns_of_rows = rows.insert_with(also) if also else ("", [])
    sql = f"WITH {f'also AS ({insert}), ' if also else ''}{POST_JOURNALS}"
    (updated,) = rows.run(sql, [*columns_of_rows, *values]).fetchone()
    if updated != len(immediate):
        raise AccountNotOpen(", ".join(immediate))


def updates_balance_at_once(code: str, amount: int) -> bool:
    """Whether a line changes `rolled_up_balance` itself, where a CHECK refuses an overdraft."""
    account_type = accounts.type_of(code)
    if account_type in SPENDABLE:
        return amount < 0
    return account_type in (AccountType.RESERVED, AccountType.DEBT, AccountType.WRITE_OFFS)


def open_accounts(codes: Sequence[str]) -> None:
    rows.run(OPEN_ACCOUNTS, _account_columns(codes))


def lock_accounts(codes: Sequence[str], *, skip_locked: bool = False) -> list[str]:
    """Lock accounts until the commit. Returns those that exist, and with skip_locked those that were free."""
    sql = LOCK_ACCOUNTS + (" SKIP LOCKED" if skip_locked else "")
    found = rows.run(sql, [accounts.in_lock_order(codes)])
    return [code for (code,) in found.fetchall()]


def roll_up_newest(code: str, limit: int) -> LockedBalance:
    """Roll up at most `limit` pending entries of an account. The caller holds the account's lock."""
    (held,) = _roll_up(ROLL_UP_NEWEST, [code, limit, [code]]).values()
    return replace(held, is_complete=held.count < limit)


def roll_up_entries(entries: Sequence[tuple[str, int]], codes: Sequence[str]) -> dict[str, LockedBalance]:
    """Roll up those of the entries (account, id) that are pending. The caller holds the accounts' locks."""
    columns = [[code for code, _ in entries], [entry_id for _, entry_id in entries]]
    return _roll_up(ROLL_UP_ENTRIES, [*columns, list(codes)])


def next_pending(after: tuple[str, int], limit: int) -> list[tuple[str, int]]:
    """Return the next pending entries as (account, id), in this order."""
    found = rows.run(NEXT_PENDING, [*after, limit]).fetchall()
    return [(code, entry_id) for code, entry_id in found]


def read_balances(codes: Sequence[str], before: datetime | None) -> dict[str, int]:
    """Return the balances of accounts, now or just before an instant, from one snapshot; satang.

    A past balance is the present one minus later entries, so recent instants are cheap.
    """
    found = rows.run(READ_BALANCES, [before or END_OF_TIME, list(codes)])
    return {code: int(held) for code, held in found.fetchall()}


def _roll_up(sql: str, values: Sequence[Any]) -> dict[str, LockedBalance]:
    found = rows.run(sql, values).fetchall()
    return {code: LockedBalance(int(rolled_up), debt, count) for code, rolled_up, debt, count in found}


def _account_columns(codes: Collection[str]) -> list[Any]:
    opened = accounts.accounts_to_open(codes)
    return [
        opened,
        [accounts.type_of(code) for code in opened],
        [accounts.merchant_id_of(code) for code in opened],
    ]
