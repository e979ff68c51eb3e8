"""Database rules of the ledger: plain SQL, checked by SQLSTATE."""

import pytest
from django.db import DatabaseError, connection, transaction

from ledger import services as ledger
from ledger.models import Account, Journal
from tests.ledger.builders import BANK, MerchantLedger
from tests.tables import count_rows

CHECK_VIOLATION = "23514"
UNIQUE_VIOLATION = "23505"
NOT_ALLOWED = "42501"
AVAILABLE, RESERVED, OWED = "available:{0}", "reserved:{0}", "debt:{0}"
HISTORIES = [
    "payments_payment",
    "reconciliation_banktransaction",
    "reconciliation_banknotification",
    "transactions_transaction",
    "ledger_account",
    "ledger_journal",
    "ledger_entry",
    "ledger_pendingentry",
]


@pytest.fixture
def merchant_id(db: None) -> str:
    """A merchant with a credit of 100, of which 30 are reserved; 10 are held in suspense."""
    merchant_ledger = MerchantLedger()
    merchant_ledger.credit(100, subject_id="paid")
    merchant_ledger.reserve(30, subject_id="reserved")
    merchant_ledger.hold(10)
    return merchant_ledger.merchant_id


def journal(subject_id: str, amount: int, *lines: tuple[str, int], type: str = "payment") -> str:
    """The SQL of a posting."""
    values = ", ".join(f"('{code}', {satang})" for code, satang in lines)
    entries = f"""INSERT INTO ledger_entry (journal_id, account_id, amount, created_at)
        SELECT id, code, satang, created_at FROM journal, (VALUES {values}) AS line (code, satang)"""
    return f"""WITH journal AS (INSERT INTO ledger_journal (type, subject_id, amount, created_at)
        VALUES ('{type}', '{subject_id}', {amount}, '2026-11-21T05:00Z') RETURNING id, created_at)
        {entries if lines else "SELECT * FROM journal"}"""


def later(*lines: tuple[str, int]) -> str:
    """The SQL of lines that are added to a complete journal."""
    values = ", ".join(f"('{code}', {satang})" for code, satang in lines)
    return f"""INSERT INTO ledger_entry (journal_id, account_id, amount, created_at)
        SELECT id, code, satang, created_at
        FROM ledger_journal, (VALUES {values}) AS line (code, satang) WHERE subject_id = 'paid'"""


def account(code: str, kind: str, merchant: str = "NULL") -> str:
    """The SQL that opens an account."""
    return f"""INSERT INTO ledger_account (id, type, merchant_id, rolled_up_balance)
        VALUES ('{code}', '{kind}', {merchant}, 0)"""


def opened(code: str) -> str:
    """The SQL that opens an account without a merchant, before another statement."""
    return account(code, code.partition(":")[0]) + ";"


def change_balance(code: str, change: int) -> str:
    """The SQL that changes a balance."""
    return f"UPDATE ledger_account SET rolled_up_balance = rolled_up_balance + {change} WHERE id = '{code}'"


def wait(waiting: str, posting: str = "SELECT") -> str:
    """The SQL that adds a pending entry for the newest entry of money in."""
    return f"""{posting};
        INSERT INTO ledger_pendingentry (entry_id, account_id, amount) SELECT id, {waiting}
        FROM ledger_entry WHERE account_id = '{AVAILABLE}' AND amount > 0 ORDER BY id DESC LIMIT 1"""


def pending_at_once(posting: str) -> str:
    """The SQL of a posting whose entries are pending, in one statement."""
    return f"""{posting.replace("INSERT INTO ledger_entry", ", entry AS (INSERT INTO ledger_entry")}
        RETURNING id, account_id, amount)
        INSERT INTO ledger_pendingentry (entry_id, account_id, amount) SELECT * FROM entry"""


def hidden(table: str, attack: str) -> str:
    """The SQL of an attack behind a temporary table with this name, which PostgreSQL looks up first."""
    copy = f"CREATE TEMPORARY TABLE {table} (LIKE public.{table}) ON COMMIT DROP"
    return f"{copy}; DISCARD PLANS; {attack}"  # as in a new session


def sqlstate(attack: str) -> str:
    """How the database refuses, at once or, where it waits for the whole posting, at the commit."""
    with pytest.raises(DatabaseError) as refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(attack)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    return str(getattr(refused.value.__cause__, "sqlstate", None))


