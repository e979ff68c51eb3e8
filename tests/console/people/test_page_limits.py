"""Slow console pages are stopped, so that they hold neither the database nor web threads."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction
from django.test import Client

from console.people import page_limits
from core.database.sessions import limit_statements

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def shown(name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting(%s)", [name])
        return str(cursor.fetchone()[0])


def sleep(seconds: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(%s)", [seconds])


def test_statement_timeout_applies_to_one_statement() -> None:
    before = shown("statement_timeout")
    with limit_statements(connection, 1):
        with pytest.raises(OperationalError, match="statement timeout"):
            sleep(60)
        assert shown("statement_timeout") == "1s"
    assert shown("statement_timeout") == before != "1s"


def test_statement_timeout_applies_within_a_transaction() -> None:
    with limit_statements(connection, 1), transaction.atomic():
        with pytest.raises(OperationalError, match="statement timeout"), transaction.atomic():
            sleep(60)
        assert shown("statement_timeout") == "1s"


def test_slow_console_page_is_503_with_retry_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_limits, "STATEMENT_SECONDS", 1)
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.create_superuser("somsri"))

    def read() -> tuple[int, str, str]:
        try:
            response = client.get("/admin/operations/heartbeat/")
            return response.status_code, response.headers["Retry-After"], response.content.decode()
        finally:
            connection.close()

    with transaction.atomic(), ThreadPoolExecutor(1) as other:
        with connection.cursor() as cursor:
            cursor.execute("LOCK TABLE operations_heartbeat IN ACCESS EXCLUSIVE MODE")
        status, retry_after, text = other.submit(read).result()
    assert (status, retry_after) == (503, "60")
    assert "Use narrower filters" in text
