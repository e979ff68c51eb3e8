"""While the database is away: clear answers, and one line of log a second."""

import json
import logging
from collections.abc import Iterator
from io import StringIO

import psycopg
import pytest
from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.test import Client

from core.logs import DatabaseAway, JsonLine
from core.postgres.away import is_away
from tests.conftest import Shop
from tests.database_away import without_database


@pytest.fixture
def lines() -> Iterator[StringIO]:
    """What goes to standard output in production."""
    written = StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonLine())
    handler.addFilter(DatabaseAway())
    root = logging.getLogger()
    kept, root.handlers = root.handlers, [handler]
    yield written
    root.handlers = kept


def test_requests_without_the_database_are_503_and_log_one_line_a_second(shop: Shop, lines: StringIO) -> None:
    answers = without_database(lambda: [shop.get("/v1/balance") for _ in range(30)])
    assert {answer.status_code for answer in answers} == {503}
    assert {answer.headers["Retry-After"] for answer in answers} == {"1"}
    written = [json.loads(line) for line in lines.getvalue().splitlines() if '"log": "access"' not in line]
    told = [line for line in written if line.get("level") == "ERROR"]
    seconds = {int(line["at"]) for line in told}
    assert 1 <= len(told) <= len(seconds)
    assert all(line["message"].startswith("The database is away: ") for line in told)
    assert not any("error" in line for line in told)


def test_pages_of_the_console_without_the_database_are_503(db: None) -> None:
    client = Client(raise_request_exception=False)
    client.cookies[settings.SESSION_COOKIE_NAME] = "a" * 32
    assert without_database(lambda: client.get("/admin/")).status_code == 503


def test_a_refused_statement_is_not_a_database_that_is_away(db: None) -> None:
    with pytest.raises(OperationalError) as refused, connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 1")
        cursor.execute("SELECT pg_sleep(10)")
    transaction.set_rollback(True)
    assert not is_away(refused.value)
    assert not is_away(ValueError())


@pytest.mark.parametrize("state", ["57P01", "57P03", "53300", "08006"])
def test_a_server_that_takes_no_work_counts_as_away(state: str) -> None:
    assert is_away(psycopg.errors.lookup(state)())
