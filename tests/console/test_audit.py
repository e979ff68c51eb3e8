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
from core import clock, rows
from tests.audit import differences
from tests.conftest import BankCaller, Shop
from tests.console import audit_cast
from tests.console.audit_cast import LIVES, Serving
from tests.console.lies import LIES
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


def test_each_lie_is_found_and_named(town: Counter, subtests: pytest.Subtests) -> None:
    for rule, sql in [(each, sql) for each in checking.RULES for sql in LIES[each.name]]:
        with subtests.test(rule.name, sql=sql), taken_back():
            damage(sql)
            assert rows.run(rule.sql, []).fetchone()
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


def test_it_is_asked_for_after_other_tests(counter: Counter) -> None:
    counter.paid()
    assert not differences()
    damage("DELETE FROM transactions_uncounted")
    assert "the tallies and what is uncounted are what the history has" in differences()[0]
