"""What processes measure and report, and the cost and the deadline of a scrape."""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from prometheus_client import Metric
from pytest_django import Settings

from core import clock
from core.observing import measurements
from core.observing.measurements import Measurements
from operations.metrics import process_reports, view
from operations.models import ProcessReport
from tests.concurrency import without_database
from tests.conftest import Shop
from tests.operations.metrics.scraping import families, store_measurements, value

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

# Tables that grow with each payment. A scrape that reads one of them row by row takes longer every day.
LONG_TABLES = {
    "payments_payment", "payments_cardcharge", "qrcodes_qrcode", "ledger_entry", "ledger_journal",
    "transactions_transaction", "webhooks_event", "webhooks_delivery", "webhooks_deliveryattempt",
    "reconciliation_banktransaction", "reconciliation_banknotification", "reconciliation_inquiry",
    "reconciliation_notificationid",
    "reconciliation_inquiryanswer", "reconciliation_confirmationinquiry", "reconciliation_statementline",
    "refunds_refund", "withdrawals_withdrawal", "transfers_transfer", "transfers_transferevent",
    "approvals_approval", "audit_trail_auditrecord", "audit_trail_chainlink", "request_log_requestrecord",
}  # fmt: skip


def scanned_tables(plan: dict[str, Any]) -> set[str]:
    """The tables that a plan reads row by row."""
    own = {plan["Relation Name"]} if plan["Node Type"] == "Seq Scan" else set()
    return own.union(*(scanned_tables(part) for part in plan.get("Plans", [])))


def test_scrape_reads_no_long_table_row_by_row(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        with CaptureQueriesContext(connection) as captured:
            families()
        statements = [each["sql"] for each in captured if each["sql"].lstrip().startswith(("SELECT", "WITH"))]
        assert len(statements) > 20
        for statement in statements:
            cursor.execute("EXPLAIN (FORMAT JSON) " + statement.replace("%", "%%"))
            ((explained,),) = cursor.fetchall()
            assert not scanned_tables(explained[0]["Plan"]) & LONG_TABLES, statement


@pytest.mark.django_db(transaction=True)
def test_scrape_ends_at_its_deadline_if_the_database_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "READ_SECONDS", 0.5)
    connection.ensure_connection()
    backend = connection.connection.info.backend_pid
    os.kill(backend, signal.SIGSTOP)
    began = time.perf_counter()
    try:
        found = families()
    finally:
        os.kill(backend, signal.SIGCONT)
    assert time.perf_counter() - began < 5
    assert found["database_up"].samples[0].value == 0
    assert value("database_up") == value("metrics_complete") == 1


@pytest.mark.django_db(transaction=True)
def test_scrape_says_that_it_is_incomplete_if_a_statement_waits_for_a_lock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(view, "READ_SECONDS", 1)

    def scrape_while_locked() -> dict[str, Metric]:
        with ThreadPoolExecutor(1) as other:
            return other.submit(_families_and_disconnect).result()

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE payments_payment IN ACCESS EXCLUSIVE MODE")
        found = scrape_while_locked()
    assert found["database_up"].samples[0].value == 1
    assert found["metrics_complete"].samples[0].value == 0
    assert "transfers_overdue" in found and "payments_pending" not in found


def _families_and_disconnect() -> dict[str, Metric]:
    try:
        return families()
    finally:
        connection.close()


@pytest.fixture
def measured() -> Iterator[None]:
    """Begin without measurements of other tests."""
    measurements.OF_PROCESS.take()
    yield
    measurements.OF_PROCESS.take()


