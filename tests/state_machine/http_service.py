"""A shop and a bank that use real HTTP, and an empty database for each run of the state machine."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from threading import Thread
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.test import Client

from config.devstack import ports
from core import clock
from core.database import rows
from merchants import services
from sandbox import acquirer_server
from sandbox.acquirer_server import AcquirerHandler, Reply
from sandbox.cards import card_of
from tests import tables
from tests.audit import differences
from tests.conftest import SandboxBankClient, Shop
from tests.state_machine.model import ROW, Row

SECONDS = 30
UNREACHABLE_URL = "http://127.0.0.1:1"
LOST_TOKEN = "tok_test_lost"
"""The token of a charge that never reaches its acquirer and gets no answer."""
# For each table: the number of rows and the transaction ids that wrote them.
Versions = dict[str, list[Any]]
TABLES_BEHIND = {
    "balance": ("ledger_account", "ledger_pendingentry"),
    "payments": ("payments_payment", "payments_paymentexception"),
    "refunds": ("refunds_refund",),
    "withdrawals": ("withdrawals_withdrawal",),
    "transactions": ("transactions_transaction", "counts_listcount", "counts_countdelta"),
}


@dataclass(frozen=True, slots=True)
class HttpResponse_:
    status_code: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        return json.loads(self.content)


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request of a shop, kept so that the test can repeat it."""

    path: str
    body: dict[str, Any] | None
    key: str


class HttpConnectionClient:
    """An HTTP client with the interface of Django's test client. It keeps one connection open."""

    def __init__(self, base_url: str) -> None:
        self._connection = HTTPConnection(str(urlsplit(base_url).netloc), timeout=SECONDS)

    def get(self, path: str, *, headers: dict[str, str]) -> HttpResponse_:
        return self._ask("GET", path, b"", headers)

    def post(
        self, path: str, data: str | bytes, *, content_type: str, headers: dict[str, str]
    ) -> HttpResponse_:
        body = data.encode() if isinstance(data, str) else data
        return self._ask("POST", path, body, headers | {"Content-Type": content_type})

    def close(self) -> None:
        self._connection.close()

    def _ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> HttpResponse_:
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        return HttpResponse_(response.status, dict(response.getheaders()), response.read())


class _Application(WSGIHandler):
    """Set `Content-Length`. Without it the server closes the connection after each response."""

    def get_response(self, request: HttpRequest) -> HttpResponseBase:
        response = super().get_response(request)
        if isinstance(response, HttpResponse):
            response.headers["Content-Length"] = str(len(response.content))
        return response


class _Handler(WSGIRequestHandler):
    disable_nagle_algorithm = True  # else a response waits for the client's TCP acknowledgement


@contextmanager
def serve() -> Iterator[str]:
    """Run the service on a free port and yield its URL.

    The live server of pytest-django closes each connection after one response. It then also closes a
    connection to PostgreSQL. Opening that one again takes five times as long as the response.
    """
    server = ThreadedWSGIServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.set_app(_Application())
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _HangingUpAcquirer(AcquirerHandler):
    """An acquirer that closes the connection where it should not answer, so that tests do not wait."""

    is_silent = False

    def _charge(self, shown: dict[str, Any]) -> Reply:
        token = shown["token"]
        self.is_silent = token == LOST_TOKEN or card_of(token).is_silent
        return (200, {}) if token == LOST_TOKEN else super()._charge(shown)

    def _reply(self, reply: Reply) -> None:
        if self.is_silent:
            self.close_connection = True
        else:
            super()._reply(reply)


