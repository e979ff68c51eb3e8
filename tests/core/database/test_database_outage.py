"""While the database is down, errors are clear and the log gets one line a second."""

import json
import logging
from collections.abc import Iterator
from io import StringIO

import psycopg
import pytest
import time_machine
from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.test import Client

from core.database.availability import CONNECTION_ERRORS, is_unavailable
from core.observing.logs import DatabaseDownFilter, JsonFormatter
from tests.concurrency import without_database
from tests.conftest import Shop


@pytest.fixture
def lines() -> Iterator[StringIO]:
    """The log lines that go to standard output in production."""
    written = StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonFormatter())
    handler.addFilter(DatabaseDownFilter())
    root = logging.getLogger()
    kept, root.handlers = root.handlers, [handler]
    yield written
    root.handlers = kept


@pytest.mark.slow
def test_database_outage_is_503_and_logs_one_line_per_second(shop: Shop, lines: StringIO) -> None:
    responses = without_database(lambda: [shop.get("/v1/balance") for _ in range(30)])
    assert {response.status_code for response in responses} == {503}
    assert {response.headers["Retry-After"] for response in responses} == {"1"}
    written = [json.loads(line) for line in lines.getvalue().splitlines() if '"log": "access"' not in line]
    shown = [line for line in written if line.get("level") == "ERROR"]
    seconds = {int(line["at"]) for line in shown}
    assert 1 <= len(shown) <= len(seconds)
    assert all(line["message"].startswith("The database is away: ") for line in shown)
    assert not any("error" in line for line in shown)


def test_standby_that_a_proxy_leads_to_is_503(shop: Shop, lines: StringIO) -> None:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL transaction_read_only = on")
        response = shop.post("/v1/qr-codes", {"amount": 10_000, "currency": "THB"})
        transaction.set_rollback(True)
    assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
    assert "The database is away: cannot execute" in lines.getvalue()
    assert shop.post("/v1/qr-codes", {"amount": 10_000, "currency": "THB"}).status_code == 200


def test_second_of_the_log_limit_is_the_second_that_the_line_shows() -> None:
    """A line written at the end of one second and filtered in the next belongs to the first."""
    limit = DatabaseDownFilter()
    admitted = []
    for created, filtered in [(100.2, 100.2), (100.999, 101.001), (101.5, 101.5)]:
        error = psycopg.errors.lookup("57P01")()
        record = logging.LogRecord("api", logging.ERROR, "", 0, "failed", (), (type(error), error, None))
        record.created = created
        with time_machine.travel(filtered, tick=False):
            admitted.append(limit.filter(record))
    assert admitted == [True, False, True]


def test_pages_of_the_console_without_the_database_are_503(db: None) -> None:
    client = Client(raise_request_exception=False)
    client.cookies[settings.SESSION_COOKIE_NAME] = "a" * 32
    assert without_database(lambda: client.get("/admin/")).status_code == 503


def test_rejected_statement_is_not_a_database_outage(db: None) -> None:
    with pytest.raises(OperationalError) as refused, connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 1")
        cursor.execute("SELECT pg_sleep(10)")
    transaction.set_rollback(True)
    assert not is_unavailable(refused.value)
    assert not is_unavailable(ValueError())


@pytest.mark.parametrize("state", ["57P01", "57P03", "53300", "08006", "25006"])
def test_unavailable_sqlstate_counts_as_outage(state: str) -> None:
    assert is_unavailable(psycopg.errors.lookup(state)())


def test_end_of_a_connection_behind_the_result_of_a_commit_counts_as_outage() -> None:
    """A server that stops while a COMMIT waits for its standby sends both. psycopg's error has no state."""
    assert is_unavailable(psycopg.InternalError("received 2 results from command 'COMMIT'"))
    assert not is_unavailable(psycopg.errors.lookup("XX000")())


def test_workers_keep_their_results_after_each_error_of_a_lost_connection() -> None:
    """As Django raises those of psycopg."""
    for error in (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError):
        with pytest.raises(CONNECTION_ERRORS), connection.wrap_database_errors:
            raise error