@pytest.mark.usefixtures("measured")
def test_requests_are_counted_by_route_method_and_status(shop: Shop) -> None:
    code = shop.qr_code()
    for path in (f"/Thai/v1/qr-codes/{code['qr_code_id']}", f"/v1/qr-codes/{code['qr_code_id']}"):
        assert shop.get(path).status_code == 200
    shop.get("/v1/qr-codes/qrc_unknown")
    for path in ("/nothing/here", "/v1/secret/123456"):
        shop.get(path)
    Client().generic("BREW", "/healthz")
    store_measurements()
    route = {"method": "GET", "route": "/v1/qr-codes/<str:qr_code_id>"}
    assert value("http_requests_total", **route, status="200") == 2
    assert value("http_requests_total", **route, status="404") == 1
    assert value("http_request_seconds_count", **route) == 3
    assert value("http_requests_total", method="GET", route="unknown", status="404") == 2
    assert value("http_requests_total", method="other", route="/healthz", status="405") == 1


@pytest.mark.usefixtures("measured")
def test_numbers_of_several_processes_are_added(db: None) -> None:
    for seconds in (0.004, 0.3, 20.0):
        measurements.OF_PROCESS.add(measurements.BANK_CALL, ("scb", "timeout"), seconds)
        store_measurements()
    assert value("bank_calls_total", bank="scb", result="timeout") == 3
    assert value("bank_call_seconds_bucket", bank="scb", le="0.005") == 1
    assert value("bank_call_seconds_bucket", bank="scb", le="0.5") == 2
    assert value("bank_call_seconds_bucket", bank="scb", le="+Inf") == 3
    assert value("bank_call_seconds_sum", bank="scb") == pytest.approx(20.304)


def test_no_measurement_is_lost_between_threads() -> None:
    found = Measurements()
    taken: list[int] = []

    def add() -> None:
        for _ in range(2_000):
            found.add("task", ("a", "success"), 0.01)

    def take() -> None:
        for _ in range(100):
            taken.extend(count for count, _ in found.take().values())

    with ThreadPoolExecutor(4) as threads:
        for each in [threads.submit(action) for action in (add, add, add, take)]:
            each.result()
    taken.extend(count for count, _ in found.take().values())
    assert sum(taken) == 6_000


@pytest.mark.usefixtures("measured")
@pytest.mark.django_db(transaction=True)
def test_process_reports_itself_until_it_ends() -> None:
    reporter = process_reports.Reporter("web-0")
    reporter.report()
    row = ProcessReport.objects.get()
    labels = {"host": row.host, "process": "web-0", "pid": str(os.getpid())}
    assert value("process_memory_bytes", **labels) > 10_000_000
    assert 0 < value("process_open_files", **labels) < value("process_max_files", **labels)
    assert value("processes", version=row.version) == 1
    ProcessReport.objects.create(
        host="gone", pid=1, process="web-1", version="0", memory_bytes=1, open_files=1, max_files=1,
        processor_seconds=1, started_at=clock.now(), reported_at=clock.now() - timedelta(minutes=2),
    )  # fmt: skip
    reporter.report()
    assert ProcessReport.objects.count() == 1
    reporter.stop()
    assert not ProcessReport.objects.exists()


@pytest.mark.usefixtures("measured")
def test_measurements_wait_while_the_database_is_away() -> None:
    measurements.OF_PROCESS.add(measurements.TASK, ("some.task", "success"), 0.1)
    without_database(process_reports.Reporter("web-0").report)
    store_measurements()
    assert value("tasks_total", task="some.task", result="success") == 1


@pytest.mark.usefixtures("measured")
def test_process_shows_that_it_lives_also_while_the_database_is_away(
    settings: Settings, tmp_path: Path
) -> None:
    settings.ALIVE_FILE = str(tmp_path / "alive")
    reporter = process_reports.Reporter("beat")
    without_database(reporter.stop)
    without_database(reporter.run)  # one round, because it ends
    assert (tmp_path / "alive").exists()


@pytest.mark.usefixtures("measured")
@pytest.mark.django_db(transaction=True)
def test_last_report_is_stored_also_if_the_file_of_life_cannot_be_written(
    settings: Settings, tmp_path: Path
) -> None:
    settings.ALIVE_FILE = str(tmp_path / "no folder" / "alive")
    measurements.OF_PROCESS.add(measurements.TASK, ("some.task", "success"), 0.1)
    process_reports.Reporter("web-0").stop()
    assert value("tasks_total", task="some.task", result="success") == 1
