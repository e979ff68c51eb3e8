"""The audit finds no difference after each scenario, and finds each kind of tampering."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from pytest_django import Settings

from banks import ReportedTransfer
from core import clock, digests
from core.database import rows
from ledger import services as ledger
from operations.audit import contents, runner
from payments.payers import Payer
from reconciliation.inquiries import confirmation_inquiries
from reconciliation.matching import order_completion
from reconciliation.models import BankNotification, BankTransaction
from tests.approvals.builders import add_payout_account
from tests.audit import RULES, differences
from tests.conftest import SandboxBankClient, Shop
from tests.counts.closing import close_future
from tests.operations.audit import scenarios
from tests.operations.audit.changeable_columns import check_changeable_columns
from tests.operations.audit.scenarios import SCENARIOS, Serving, check_constraints_now
from tests.operations.audit.tampering import CONTENT_TAMPERINGS, TAMPERINGS
from tests.reconciliation.builders import Seller, decide, parse
from tests.reconciliation.statements.statement_files import bot_file, credit_line, import_file
from tests.refunds.builders import NOBODY, RefundShop, send_due_refunds
from tests.settlements.conftest import ReportingAcquirer

pytestmark = pytest.mark.slow


@pytest.fixture
def seller(shop: Shop, bank: SandboxBankClient) -> Seller:
    return Seller(shop, bank)


def wrong() -> list[runner.Difference]:
    return list(runner.differences())


def damage(sql: str) -> None:
    """Change rows without triggers, as only the owner of the server can."""
    check_constraints_now()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(sql)
        cursor.execute("SET LOCAL session_replication_role = origin")


@contextmanager
def taken_back() -> Iterator[None]:
    """Roll back the block."""
    mark = transaction.savepoint()
    try:
        yield
    finally:
        transaction.savepoint_rollback(mark)


def test_audit_of_empty_database_finds_nothing(db: None) -> None:
    assert not wrong()


def test_audit_finds_each_tampering_and_nothing_after_each_scenario(
    refund_shop: RefundShop,
    served_by: Serving,
    acquirer: ReportingAcquirer,
    settings: Settings,
    subtests: pytest.Subtests,
) -> None:
    """One test, because to run all scenarios takes 10 s."""
    for scenario in SCENARIOS:
        with subtests.test(scenario.__name__):
            scenario(refund_shop, served_by)
            assert not differences()
    scenarios.settle_cards(refund_shop, served_by, acquirer)
    scenarios.fail_transfer(refund_shop, served_by, acquirer)
    scenarios.void_card(refund_shop, served_by, acquirer)
    assert not differences()
    scenarios.request_approvals(refund_shop, served_by, settings)
    add_payout_account(refund_shop.shop)
    check_constraints_now()
    assert not wrong()
    with subtests.test("columns that the application changes"), taken_back():
        check_changeable_columns()
    for rule, sql in [(each, sql) for each in RULES for sql in TAMPERINGS[each.name]]:
        with subtests.test(rule.name, sql=sql), taken_back():
            damage(sql)
            assert rows.run(rule.sql, []).fetchone()
    assert not list(contents.findings())
    for tampering in CONTENT_TAMPERINGS:
        sql = tampering if isinstance(tampering, str) else tampering()
        with subtests.test("contents", sql=sql), taken_back():
            damage(sql)
            assert list(contents.findings())
    with subtests.test("no names or account numbers in the output"), taken_back():
        check_that_output_has_no_secrets(refund_shop.shop.secret_key)
    assert not wrong()
    ledger.roll_up_due(now=clock.now())
    assert not wrong()


def check_that_output_has_no_secrets(secret_key: str) -> None:
    for table in (
        "transactions_transaction",
        "transfers_transfer",
        "reconciliation_banktransaction",
        "ledger_entry",
    ):
        damage(f"UPDATE {table} SET amount = amount + 1 WHERE amount > 0")
    output = json.dumps([str(difference) for difference in wrong()], ensure_ascii=False)
    assert len(output) > 10_000
    for secret in ("Somchai", "Jaidee", "สมชาย", "1234567890", "4051234567", secret_key):
        assert secret not in output


def test_audit_names_a_payer_whom_no_message_of_the_bank_names(refund_shop: RefundShop) -> None:
    filled = BankTransaction.objects.get(payment_id=refund_shop.paid(payer=NOBODY))
    late = BankTransaction.objects.get(
        payment_id=refund_shop.paid(payer=Payer("Somchai", "004", "4051234567"))
    )
    assert late.payer_account
    assert not list(contents.findings())
    sealed = digests.seal("4051234567", context=filled.id)
    filled.set_fields(
        payer_bank_code="014", payer_account_sealed=sealed.token, payer_account_digest=sealed.digest
    )
    assert [row_id for row_id, _ in contents.findings()] == [filled.id]


def test_every_audit_rule_has_a_tampering_test() -> None:
    assert [rule.name for rule in RULES] == list(TAMPERINGS)


def audit() -> tuple[str, str]:
    """Run the command; return its output, and its warnings and error."""
    output, error_output = io.StringIO(), io.StringIO()
    try:
        call_command("audit", stdout=output, stderr=error_output)
    except CommandError as error:
        assert error.returncode == 1
        return output.getvalue(), error_output.getvalue() + str(error)
    return output.getvalue(), error_output.getvalue()


@pytest.mark.django_db(transaction=True)
def test_audit_command_prints_one_line_if_nothing_differs(refund_shop: RefundShop) -> None:
    refund_shop.paid()
    books = f"The books are right: {len(runner.RULES)} rules hold.\n"
    assert audit() == (f"{books}The audit trail is complete. Its newest link: 0:\n", "")


@pytest.mark.django_db(transaction=True)
def test_audit_command_prints_each_difference_and_fails(refund_shop: RefundShop) -> None:
    payment_id = refund_shop.paid()
    with transaction.atomic():
        damage("UPDATE transactions_transaction SET amount = 1")
        damage("UPDATE ledger_account SET rolled_up_balance = 7 WHERE type = 'reserved'")
    printed, error_output = audit()
    assert error_output == "The books are wrong. Differences: 4."
    merchant_id = refund_shop.shop.merchant.id
    assert (
        f"each ended payment, and no other, has its transaction: {payment_id} payment: "
        f"expected succeeded 150000 THB {merchant_id}, found succeeded 1 THB {merchant_id}\n"
    ) in printed
    assert len(printed.splitlines()) == 4


@pytest.mark.django_db(transaction=True)
def test_audit_command_uses_read_only_snapshot(refund_shop: RefundShop) -> None:
    with runner.snapshot(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')"
        )
        assert cursor.fetchone() == ("repeatable read", "on")


def test_audit_names_each_deleted_message_of_a_bank(seller: Seller, served_by: Serving) -> None:
    """The owner of the server may delete a message without triggers. Nothing else may name it."""
    code, now = seller.shop.qr_code(), clock.now()
    report, order = seller.bank.notification(code), seller.refund(seller.paid())["refund_id"]
    for message in (report, report, report | {"amount": "1.00"}, {"amount": "unreadable"}):
        assert seller.bank.post(message).status_code == 200
    served_by(sends=[scenarios.UNKNOWN], inquiries=[scenarios.UNKNOWN])
    send_due_refunds()
    for state in ("succeeded", "succeeded", "failed"):
        told = ReportedTransfer(order, state)
        order_completion.accept_notification(bank="sandbox", body=b"{}", notification=told, now=now)
    unsigned = parse(seller.bank.notification(seller.shop.qr_code()))
    confirmation_inquiries.receive_unsigned(bank="sandbox", body=b"{}", notification=unsigned, now=now)
    import_file(bot_file(b"?"))
    kept = BankNotification.objects.values_list("id", "source", "result", "order_id", "bank_transaction_id")
    assert {(source, result, bool(order)) for _, source, result, order, _ in kept} == {
        ("callback", "new", False), ("callback", "repeat", False), ("callback", "conflict", False),
        ("callback", "unreadable", False), ("callback", "unsigned", False), ("callback", "new", True),
        ("callback", "repeat", True), ("callback", "conflict", True), ("statement", "unreadable", False),
    }  # fmt: skip
    assert not wrong()
    for notification_id, source, result, _, made in kept:
        missed = runner.Difference("each message of a bank is kept", notification_id, "kept", "nothing")
        if made and result == "new":
            rule = "each bank transaction has the message or the line that reported it"
            missed = runner.Difference(rule, made, source, "nothing")
        with taken_back():
            damage(f"DELETE FROM reconciliation_banknotification WHERE id = '{notification_id}'")
            assert missed in wrong()


@pytest.mark.parametrize("kind", ["decline", "reversal"])
def test_audit_names_the_deleted_message_of_a_deleted_bank_transaction(seller: Seller, kind: str) -> None:
    """No posting names a decline, or a reversal without its credit."""
    made, message = seller.report(seller.shop.qr_code(), type=kind), BankNotification.objects.get()
    assert not wrong()
    damage(
        f"""DELETE FROM reconciliation_banknotification WHERE id = '{message.id}';
        DELETE FROM reconciliation_banktransaction WHERE id = '{made.id}'"""
    )
    assert runner.Difference("each message of a bank is kept", message.id, "kept", "nothing") in wrong()


@pytest.mark.django_db(transaction=True)
def test_overdue_transfer_is_an_audit_warning(refund_shop: RefundShop, served_by: Serving) -> None:
    scenarios.begin_withdrawals(refund_shop, served_by)
    assert audit()[1] == ""
    with time_machine.travel(clock.now() + runner.OVERDUE_AFTER + timedelta(minutes=1)):
        printed, error_output = audit()
    assert printed.startswith("The books are right")
    assert len(error_output.splitlines()) == 3
    assert "Ask the bank" in error_output


@pytest.mark.django_db(transaction=True)
def test_statement_of_a_part_of_the_day_is_an_audit_warning(seller: Seller) -> None:
    """A code was paid twice, staff sent the second money back, and the file has one of the two lines."""
    now = clock.now().replace(microsecond=0)
    code = replace(seller.shop, codes_made_at=now - timedelta(minutes=3)).qr_code()
    times = [now - timedelta(minutes=n) for n in (2, 1)]
    paid, again = (seller.report(code, paid_at=at) for at in times)
    decide("send_back", again)
    lines = [credit_line(code, at, seq=f"00000{n}") for n, at in enumerate(times, 2)]
    import_file(bot_file(lines[0]))
    printed, warned = audit()
    assert printed.startswith("The books are right")
    advice, _, found = warned.partition(": ")
    assert advice == "Import the whole statement of the day, or ask the bank"
    assert found == f"{again.id} is sending_back, probably the same as {paid.id}\n"
    import_file(bot_file(*lines))
    assert audit()[1] == ""


def test_audit_compares_list_counts(refund_shop: RefundShop) -> None:
    close_future()
    refund_shop.paid()
    assert not differences()
    damage("DELETE FROM counts_countdelta")
    assert "list counts match the rows" in differences()[0]
