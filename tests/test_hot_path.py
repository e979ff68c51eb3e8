"""The exact statements of the most frequent calls: create a QR code, read a payment, a bank's notification.

Measure a change of these lists with `make bench`.
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
from django.test import Client, RequestFactory
from pytest_django import Settings
from redis.connection import Connection

from core import ids
from tests.conftest import SandboxBankClient, Shop, open_shop

pytestmark = pytest.mark.slow

MOST_ROUND_TRIPS = 3
RATE_LIMIT = "EVALSHA"
CREATE = [
    # The key, its merchant, and which endpoints get the event.
    "SELECT webhooks_endpoint merchants_apikey merchants_merchant",
    RATE_LIMIT,
    # One statement, which is one commit, writes everything and the stored answer.
    "INSERT idempotency_idempotencykey payments_payment qrcodes_qrcode webhooks_event",
]
# The exceptions tell whether money of its amount came with an unknown reference.
POLL = [
    "SELECT reconciliation_reconciliationexception merchants_apikey merchants_merchant payments_payment",
    RATE_LIMIT,
]
# One statement adds to the history, opens accounts, posts a journal and adds pending entries. It reads the
# newest entries of the accounts that money leaves under their lock, and none for a credit.
POSTING = (
    "INSERT transactions_transaction ledger_account ledger_account ledger_journal ledger_entry ledger_entry"
    " ledger_balancetransaction ledger_account ledger_account ledger_pendingentry"
)
NOTIFICATION = [
    # The first commit stores the report.
    "SELECT reconciliation_find_reported",  # takes the locks of reports that can be the same
    "INSERT reconciliation_banktransaction reconciliation_banknotification",
    # The second one applies it.
    "SELECT reconciliation_lock_credits",  # the pair, the payment and the bank transaction
    "UPDATE reconciliation_banktransaction",
    "SELECT payments_feeterms merchants_merchant",
    "UPDATE payments_payment",
    POSTING,
    "SELECT webhooks_endpoint",
    "INSERT webhooks_event",
]
VERB = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE)\b")
TABLE = re.compile(r'\b(?:FROM|JOIN|INTO|UPDATE)\s+"?(\w+_\w+)')
# A statement is prepared at its third execution. The use of a key is stored once a minute.
WARM_UP = 4


class Caller:
    """Calls the WSGI application. The test client would use another handler."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.application = WSGIHandler()

    def create(self) -> dict[str, Any]:
        body = json.dumps(
            {"amount": 150_000, "currency": "THB", "reference": "order 17", "metadata": {"a": 1}}
        )
        made = RequestFactory().post("/Thai/v1/qr-codes", body, "application/json")
        return self._ask(made.environ | {"HTTP_IDEMPOTENCY_KEY": ids.random_text(20)})

    def notify(self, qr_code: dict[str, Any]) -> dict[str, Any]:
        bank = SandboxBankClient(Client())
        body = json.dumps(bank.notification(qr_code | {"amount": 150_000})).encode()
        made = RequestFactory().post("/banks/sandbox/notifications", body, "application/json")
        return self._ask(made.environ | {"HTTP_SANDBOX_BANK_SIGNATURE": bank.sign(body)})

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
def caller(transactional_db: None, settings: Settings) -> Caller:
    settings.RATE_LIMIT_BURST = 39  # below 40 each request asks Redis
    caller = Caller(open_shop("Somtam House"))
    for _ in range(WARM_UP):
        caller.poll(caller.create()["payment_id"])
    return caller


def named(sql: str) -> str:
    """The verb of a statement and its tables."""
    return " ".join([VERB.findall(sql)[0], *TABLE.findall(sql)])


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Record the statements and commands for PostgreSQL and Redis, in order."""
    seen: list[str] = []

    def record(execute: Callable[..., Any], sql: str, *args: Any) -> Any:
        seen.append(named(sql))
        return execute(sql, *args)

    send_command: Any = Connection.send_command

    this_thread = threading.get_ident()

    def record_command(self: Connection, *args: Any, **kwargs: Any) -> None:
        if threading.get_ident() == this_thread:  # another thread sends wake-ups
            seen.append(str(args[0]))
        send_command(self, *args, **kwargs)

    monkeypatch.setattr(Connection, "send_command", record_command)
    with connection.execute_wrapper(record):
        yield seen


@contextmanager
def protocol_trace(path: Path) -> Iterator[None]:
    """Let libpq write each message between us and PostgreSQL into a file."""
    session: Any = connection.connection.pgconn
    with path.open("w") as file:
        session.trace(file.fileno())
        try:
            yield
        finally:
            session.untrace()


def round_trips(trace: str) -> int:
    """The number of `Sync` and `Query` messages. Each is one round trip."""
    return len(re.findall(r"^.*\tF\t\d+\t(?:Sync|Query)\b", trace, re.MULTILINE))


def test_qr_code_creation_takes_only_the_listed_statements(caller: Caller, statements: list[str]) -> None:
    statements.clear()
    caller.create()
    assert statements == CREATE
    assert len(statements) <= MOST_ROUND_TRIPS


def test_polling_a_payment_takes_only_the_listed_statements(caller: Caller, statements: list[str]) -> None:
    payment_id = caller.create()["payment_id"]
    statements.clear()
    caller.poll(payment_id)
    assert statements == POLL


def test_notification_of_a_bank_takes_only_the_listed_statements(
    caller: Caller, statements: list[str]
) -> None:
    code = caller.create()
    statements.clear()
    assert caller.notify(code) == {"status": "received"}
    assert statements == NOTIFICATION


@pytest.mark.skipif(sys.platform != "linux", reason="libpq traces on Linux only")
def test_hot_path_makes_no_database_round_trips_besides_the_statements(
    caller: Caller, tmp_path: Path
) -> None:
    # No BEGIN and COMMIT around the statement, no check of the connection, no planning.
    payment_id = caller.create()["payment_id"]
    trace = tmp_path / "trace"
    for call, statements in ((caller.create, CREATE), (lambda: caller.poll(payment_id), POLL)):
        with protocol_trace(trace):
            call()
        written = trace.read_text()
        assert round_trips(written) == len(statements) - 1  # one of them goes to Redis
        assert "\tParse\t" not in written