@contextmanager
def run_acquirer() -> Iterator[None]:
    """Run the acquirer of test cards on a free port, and set its URL in the settings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "SANDBOX_ACQUIRER_URL", f"http://127.0.0.1:{ports.pick()}")
        patch.setattr(acquirer_server, "SILENCE_SECONDS", 0)
        patch.setattr(acquirer_server, "AcquirerHandler", _HangingUpAcquirer)
        with acquirer_server.run_acquirer_server():
            yield


@contextmanager
def unreachable_bank(is_so: bool = True) -> Iterator[None]:
    """Make the bank and the acquirer unreachable."""
    with pytest.MonkeyPatch.context() as patch:
        if is_so:
            patch.setattr(settings, "BASE_URL", UNREACHABLE_URL)
            patch.setattr(settings, "SANDBOX_ACQUIRER_URL", UNREACHABLE_URL)
        yield


def open_empty_shop(client: HttpConnectionClient) -> tuple[Shop, SandboxBankClient]:
    """Empty the database. Return a new shop and the client of the sandbox bank."""
    tables.delete_all_rows()
    merchant, secret_key = services.create_merchant(name="Somtam House", mode="test", now=clock.now())
    http = cast(Client, client)
    return Shop(merchant, secret_key, http), SandboxBankClient(http)


class ShopView:
    """The API's responses about a shop, in a cache.

    A response is requested again if one of its tables or the clock has changed, or after `forget`.
    Requesting all of them after each step would take longer than the steps.
    """

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._answers: dict[str, tuple[Versions, Any]] = {}
        self._versions: Versions = {}

    def check_audit(self) -> list[str]:
        """Run the audit if a table has changed since the last call. Return the differences."""
        last, found = self._versions, rows.run(tables.version_query(), []).fetchall()
        self._versions = {table: version for table, *version in found}
        return [] if self._versions == last else differences()

    def forget(self) -> None:
        self._answers.clear()

    def read(self, path: str) -> Any:
        made_of = {table: self._versions[table] for table in TABLES_BEHIND[path.partition("?")[0]]}
        made_of["clock"] = [clock.now()]
        known = self._answers.get(path)
        if known is None or known[0] != made_of:
            response = self._shop.get(f"/v1/{path}")
            assert response.status_code == 200, response.content
            known = self._answers[path] = made_of, response.json()
        return known[1]

    def listed(self, plural: str, *fields: str) -> dict[str, tuple[Any, ...]]:
        """Return the values of these fields for each listed object, by id."""
        found = self.read(f"{plural}?limit=100")
        assert found["total"] == len(found[plural])
        return {row[f"{plural[:-1]}_id"]: tuple(row[name] for name in fields) for row in found[plural]}

    def balance_by_transactions(self) -> dict[str, Any]:
        """Recompute the balance from all pages of balance transactions, and check each row's balance."""
        rows = self._balance_transactions()
        sums = {"amount": 0, "reserved_amount": 0, "unconfirmed_amount": 0}
        for row in reversed(rows):
            sums = {name: value + row[name] for name, value in sums.items()}
            after = row["balance_after"], row["reserved_after"], row["unconfirmed_after"]
            assert after == tuple(sums.values()), row
        net, reserved, unconfirmed = sums.values()
        balance = {"available": max(net, 0), "reserved": reserved, "currency": "THB"}
        balance |= {"unconfirmed": unconfirmed} if unconfirmed else {}
        return balance | ({"owed": -net} if net < 0 else {})

    def _balance_transactions(self) -> list[dict[str, Any]]:
        """All of them, newest first, read in pages by cursor."""
        rows: list[dict[str, Any]] = []
        page, path = {"total": 1}, "/v1/balance/transactions?limit=30"
        while len(rows) < page["total"]:
            page = self._shop.get(
                f"{path}&after={rows[-1]['balance_transaction_id']}" if rows else path
            ).json()
            assert page["balance_transactions"] or not page["total"]
            rows += page["balance_transactions"]
        return rows

    def history(self) -> Counter[Row]:
        found = self.read("transactions?limit=100")
        rows = [tuple(row[name] for name in ROW) for row in found["transactions"]]
        assert found["total"] == len(rows)
        return Counter(rows)


def account(ending: str) -> dict[str, str]:
    return {"bank_code": "014", "bank_account": f"405123{ending}", "account_name": "สมชาย ใจดี"}


def refusal(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]
