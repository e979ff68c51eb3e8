"""An import waits for nothing without a limit: not for a lock, not for a server, not for each line again."""

import socket
from functools import partial

import pytest
from django.db import connection

from core import clock, rows
from payments.models import Payment
from receipts import services
from receipts.models import Receipt, Statement
from receipts.statements import judging
from tests.receipts.statements.cast import bot, load, open_billed
from tests.receipts.statements.test_lost_callbacks import sold
from tests.receipts.test_left_over import held
from tests.stack import wait_until
from tests.threads import at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("books_are_right")]
COUNT = 8
WAITERS = "FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
ALONE, TOGETHER = "could not be applied", "are left to the sweep"


def test_a_payment_that_somebody_keeps_locked_is_waited_for_once(caplog: pytest.LogCaptureFixture) -> None:
    shop = open_billed("Busy")
    sales = [sold(shop, "plain") for _ in range(COUNT)]
    rows.run("SET lock_timeout = '100ms'", [])
    try:
        with held("payments_payment", sales[3][0]):
            summary = load(bot(*(line for _, line in sales)))
    finally:
        connection.close()
    assert summary.is_clean
    assert (caplog.text.count(TOGETHER), caplog.text.count(ALONE)) == (1, 0)
    sweep_finds_all()


def test_an_import_whose_connection_breaks_while_it_judges_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    shop = open_billed("Busy")
    sales = [sold(shop, "plain") for _ in range(COUNT)]
    with held("payments_payment", sales[3][0]):
        at_once(partial(load, bot(*(line for _, line in sales))), break_who_waits)
    assert Statement.objects.get().ended_at
    assert (caplog.text.count("The database is away"), caplog.text.count(ALONE)) == (1, 0)
    sweep_finds_all()


def test_few_of_many_that_cannot_be_written_are_tried_alone(caplog: pytest.LogCaptureFixture) -> None:
    shop = open_billed("Busy")
    sales = [sold(shop, "by somebody else") for _ in range(COUNT)]
    sealed = dict(Payment.objects.values_list("id", "client_bank_account_sealed"))
    Payment.objects.update(client_bank_account_sealed="as if its key were lost")
    load(bot(*(line for _, line in sales)))
    assert caplog.text.count(ALONE) == judging.MOST_FAILURES
    for payment_id, token in sealed.items():
        Payment.objects.filter(pk=payment_id).update(client_bank_account_sealed=token)
    sweep_finds_all()


def test_a_server_that_says_nothing_is_waited_for_with_a_limit(db: None) -> None:
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
    services.apply_left(now=clock.now() + services.LEFT_OVER * 2)
    assert set(Payment.objects.values_list("status", flat=True)) == {"succeeded"}
    assert not Receipt.objects.not_judged().exists()
