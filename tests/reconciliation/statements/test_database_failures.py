"""An import limits its waits for locks and for the server, also for each line alone."""

import socket
from functools import partial

import pytest
from django.db import connection

from core import clock
from core.database import rows
from payments.models import Payment
from reconciliation.matching import services as matching
from reconciliation.models import BankTransaction, Statement
from reconciliation.statements import importing
from tests.concurrency import run_concurrently
from tests.reconciliation.matching.test_applying_after_crash import held
from tests.reconciliation.statements.statement_files import bot_file, import_file, open_shop_with_biller
from tests.reconciliation.statements.test_lost_callbacks import create_sale
from tests.sqlstates import setting
from tests.stack import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("audit_is_clean"),
    pytest.mark.logs_errors,
]
COUNT = 8
WAITERS = "FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
ALONE, TOGETHER = "could not be applied", "are left to the sweep"


def test_import_waits_once_for_a_locked_payment(caplog: pytest.LogCaptureFixture) -> None:
    shop = open_shop_with_biller("Busy")
    sales = [create_sale(shop, "plain") for _ in range(COUNT)]
    rows.run("SET lock_timeout = '100ms'", [])
    try:
        with held("payments_payment", sales[3][0]):
            summary = import_file(bot_file(*(line for _, line in sales)))
    finally:
        connection.close()
    assert summary.is_clean
    assert (caplog.text.count(TOGETHER), caplog.text.count(ALONE)) == (1, 0)
    sweep_finds_all()


def test_import_continues_after_a_broken_connection(caplog: pytest.LogCaptureFixture) -> None:
    shop = open_shop_with_biller("Busy")
    sales = [create_sale(shop, "plain") for _ in range(COUNT)]
    with held("payments_payment", sales[3][0]):
        run_concurrently(partial(import_file, bot_file(*(line for _, line in sales))), break_who_waits)
    assert Statement.objects.get().completed_at
    assert (caplog.text.count("The database is away"), caplog.text.count(ALONE)) == (1, 0)
    sweep_finds_all()


def test_limited_number_of_failed_lines_of_a_batch_is_retried_singly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shop = open_shop_with_biller("Busy")
    sales = [create_sale(shop, "by somebody else") for _ in range(COUNT)]
    sealed = dict(Payment.objects.values_list("id", "client_bank_account_sealed"))
    with setting("resealing"):
        Payment.objects.update(client_bank_account_sealed="sealed: as if its key were lost")
    import_file(bot_file(*(line for _, line in sales)))
    assert caplog.text.count(ALONE) == importing.MAX_FAILURES
    for payment_id, token in sealed.items():
        with setting("resealing"):
            Payment.objects.filter(pk=payment_id).update(client_bank_account_sealed=token)
    sweep_finds_all()


def test_silent_database_server_times_out(db: None) -> None:
    connection.ensure_connection()
    with socket.socket(fileno=connection.connection.pgconn.socket) as wire:
        asks = wire.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        gives_up = wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
        wire.detach()
    assert (asks, gives_up) == (1, 30_000)
    for limit in ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"):
        assert rows.run(f"SHOW {limit}", []).fetchone() != ("0",)


def break_who_waits() -> None:
    wait_until(lambda: rows.run(f"SELECT count(*) {WAITERS}", []).fetchone() == (1,), 60)
    rows.run(f"SELECT pg_terminate_backend(pid) {WAITERS}", [])


def sweep_finds_all() -> None:
    matching.apply_unapplied(now=clock.now() + matching.UNAPPLIED_AFTER * 2)
    assert set(Payment.objects.values_list("status", flat=True)) == {"succeeded"}
    assert not BankTransaction.objects.not_matched().exists()
