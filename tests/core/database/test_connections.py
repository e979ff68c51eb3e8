"""A kept database connection: trusted without a question while it is open, replaced once it is not."""

import psycopg
import pytest
from django.db import close_old_connections, connection

from tests.stack import wait_until

pytestmark = pytest.mark.slow


def session() -> int:
    """The server's process behind this thread's connection."""
    connection.ensure_connection()
    return int(connection.connection.info.backend_pid)


def end(pid: int) -> None:
    params = connection.get_connection_params()
    place = {name: params[name] for name in ("dbname", "host", "port", "user", "password")}
    with psycopg.connect(**place) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


@pytest.mark.django_db(transaction=True)
def test_open_connection_is_reused_without_query() -> None:
    pid = session()
    assert connection.is_usable()
    close_old_connections()
    assert session() == pid


@pytest.mark.django_db(transaction=True)
def test_connection_closed_by_the_server_is_replaced_before_the_next_request() -> None:
    pid = session()
    end(pid)
    wait_until(lambda: not connection.is_usable(), 60)
    close_old_connections()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)
    assert session() != pid
