"""Every statement of the two calls that merchants make most, in order. One more is one too many.

A change here is a decision: `make bench` says what it costs.
"""

import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.db import connection
from django.test import RequestFactory
from redis.connection import Connection

from core import ids
from tests.conftest import Shop, open_shop

MOST_ROUND_TRIPS = 8
WHO_ASKS = "SELECT merchants_apikey merchants_merchant"
MAY_IT_ASK_SO_OFTEN = "EVALSHA"
CREATE = [
    WHO_ASKS,
    MAY_IT_ASK_SO_OFTEN,
    "SELECT idempotency_idempotencykey",  # was this asked before
    "SELECT webhooks_endpoint",  # who is to be told
    # What happened and the answer to it: one statement, which is one commit.
    "INSERT idempotency_idempotencykey payments_payment qrcodes_qrcode webhooks_event",
]
POLL = [WHO_ASKS, MAY_IT_ASK_SO_OFTEN, "SELECT payments_payment"]
VERB = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE)\b")
TABLE = re.compile(r'\b(?:FROM|JOIN|INTO|UPDATE)\s+"?(\w+)')
# A statement is prepared when it comes the third time, and a key's use is noted once a minute.
WARM_UP = 4


class Caller:
    """Asks as the web server does: signals and all, which the test client leaves out."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.application = WSGIHandler()

    def create(self) -> dict[str, Any]:
        body = json.dumps(
            {"amount": 150_000, "currency": "THB", "reference": "order 17", "metadata": {"a": 1}}
        )
        made = RequestFactory().post("/Thai/v1/qr-codes", body, "application/json")
        return self._ask(made.environ | {"HTTP_IDEMPOTENCY_KEY": ids.random_text(20)})

    def poll(self, payment_id: str) -> dict[str, Any]:
        return self._ask(RequestFactory().get(f"/Thai/v1/payments/{payment_id}").environ)

    def _ask(self, environ: dict[str, Any]) -> dict[str, Any]:
        started: list[str] = []
        environ["HTTP_AUTHORIZATION"] = f"Bearer {self.shop.secret_key}"

        def start_response(status: str, headers: Any, error: Any = None) -> Callable[[bytes], object]:
            started.append(status)
            return lambda chunk: None

        response = self.application(environ, start_response)
        body = b"".join(response)
        response.close()
        assert started == ["200 OK"], body
        found: dict[str, Any] = json.loads(body)
        return found


@pytest.fixture
def caller(transactional_db: None) -> Caller:
    caller = Caller(open_shop("Somtam House"))
    for _ in range(WARM_UP):
        caller.poll(caller.create()["payment_id"])
    return caller


def named(sql: str) -> str:
    """What a statement does, and to which tables."""
    return " ".join([VERB.findall(sql)[0], *TABLE.findall(sql)])


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """All that is asked of PostgreSQL and Redis, in order."""
    seen: list[str] = []

    def note(execute: Callable[..., Any], sql: str, *args: Any) -> Any:
        seen.append(named(sql))
        return execute(sql, *args)

    send_command: Any = Connection.send_command

    this_thread = threading.get_ident()

    def note_command(self: Connection, *args: Any, **kwargs: Any) -> None:
        if threading.get_ident() == this_thread:  # a wakeup is sent by a thread of its own
            seen.append(str(args[0]))
        send_command(self, *args, **kwargs)

    monkeypatch.setattr(Connection, "send_command", note_command)
    with connection.execute_wrapper(note):
        yield seen


@contextmanager
def protocol_trace(path: Path) -> Iterator[None]:
    """Let libpq itself write down each message between us and PostgreSQL."""
    session: Any = connection.connection.pgconn
    with path.open("w") as file:
        session.trace(file.fileno())
        try:
            yield
        finally:
            session.untrace()


def round_trips(trace: str) -> int:
    """Each `Sync` or `Query` that we send is one wait for the server."""
    return len(re.findall(r"^.*\tF\t\d+\t(?:Sync|Query)\b", trace, re.MULTILINE))


@pytest.mark.slow
def test_qr_code_creation_takes_these_statements(caller: Caller, statements: list[str]) -> None:
    statements.clear()
    caller.create()
    assert statements == CREATE
    assert len(statements) <= MOST_ROUND_TRIPS


def test_polling_a_payment_takes_these_statements(caller: Caller, statements: list[str]) -> None:
    payment_id = caller.create()["payment_id"]
    statements.clear()
    caller.poll(payment_id)
    assert statements == POLL


@pytest.mark.skipif(sys.platform != "linux", reason="libpq traces on Linux only")
def test_hot_path_makes_no_other_round_trips(caller: Caller, tmp_path: Path) -> None:
    # No transaction around the one statement, no question whether the connection lives, no planning.
    payment_id = caller.create()["payment_id"]
    trace = tmp_path / "trace"
    for call, statements in ((caller.create, CREATE), (lambda: caller.poll(payment_id), POLL)):
        with protocol_trace(trace):
            call()
        written = trace.read_text()
        assert round_trips(written) == len(statements) - 1  # one of them goes to Redis
        assert "\tParse\t" not in written
