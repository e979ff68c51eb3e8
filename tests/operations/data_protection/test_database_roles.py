"""What the roles of the database may do, asked of PostgreSQL itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from config import checks
from config.deployment import postgresql
from config.deployment.findings import Level
from core.database.roles import APPLICATION, REPORTS
from counts import counting
from operations.data_protection import database_roles
from tests.conftest import Shop
from tests.factories import TransactionFactory
from tests.ledger.builders import MerchantLedger
from tests.sqlstates import CHECK_VIOLATION, NOT_ALLOWED, sqlstate, within_a_trigger

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
# Rows are only added. If a table leaves this list, its history can be changed.
ADDED_ONLY = {
    "audit_trail_auditrecord", "audit_trail_chainlink", "ledger_balancetransaction", "ledger_entry",
    "ledger_journal", "operations_dailyclose", "operations_evidenceseal", "operations_monthclose",
    "operations_proofday",
    "payments_chargeanswer", "links_linkcode", "payments_feeterms",
    "reconciliation_notificationid", "reconciliation_resolution",
    "refunds_claimtry",
    "transfers_transfercontradiction", "transfers_transferevent", "webhooks_endpointaction",
    "webhooks_event", "webhooks_feedblock", "withdrawals_payoutnight",
}  # fmt: skip
# The application writes rows only through triggers, which have the rights of the owner.
WRITTEN_BY_TRIGGERS = {
    "counts_countdelta", "counts_listcount", "counts_openperiod", "webhooks_feedblock",
    "webhooks_unnumberedevent",
}  # fmt: skip
# Rows change by their rules and are never deleted.
KEPT = {
    "audit_trail_note", "counts_countclock", "links_paymentlink", "qrcodes_qrcode",
    "approvals_approval", "approvals_payoutaccount", "approvals_payoutpolicy", "ledger_account",
    "merchants_apikey", "merchants_merchant", "operations_paymentevidence",
    "reconciliation_banknotification", "reconciliation_banktransaction", "reconciliation_excess",
    "reconciliation_inquiryanswer", "reconciliation_return", "reconciliation_statement",
    "refunds_claimlink", "refunds_refund", "refunds_refundreversal",
    "settlements_acquirertransfer", "settlements_openquestion", "settlements_settleditem",
    "settlements_settlement", "shop_membership",
    "transactions_transaction", "transfers_safemode", "transfers_transfer", "webhooks_endpoint",
    "withdrawals_payoutschedule", "withdrawals_withdrawal",
}  # fmt: skip
# They have no model.
READ_ONLY = {"django_migrations"}
# Words in the names of columns that prove or open something.
SECRET_WORDS = ("password", "secret", "sealed", "digest", "session", "token", "fingerprint")


@pytest.fixture(autouse=True)
def granted() -> None:
    call_command("database_roles", stdout=StringIO())


@contextmanager
def acting_as(role: str) -> Iterator[None]:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL ROLE {role}")
        yield
        cursor.execute("RESET ROLE")


def tables_without(privilege: str) -> set[str]:
    """The tables of which the application lacks a privilege, apart from those that it only reads."""
    return {table for table in database_roles.tables() if not may(privilege, table)} - READ_ONLY


def may(privilege: str, table: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT has_table_privilege(%s, %s, %s)", [APPLICATION, table, privilege])
        return bool(cursor.fetchone()[0])


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def test_application_can_neither_update_nor_delete_rows_that_are_only_added() -> None:
    assert tables_without("UPDATE") == ADDED_ONLY | WRITTEN_BY_TRIGGERS | {
        "ledger_pendingentry",
        "reconciliation_slipcheck",
    }
    queues = {"counts_countdelta", "webhooks_unnumberedevent"}
    assert tables_without("DELETE") == ADDED_ONLY | KEPT | WRITTEN_BY_TRIGGERS - queues


def test_application_changes_counts_only_by_the_rows_that_are_counted(shop: Shop, noon: datetime) -> None:
    """Also not by a trigger of a temporary table, or by our functions as its triggers."""
    with acting_as(APPLICATION):
        TransactionFactory(merchant=shop.merchant, created_at=noon)
        counting.roll_up()
        TransactionFactory(merchant=shop.merchant)
        for attack in (
            "UPDATE counts_listcount SET count = count + 1",
            "UPDATE counts_countdelta SET delta = delta + 1",
            "DELETE FROM counts_listcount",
            "DELETE FROM counts_openperiod",
            "DELETE FROM counts_countclock",
            """INSERT INTO counts_countdelta (list, owner_id, kind, period, delta)
               SELECT list, owner_id, kind, starts_at, 1 FROM counts_listcount""",
        ):
            assert sqlstate(within_a_trigger(attack)) == NOT_ALLOWED, attack
        made = (
            "CREATE TEMPORARY TABLE fake (LIKE transactions_transaction) ON COMMIT DROP; CREATE TRIGGER one "
        )
        made += "AFTER INSERT ON fake REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION "
        assert sqlstate(made + "counts_change_transactions()") == NOT_ALLOWED
    with connection.cursor() as cursor:
        cursor.execute("SELECT sum(count) FROM counts_listcount WHERE bucket = 'minute'")
        assert cursor.fetchone() == (1,)


def test_application_changes_balances_only_by_entries(shop: Shop) -> None:
    """Also not the total that balances are compared with, or by our functions as triggers of its own."""
    MerchantLedger(shop.merchant.id).credit(100)
    richer = "UPDATE ledger_account SET rolled_up_balance = rolled_up_balance + 1 WHERE type = 'available'"
    total = richer.replace("rolled_up_balance", "entries_total")
    with acting_as(APPLICATION):
        MerchantLedger(shop.merchant.id).reserve(30)
        assert sqlstate(f"{richer}; SET CONSTRAINTS ALL IMMEDIATE") == CHECK_VIOLATION
        assert sqlstate(total) == sqlstate(within_a_trigger(total)) == NOT_ALLOWED
        for name, rows in (("ledger_add_to_total", ""), ("ledger_roll_up", "REFERENCING OLD TABLE AS gone")):
            made = f"""CREATE TEMPORARY TABLE fake (LIKE ledger_entry) ON COMMIT DROP;
                CREATE TRIGGER one AFTER DELETE ON fake {rows} FOR EACH STATEMENT EXECUTE FUNCTION {name}()"""
            assert sqlstate(made) == NOT_ALLOWED, name
    assert MerchantLedger(shop.merchant.id).balance() == (70, 30, 0)


def test_application_changes_no_metadata_by_a_temporary_type(shop: Shop) -> None:
    """PostgreSQL looks types up in the temporary schema first."""
    shop.qr_code(metadata={"order": "1"})
    with acting_as(APPLICATION):
        attack = "CREATE DOMAIN pg_temp.text AS varchar(1); DISCARD PLANS; "
        assert (
            sqlstate(attack + """UPDATE payments_payment SET metadata = '{"order":"2"}'""") == CHECK_VIOLATION
        )


def test_application_reads_and_adds_to_every_table_and_truncates_none() -> None:
    assert tables_without("SELECT") == set()
    assert tables_without("INSERT") == WRITTEN_BY_TRIGGERS
    assert tables_without("TRUNCATE") == set(database_roles.tables()) - READ_ONLY


def test_application_has_no_ddl() -> None:
    for statement in (
        "CREATE TABLE mine (id int)",
        "ALTER TABLE ledger_entry DISABLE TRIGGER ALL",
        "DROP TABLE ledger_entry",
        "TRUNCATE payments_payment",
        "SET session_replication_role = replica",
        "CREATE OR REPLACE FUNCTION ledger_of_mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "UPDATE ledger_entry SET amount = 1",
        "INSERT INTO django_migrations (app, name, applied) VALUES ('a', 'b', now())",
    ):
        with acting_as(APPLICATION):
            assert sqlstate(statement) == NOT_ALLOWED, statement


def test_reports_read_every_table_without_secrets_and_change_nothing() -> None:
    readable = columns_of(REPORTS)
    assert not {column for column in readable if any(word in column for word in SECRET_WORDS)}
    hidden = {*database_roles.HIDDEN_TABLES, *READ_ONLY}
    assert {column.partition(".")[0] for column in readable} == {*database_roles.tables()} - hidden
    with acting_as(REPORTS):
        assert sqlstate("SELECT id, amount, status FROM payments_payment") is None
        for statement in (
            "SELECT password FROM auth_user",
            "SELECT data FROM mfa_authenticator",
            "SELECT session_data FROM django_session",
            "UPDATE payments_payment SET status = 'succeeded'",
            "INSERT INTO django_content_type (app_label, model) VALUES ('a', 'b')",
            "DELETE FROM webhooks_delivery",
        ):
            assert sqlstate(statement) == NOT_ALLOWED, statement


def columns_of(role: str) -> set[str]:
    """The columns that a role may read, such as `payments_payment.amount`."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT table_name || '.' || column_name FROM information_schema.columns
               WHERE table_schema = 'public'
                   AND has_column_privilege(%s, table_name, column_name, 'SELECT')""",
            [role],
        )
        return {column for (column,) in cursor.fetchall()}


def test_grants_are_the_same_when_they_are_repeated() -> None:
    def grants() -> list[tuple[object, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT relname, relacl::text FROM pg_class WHERE relkind IN ('r', 'S', 'p') ORDER BY 1"
            )
            return list(cursor.fetchall())

    before = grants()
    database_roles.grant()
    assert grants() == before


def refusals() -> list[str]:
    """Why no process starts."""
    found = checks.usable_database(None, databases=["default"])
    return [str(error.msg) for error in found if error.id == "qr.E074"]


def test_member_lacks_nothing_and_another_role_is_named_with_what_it_lacks() -> None:
    with acting_as(APPLICATION):
        assert (database_roles.find_missing(), refusals()) == (None, [])
    with acting_as(REPORTS):
        missing, refused = database_roles.find_missing(), refusals()
    assert missing is not None
    assert missing.found.startswith(f"{REPORTS} lacks ")
    assert f"GRANT {APPLICATION} TO {REPORTS}" in missing.advice
    assert refused == [missing.found]


def test_missing_right_to_write_is_a_warning_and_processes_start() -> None:
    execute(f"REVOKE INSERT ON ledger_entry FROM {APPLICATION}")
    with acting_as(APPLICATION):
        rights = postgresql.rights()
        assert (rights.level, refusals()) == (Level.WARNING, [])
    assert rights.found == f"{APPLICATION} lacks rights to tables (1), such as ledger_entry: INSERT"


def test_tables_of_another_release_keep_their_rights() -> None:
    execute("CREATE TABLE of_the_old_release (id int)")
    execute("CREATE TABLE of_nobody (id int)")
    execute(f"GRANT SELECT, INSERT, TRUNCATE ON of_the_old_release TO {APPLICATION}")
    execute(f"GRANT INSERT ON django_migrations TO {APPLICATION}")
    database_roles.grant()
    without_insert = {*READ_ONLY, *WRITTEN_BY_TRIGGERS, "of_nobody"}
    assert {each for each in database_roles.tables() if not may("INSERT", each)} == without_insert
    assert not [each for each in database_roles.tables() if not may("SELECT", each)]
    assert not may("UPDATE", "of_the_old_release")
    assert not may("TRUNCATE", "of_the_old_release")


def test_printed_sql_is_what_the_command_runs() -> None:
    printed = call_command("database_roles", "--print", stdout=StringIO())
    assert f'GRANT SELECT, INSERT ON "ledger_entry" TO {APPLICATION}' in printed
    with connection.cursor() as cursor:
        cursor.execute(printed)
