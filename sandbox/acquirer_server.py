"""The HTTP server of the sandbox bank's acquirer, in the process of the sandbox bank.

It is not part of the web server: payment requests hold web threads while they wait for the acquirer, so that
enough payments at once would leave no thread for the acquirer.
"""

import hmac
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
from django.conf import settings
from django.db import connection
from django.db.models import QuerySet

from core import clock
from core.http import strict_json
from core.http.strict_json import JsonRefused
from sandbox import cards, settlements
from sandbox.models import SandboxCardRefund, SandboxCharge

IDLE_SECONDS = 5.0
# The delay of the answer for a silent test card, longer than the service waits.
SILENCE_SECONDS = 5.0
MAX_BODY, MAX_ROWS = 4_096, 100
Json = dict[str, Any]
Reply = tuple[int, Json]


class AcquirerServer(ThreadingHTTPServer):
    """Listens on HOST, as web does, at the port of SANDBOX_ACQUIRER_URL, by which web and workers find it."""

    daemon_threads = True
    allow_reuse_port = True  # several sandbox banks may run at once
    request_queue_size = 128

    def __init__(self) -> None:
        self.address_family = socket.AF_INET6 if ":" in settings.HOST else socket.AF_INET
        super().__init__((settings.HOST, urlsplit(settings.SANDBOX_ACQUIRER_URL).port or 80), AcquirerHandler)
        self.closing = threading.Event()


@contextmanager
def run_acquirer_server(stop_seconds: float = 0.05) -> Iterator[AcquirerServer]:
    """Serve in a background thread during the block. The end of the block takes up to `stop_seconds`."""
    with AcquirerServer() as server:
        worker = threading.Thread(target=server.serve_forever, args=(stop_seconds,), daemon=True)
        worker.start()
        try:
            yield server
        finally:
            server.closing.set()
            server.shutdown()
            worker.join()


class AcquirerHandler(BaseHTTPRequestHandler):
    """Serves one request for each connection."""

    server: AcquirerServer
    timeout = IDLE_SECONDS

    def do_GET(self) -> None:
        self._serve(self._find)

    def do_POST(self) -> None:
        self._serve(self._make)

    def log_message(self, *_: object) -> None:
        """Log nothing, because requests contain tokens."""

    def _serve(self, response: Any) -> None:
        expected = f"Bearer {settings.SANDBOX_BANK_SECRET}".encode()
        if not hmac.compare_digest(self.headers.get("Authorization", "").encode(), expected):
            self._reply((401, {"code": "unauthorized"}))
            return
        try:
            self._reply(response())
        except cards.ChargeRefused as refused:
            self._reply((400, {"code": str(refused)}))
        except (JsonRefused, KeyError, TypeError, ValueError):
            self._reply((400, {"code": "invalid_request"}))
        finally:
            connection.close()  # this thread ends after the request

    def _find(self) -> Reply:
        parts = urlsplit(self.path)
        _, kind, *rest = parts.path.split("/")
        if kind == "transfers":
            return 200, self._list(dict(parse_qs(parts.query, strict_parsing=True)), rest)
        (order_id,) = rest
        if kind == "charges":
            charge = SandboxCharge.objects.filter(order_id=order_id).first()
            return (200, cards.charge_object(charge, clock.now())) if charge else (404, {"code": "not_found"})
        refund = SandboxCardRefund.objects.filter(order_id=order_id).first()
        return (200, cards.refund_object(refund)) if refund else (404, {"code": "not_found"})

    def _list(self, query: dict[str, list[str]], rest: list[str]) -> Json:
        """The transfers of a period, or the items of one of them."""
        now = clock.now()
        if rest:
            transfer_id, _ = rest
            return _page(settlements.items(transfer_id), query, settlements.item_object)
        since, until = (_instant(query[name][0]) for name in ("from", "to"))
        found = settlements.transfers(since, until, now=now)
        return _page(found, query, partial(settlements.transfer_object, now=now))

    def _make(self) -> Reply:
        size = int(self.headers["Content-Length"])
        data = strict_json.loads(self.rfile.read(min(size, MAX_BODY)))
        if type(data["amount"]) is not int:  # with a decimal point it is not in satang
            raise TypeError
        if self.path == "/charges":
            return self._charge(data)
        order_id, charge_id = str(data["order_id"]), str(data["charge_id"])
        refund = cards.refund(order_id=order_id, charge_id=charge_id, amount=data["amount"], now=clock.now())
        return 200, cards.refund_object(refund)

    def _charge(self, data: Json) -> Reply:
        charge = cards.charge(
            order_id=str(data["order_id"]),
            token=str(data["token"]),
            amount=data["amount"],
            return_uri=str(data.get("return_uri", "")),
            now=clock.now(),
        )
        if cards.card_of(data["token"]).is_silent:
            self.server.closing.wait(SILENCE_SECONDS)
        return 200, cards.charge_object(charge, clock.now())

    def _reply(self, reply: Reply) -> None:
        status, data = reply
        body = orjson.dumps(data)
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            self.close_connection = True  # the client has closed the connection


def _page(rows: "QuerySet[Any]", query: dict[str, list[str]], as_object: Callable[[Any], Json]) -> Json:
    limit, offset = min(int(query["limit"][0]), MAX_ROWS), int(query["offset"][0])
    return {"data": [as_object(row) for row in rows[offset : offset + limit]], "total": rows.count()}


def _instant(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError("the time has no offset")
    return at
