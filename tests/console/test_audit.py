"""The audit: it agrees with every life that money can have here, and finds every kind of lie."""

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from pytest_django import Settings

from console.audit import checking
from core import clock
from tests.conftest import BankCaller, Shop
from tests.console import audit_cast
from tests.console.audit_cast import LIVES, Serving
from tests.refunds.cast import Counter
from transactions import ledger


@pytest.fixture
def counter(shop: Shop, bank: BankCaller, settings: Settings) -> Counter:
    settings.SANDBOX_ACQUIRER_URL = "http://127.0.0.1:1"  # nobody listens: the tests say what it says
    return Counter(shop, bank)


@pytest.fixture
def town(counter: Counter, served_by: Serving, settings: Settings) -> Counter:
    """A shop that has seen all of it."""
    for life in LIVES:
        life(counter, served_by)
    audit_cast.ask_staff(counter, served_by, settings)
    return counter


def wrong() -> list[checking.Difference]:
    return list(checking.differences())


def damage(sql: str) -> None:
    """Change rows as nobody can who does not own the server."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(sql)
        cursor.execute("SET LOCAL session_replication_role = origin")


@contextmanager
def taken_back() -> Iterator[None]:
    """What happens within leaves no trace."""
    mark = transaction.savepoint()
    try:
        yield
    finally:
        transaction.savepoint_rollback(mark)


def test_books_in_which_nothing_happened_are_right(db: None) -> None:
    assert not wrong()


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_books_are_right_after_each_kind_of_life(
    counter: Counter, served_by: Serving, life: Callable[[Counter, Serving], None]
) -> None:
    life(counter, served_by)
    assert not wrong()


def test_books_are_right_after_all_of_it_and_the_folding(town: Counter) -> None:
    assert not wrong()
    ledger.fold_due(now=clock.now())
    assert not wrong()


def one(table: str, where: str) -> str:
    """The SQL of the id of some row."""
    return f"(SELECT id FROM {table} WHERE {where} ORDER BY id LIMIT 1)"


PAID = one("payments_payment", "status = 'succeeded' AND qr_code_id IS NOT NULL AND amount_refunded = 0")
FAILED = one("payments_payment", "status = 'failed' AND qr_code_id IS NOT NULL")
PAYS = f"type = 'payment' AND payment_id = {PAID}"
JOURNAL = one("transactions_journal", "fact = 'payment'")
# One that must be there: a card's `payment.pending` need not be, nor an expired code's `payment.failed`.
EVENT = """(SELECT id FROM webhooks_event AS event WHERE type = '{}' AND NOT EXISTS (
    SELECT FROM payments_payment AS payment WHERE payment.id = event.subject_id
    AND (qr_code_id IS NULL OR event.type = 'payment.failed' AND status <> 'failed')
) ORDER BY id LIMIT 1)"""
COMPLETED = one("refunds_refund", "status = 'completed' AND returned_at IS NULL")
SENT = one("withdrawals_withdrawal", "status = 'succeeded'")


def lose_event(kind: str) -> str:
    return f"DELETE FROM webhooks_event WHERE id = {EVENT.format(kind)}"


def repeat_event(kind: str) -> str:
    return f"""INSERT INTO webhooks_event (id, merchant_id, type, subject_id, body, created_at)
        SELECT 'evt_again', merchant_id, type, subject_id, body, created_at
        FROM webhooks_event WHERE id = {EVENT.format(kind)}"""


def lose_posting(fact: str) -> str:
    """A whole journal is gone, and its accounts never knew it: only who it was for can tell."""
    gone = f"(SELECT id FROM transactions_journal WHERE fact = '{fact}' ORDER BY id LIMIT 1)"
    return f"""
        UPDATE transactions_account AS account SET settled = settled - entry.amount
        FROM transactions_entry AS entry WHERE entry.account_id = account.id AND journal_id = {gone};
        DELETE FROM transactions_entry WHERE journal_id = {gone};
        DELETE FROM transactions_journal WHERE id = {gone}"""


LIES = {
    "an account holds what its entries say": [
        "UPDATE transactions_account SET settled = settled + 1 WHERE kind = 'available'",
        f"DELETE FROM transactions_entry WHERE journal_id = {JOURNAL}",
        "DELETE FROM transactions_account WHERE kind = 'bank'",
    ],
    "what waits to be folded is an entry": [
        "UPDATE transactions_unfolded SET amount = amount + 1",
        "UPDATE transactions_unfolded SET account_id = 'bank:other'",
        "INSERT INTO transactions_unfolded (entry_id, account_id, amount) VALUES (0, 'bank:sandbox', 1)",
    ],
    "the entries of a journal sum to zero and move what it says, when it says": [
        f"UPDATE transactions_entry SET amount = amount + 1 WHERE journal_id = {JOURNAL} AND amount > 0",
        f"UPDATE transactions_entry SET amount = amount * 2 WHERE journal_id = {JOURNAL}",
        f"UPDATE transactions_entry SET created_at = now() WHERE journal_id = {JOURNAL} AND amount > 0",
        f"DELETE FROM transactions_entry WHERE journal_id = {JOURNAL}",
        f"DELETE FROM transactions_journal WHERE id = {JOURNAL}",
    ],
    "what banks hold for us is what merchants and staff have": [
        "UPDATE transactions_account SET settled = settled + 1 WHERE kind = 'suspense'",
        "UPDATE transactions_unfolded SET amount = amount + 1 WHERE account_id = 'bank:sandbox'",
    ],
    "no account is overdrawn": [
        "ALTER TABLE transactions_account DROP CONSTRAINT account_not_overdrawn;"
        f"UPDATE transactions_account SET settled = {satang} WHERE kind = '{kind}'"
        for kind, satang in [("available", -1), ("reserved", -1), ("suspense", -1), ("owed", 1)]
    ],
    "other postings go where their fact says": [
        f"""UPDATE transactions_entry SET account_id = 'reserved:mch_other' WHERE id = (
            SELECT min(id) FROM transactions_entry WHERE journal_id = (
                SELECT min(id) FROM transactions_journal WHERE fact = '{fact}'))"""
        for fact in ("reversal", "owed_filled", "held", "accepted", "sent_back")
    ],
    "a payment that ended is in the history, and no other": [
        f"DELETE FROM transactions_transaction WHERE payment_id = {PAID}",
        f"DELETE FROM transactions_transaction WHERE payment_id = {FAILED}",
        f"UPDATE transactions_transaction SET amount = amount + 1 WHERE {PAYS}",
        f"UPDATE transactions_transaction SET status = 'refunded' WHERE {PAYS}",
        f"UPDATE transactions_transaction SET merchant_id = 'mch_other' WHERE {PAYS}",
        f"UPDATE payments_payment SET amount_received = amount - 1 WHERE id = {PAID}",
        """INSERT INTO transactions_transaction
               (id, merchant_id, payment_id, type, status, amount, currency, created_at)
           SELECT 'txn_x', merchant_id, id, 'payment', 'succeeded', amount, 'THB', now()
           FROM payments_payment WHERE status = 'pending' LIMIT 1""",
    ],
    "a payment that succeeded is posted, and no other": [
        lose_posting("payment"),
        f"UPDATE transactions_entry SET account_id = 'bank:x' WHERE journal_id = {JOURNAL} AND amount < 0",
        f"UPDATE transactions_journal SET subject_id = {FAILED} WHERE id = {JOURNAL}",
    ],
    "merchants are told of each payment as its status says": [
        lose_event("payment.pending"),
        lose_event("payment.succeeded"),
        lose_event("payment.failed"),
        repeat_event("payment.pending"),
        repeat_event("payment.succeeded"),
        repeat_event("payment.failed"),
        f"UPDATE webhooks_event SET merchant_id = 'mch_other' WHERE id = {EVENT.format('payment.failed')}",
        f"UPDATE webhooks_event SET type = 'payment.failed' WHERE id = {EVENT.format('payment.pending')}",
    ],
    "a code's payment succeeded by the one receipt that was applied to it": [
        "DELETE FROM receipts_receipt WHERE outcome = 'applied'",
        "UPDATE receipts_receipt SET amount = amount - 1 WHERE outcome = 'applied'",
        "UPDATE receipts_receipt SET paid_at = paid_at - interval '1 hour' WHERE outcome = 'applied'",
        "UPDATE receipts_receipt SET payment_id = NULL WHERE outcome = 'applied'",
        "UPDATE receipts_receipt SET outcome = 'late' WHERE outcome = 'applied'",
    ],
    "a code's payment failed by a receipt that declines it": [
        "UPDATE receipts_receipt SET outcome = 'unmatched' WHERE outcome = 'declined'"
    ],
    "a card's payment is as far as its charge": [
        "UPDATE payments_cardcharge SET state = 'ended', ended_at = now() WHERE state = 'waiting'",
        "UPDATE payments_cardcharge SET state = 'waiting', ended_at = NULL WHERE state = 'ended'",
        "DELETE FROM payments_cardcharge WHERE state = 'asked'",
    ],
    "a payment counts its refunds, and is refunded when all of it went back": [
        "UPDATE payments_payment SET amount_refunding = amount_refunding - 1 WHERE amount_refunding > 0",
        """UPDATE payments_payment SET amount_refunded = amount_refunded - 1
           WHERE amount_refunded > 0 AND status = 'succeeded'""",
        f"UPDATE payments_payment SET amount_refunding = 1 WHERE id = {PAID}",
        "UPDATE payments_payment SET status = 'succeeded' WHERE status = 'refunded'",
    ],
    "the tallies and what is uncounted are what the history has": [
        "DELETE FROM transactions_uncounted",
        """INSERT INTO transactions_tally (merchant_id, span, begins_at, type, status, count)
           VALUES ('mch_x', 'day', now(), 'payment', 'succeeded', 1)""",
    ],
    "a refund is in the history": [
        "DELETE FROM transactions_transaction WHERE type = 'refund'",
        "UPDATE transactions_transaction SET amount = amount - 1 WHERE type = 'refund'",
        "UPDATE transactions_transaction SET status = 'failed' WHERE type = 'refund' AND status = 'pending'",
    ],
    "a refund is posted as its status says": [
        lose_posting("refund_reserved"),
        lose_posting("refund_paid"),
        lose_posting("refund_released"),
        f"UPDATE refunds_refund SET route = 'bank:other' WHERE id = {COMPLETED}",
        "UPDATE refunds_refund SET returned_at = NULL WHERE returned_at IS NOT NULL",
        f"UPDATE refunds_refund SET status = 'canceled', completed_at = NULL WHERE id = {COMPLETED}",
    ],
    "merchants are told how each refund ended": [
        lose_event("refund.completed"),
        lose_event("refund.failed"),
        repeat_event("refund.completed"),
    ],
    "a withdrawal is posted as its status says": [
        lose_posting("withdrawal_reserved"),
        lose_posting("withdrawal_paid"),
        lose_posting("withdrawal_released"),
        lose_posting("withdrawal_returned"),
        f"UPDATE withdrawals_withdrawal SET amount = amount - 1 WHERE id = {SENT}",
        f"UPDATE withdrawals_withdrawal SET status = 'processing', completed_at = NULL WHERE id = {SENT}",
    ],
    "merchants are told of each step of a withdrawal": [
        lose_event("withdrawal.pending"),
        lose_event("withdrawal.processed"),
        lose_event("withdrawal.succeeded"),
        lose_event("withdrawal.failed"),
        repeat_event("withdrawal.processed"),
    ],
    "what is reserved is what refunds and withdrawals under way need": [
        "UPDATE transactions_account SET settled = settled + 1 WHERE kind = 'reserved'",
        "UPDATE refunds_refund SET amount = amount + 1 WHERE status = 'pending'",
    ],
    "the order to a bank is as far as its refund or withdrawal": [
        "DELETE FROM transfers_transfer WHERE state = 'queued'",
        "UPDATE transfers_transfer SET amount = amount + 1",
        "UPDATE transfers_transfer SET state = 'told', ended_at = NULL WHERE state = 'succeeded'",
        """UPDATE transfers_transfer SET state = 'told', told_at = now()
           WHERE state = 'queued' AND purpose = 'withdrawal'""",
    ],
}  # fmt: skip


def test_each_lie_is_found_and_named(town: Counter, subtests: pytest.Subtests) -> None:
    for rule, sql in [(rule, sql) for rule, lies in LIES.items() for sql in lies]:
        with subtests.test(rule, sql=sql), taken_back():
            damage(sql)
            assert rule in {difference.rule for difference in wrong()}
    assert not wrong()


def test_each_rule_has_a_lie_that_it_finds() -> None:
    assert [rule.name for rule in checking.RULES] == list(LIES)


def audit() -> tuple[str, str]:
    """Runs the command; what it prints and the error it ends with, if any."""
    output, complaint = io.StringIO(), io.StringIO()
    try:
        call_command("audit", stdout=output, stderr=complaint)
    except CommandError as error:
        assert error.returncode == 1
        return output.getvalue(), complaint.getvalue() + str(error)
    return output.getvalue(), complaint.getvalue()


@pytest.mark.django_db(transaction=True)
def test_the_command_says_in_one_line_that_the_books_are_right(counter: Counter) -> None:
    counter.paid()
    assert audit() == (f"The books are right: {len(checking.RULES)} rules hold.\n", "")


@pytest.mark.django_db(transaction=True)
def test_the_command_prints_each_difference_and_fails(counter: Counter) -> None:
    payment_id = counter.paid()
    with transaction.atomic():
        damage("UPDATE transactions_transaction SET amount = 1")
        damage("UPDATE transactions_account SET settled = 7 WHERE kind = 'reserved'")
    printed, complaint = audit()
    assert complaint == "The books are wrong. Differences: 4."
    merchant_id = counter.shop.merchant.id
    assert (
        f"a payment that ended is in the history, and no other: {payment_id} payment: "
        f"expected succeeded 150000 THB {merchant_id}, found succeeded 1 THB {merchant_id}\n"
    ) in printed
    assert len(printed.splitlines()) == 4


@pytest.mark.django_db(transaction=True)
def test_the_command_reads_one_moment_and_changes_nothing(counter: Counter) -> None:
    with checking.snapshot(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')"
        )
        assert cursor.fetchone() == ("repeatable read", "on")


@pytest.mark.django_db(transaction=True)
def test_an_order_that_no_bank_answers_is_a_warning_and_no_difference(
    counter: Counter, served_by: Serving
) -> None:
    audit_cast.begin_withdrawals(counter, served_by)
    assert audit()[1] == ""
    with time_machine.travel(clock.now() + checking.LONG + timedelta(minutes=1)):
        printed, complaint = audit()
    assert printed.startswith("The books are right")
    assert len(complaint.splitlines()) == 3
    assert "Ask the bank" in complaint


def test_what_it_says_of_wrong_books_names_no_person_and_no_account(town: Counter) -> None:
    for table in ("transactions_transaction", "transfers_transfer", "receipts_receipt", "transactions_entry"):
        damage(f"UPDATE {table} SET amount = amount + 1 WHERE amount > 0")
    said = json.dumps([str(difference) for difference in wrong()], ensure_ascii=False)
    assert len(said) > 10_000
    for secret in ("Somchai", "Jaidee", "สมชาย", "1234567890", "4051234567", town.shop.secret_key):
        assert secret not in said