ATTACKS = {
    "a journal that does not balance": (journal("new", 5, (AVAILABLE, 5), (BANK, -4)), CHECK_VIOLATION),
    "a journal of one line": (journal("new", 5, (AVAILABLE, 5)), CHECK_VIOLATION),
    "a journal without a line": (journal("new", 5), CHECK_VIOLATION),
    "a journal that moves less than it says": (
        journal("new", 6, (AVAILABLE, 5), (BANK, -5)),
        CHECK_VIOLATION,
    ),
    "a line of nothing": (journal("new", 5, (AVAILABLE, 5), (BANK, -5), (RESERVED, 0)), CHECK_VIOLATION),
    "two lines of one account": (journal("new", 5, (AVAILABLE, 5), (BANK, -4), (BANK, -1)), CHECK_VIOLATION),
    "a second journal of the type": (journal("paid", 5, (AVAILABLE, 5), (BANK, -5)), UNIQUE_VIOLATION),
    "an unknown journal type": (journal("new", 5, (AVAILABLE, 5), (BANK, -5), type="gift"), CHECK_VIOLATION),
    "a line of an account that is not open": (
        journal("new", 5, (AVAILABLE, 5), ("bank:nowhere", -5)),
        CHECK_VIOLATION,
    ),
    "lines of a journal that does not exist": (
        later((RESERVED, 5), (OWED, -5)).replace("SELECT id", "SELECT -1"),
        CHECK_VIOLATION,
    ),
    "lines after their journal in one commit": (
        journal("new", 5) + ";" + later((AVAILABLE, 5), (BANK, -5)).replace("'paid'", "'new'"),
        CHECK_VIOLATION,
    ),
    "a line that comes later": (later((RESERVED, 5)), CHECK_VIOLATION),
    "lines that come later and balance": (later((RESERVED, 5), (OWED, -5)), CHECK_VIOLATION),
    "lines of another time": (
        journal("new", 5, (AVAILABLE, 5), (BANK, -5)).replace("satang, created_at", "satang, now()"),
        CHECK_VIOLATION,
    ),
    "another amount": ("UPDATE ledger_entry SET amount = amount + 1", NOT_ALLOWED),
    "another account": (f"UPDATE ledger_entry SET account_id = '{BANK}'", NOT_ALLOWED),
    "another journal type": ("UPDATE ledger_journal SET type = 'reversal'", NOT_ALLOWED),
    "a line less": ("DELETE FROM ledger_entry", NOT_ALLOWED),
    "a journal less": ("DELETE FROM ledger_journal", NOT_ALLOWED),
    "an account less": ("DELETE FROM ledger_account", NOT_ALLOWED),
    "an account of another": (f"UPDATE ledger_account SET id = 'bank:x' WHERE id = '{BANK}'", NOT_ALLOWED),
    "another amount of a pending entry": ("UPDATE ledger_pendingentry SET amount = amount + 1", NOT_ALLOWED),
    "more spent than there is": (change_balance(AVAILABLE, -71), CHECK_VIOLATION),
    "more paid out than was reserved": (change_balance(RESERVED, -31), CHECK_VIOLATION),
    "more sent back than was held": (change_balance("suspense:sandbox", -1), CHECK_VIOLATION),
    "sandbox money in the suspense of live money": (
        opened("suspense") + journal("new", 5, ("suspense", 5), (BANK, -5)),
        CHECK_VIOLATION,
    ),
    "live money in the suspense of the sandbox": (
        opened("bank:scb") + journal("new", 5, ("suspense:sandbox", 5), ("bank:scb", -5)),
        CHECK_VIOLATION,
    ),
    "live money of suspense for a test merchant": (
        opened("suspense") + journal("new", 5, (AVAILABLE, 5), ("suspense", -5)),
        CHECK_VIOLATION,
    ),
    "a debt below nothing": (change_balance(OWED, 1), CHECK_VIOLATION),
    "a pending debit": (
        f"""INSERT INTO ledger_pendingentry (entry_id, account_id, amount)
        SELECT id, account_id, -5 FROM ledger_entry WHERE account_id = '{AVAILABLE}' LIMIT 1""",
        CHECK_VIOLATION,
    ),
    "a pending entry of another amount": (
        wait("account_id, amount + 1", journal("new", 5, (AVAILABLE, 5), (BANK, -5))),
        CHECK_VIOLATION,
    ),
    "a pending entry of another account": (
        wait("'suspense', 5", journal("new", 5, (AVAILABLE, 5), (BANK, -5))),
        CHECK_VIOLATION,
    ),
    "a pending entry without an entry": (
        f"INSERT INTO ledger_pendingentry (entry_id, account_id, amount) VALUES (-1, '{AVAILABLE}', 5)",
        CHECK_VIOLATION,
    ),
    "a pending entry that was rolled up": (
        "DELETE FROM ledger_pendingentry;" + wait("account_id, amount"),
        CHECK_VIOLATION,
    ),
    "an entry that is pending again after its roll-up": (
        pending_at_once(journal("new", 5, (AVAILABLE, 5), (BANK, -5)))
        + "; DELETE FROM ledger_pendingentry;"
        + wait("account_id, amount"),
        CHECK_VIOLATION,
    ),
    "lines of a temporary journal": (
        hidden(
            "ledger_journal",
            journal("new", 5, (AVAILABLE, 5), (BANK, -5))
            .replace("(type,", "(id, type,")
            .replace("('payment'", "(-1, 'payment'"),
        ),
        CHECK_VIOLATION,
    ),
    "a journal that temporary lines balance": (
        hidden(
            "ledger_entry",
            f"""WITH made AS (
            INSERT INTO ledger_journal (type, subject_id, amount, created_at)
            VALUES ('payment', 'new', 5, now()) RETURNING id, created_at
        ), fake AS (
            INSERT INTO ledger_entry (id, journal_id, account_id, amount, created_at)
            SELECT -line, id, code, satang, created_at FROM made,
                (VALUES (1, '{AVAILABLE}', 5), (2, '{BANK}', -5)) AS line (line, code, satang)
        ) INSERT INTO public.ledger_entry (id, journal_id, account_id, amount, created_at)
            OVERRIDING SYSTEM VALUE SELECT -1, id, '{AVAILABLE}', 5, created_at FROM made""",
        ),
        CHECK_VIOLATION,
    ),
    "a pending entry of a temporary one that was rolled up": (
        "DELETE FROM ledger_pendingentry;"
        + hidden(
            "ledger_entry",
            f"""WITH fake AS (
            INSERT INTO ledger_entry
            SELECT * FROM public.ledger_entry WHERE account_id = '{AVAILABLE}' AND amount > 0
            RETURNING id, account_id, amount
        ) INSERT INTO ledger_pendingentry (entry_id, account_id, amount) SELECT * FROM fake""",
        ),
        CHECK_VIOLATION,
    ),
    "a balance without an entry": (change_balance(AVAILABLE, 5), CHECK_VIOLATION),
    "a debt that is forgiven without an entry": (change_balance(OWED, -5), CHECK_VIOLATION),
    "an entry that leaves the balance as it is": (
        journal("new", 5, (AVAILABLE, -5), (BANK, 5)),
        CHECK_VIOLATION,
    ),
    "a reserved amount that nobody gave": (
        journal("new", 5, (AVAILABLE, -5), (RESERVED, 5)) + ";" + change_balance(RESERVED, 5),
        CHECK_VIOLATION,
    ),
    "another balance beside an entry": (
        journal("new", 5, (AVAILABLE, -5), (BANK, 5)) + ";" + change_balance(AVAILABLE, 5),
        CHECK_VIOLATION,
    ),
    "another total": ("UPDATE ledger_account SET entries_total = entries_total + 5", NOT_ALLOWED),
    "another balance and total": (
        "UPDATE ledger_account SET rolled_up_balance = 500, entries_total = 500 WHERE type = 'available'",
        NOT_ALLOWED,
    ),
    "an account with a balance": (
        account("bank:rich", "bank").replace(", 0)", ", 5)"),
        CHECK_VIOLATION,
    ),
    "an account with a total": (
        account("bank:rich", "bank").replace("rolled_up_balance", "entries_total").replace(", 0)", ", 5)"),
        NOT_ALLOWED,
    ),
    "an account without a merchant": (account("available:x", "available"), CHECK_VIOLATION),
    "a bank of a merchant": (account("bank:x", "bank", "'{0}'"), CHECK_VIOLATION),
    "another's account": (account("available:mch_x", "available", "'{0}'"), CHECK_VIOLATION),
} | {f"an empty {table}": (f"TRUNCATE {table} CASCADE", NOT_ALLOWED) for table in HISTORIES}


