"""Pages of the console hold neither the database nor the web threads for long."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction
from django.test import Client

from console import limits
from core.postgres.limits import limit_statements

pytestmark = pytest.mark.django_db(transaction=True)


def shown(name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting(%s)", [name])
        return str(cursor.fetchone()[0])


def sleep(seconds: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(%s)", [seconds])


def test_a_statement_over_the_limit_is_ended_and_the_limit_goes_with_it() -> None:
    before = shown("statement_timeout")
    with limit_statements(connection, 1):
        with pytest.raises(OperationalError, match="statement timeout"):
            sleep(60)
        assert shown("statement_timeout") == "1s"
    assert shown("statement_timeout") == before != "1s"


def test_a_statement_over_the_limit_is_ended_within_a_transaction() -> None:
    with limit_statements(connection, 1), transaction.atomic():
        with pytest.raises(OperationalError, match="statement timeout"), transaction.atomic():
            sleep(60)
        assert shown("statement_timeout") == "1s"


def test_a_page_that_reads_too_long_is_refused_with_retry_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STATEMENT_SECONDS", 1)
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.create_superuser("somsri"))

    def read() -> tuple[int, str, str]:
        try:
            answer = client.get("/admin/console/heartbeat/")
            return answer.status_code, answer.headers["Retry-After"], answer.content.decode()
        finally:
            connection.close()

    with transaction.atomic(), ThreadPoolExecutor(1) as other:
        with connection.cursor() as cursor:
            cursor.execute("LOCK TABLE console_heartbeat IN ACCESS EXCLUSIVE MODE")
        status, retry_after, text = other.submit(read).result()
    assert (status, retry_after) == (503, "60")
    assert "fewer or narrower filters" in text