@pytest.mark.parametrize("name", ATTACKS)
def test_database_refuses_invalid_ledger_changes(merchant_id: str, name: str) -> None:
    attack, expected = ATTACKS[name]
    with connection.cursor() as cursor:
        before = count_rows()
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # check what the fixture did before the attack
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        assert sqlstate(attack.format(merchant_id)) == expected
        assert count_rows() == before
    assert ledger.balance(merchant_id) == ledger.Balance(70, 30, 0)


def test_deleted_pending_entry_is_added_to_the_balance(merchant_id: str) -> None:
    MerchantLedger(merchant_id).credit(5)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM ledger_pendingentry")
    assert ledger.balance(merchant_id) == ledger.Balance(75, 30, 0)
    assert dict(
        Account.objects.filter(type__in=["available", "bank"]).values_list("id", "rolled_up_balance")
    ) == {AVAILABLE.format(merchant_id): 75, BANK: -115}


@pytest.mark.django_db(transaction=True)
def test_unbalanced_posting_fails_at_commit() -> None:
    with connection.cursor() as cursor:
        cursor.execute(account("bank:a", "bank"))
        cursor.execute(account("bank:b", "bank"))
        with pytest.raises(DatabaseError, match="do not balance"):
            cursor.execute(journal("new", 5, ("bank:a", 5), ("bank:b", -4)))
        cursor.execute(journal("new", 5, ("bank:a", 5), ("bank:b", -5)))
    assert Journal.objects.count() == 1
