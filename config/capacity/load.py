"""The load: customers of test shops, each in a thread.

The shop makes a code, its bank reports the payment, the webhook arrives, and the shop polls. Any other answer
ends the measurement.
"""

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from config.capacity.databases import Refused
from config.capacity.processes import HOST
from core import clock, ids, money, thaiqr
from core.clock import BANGKOK
from merchants import services
from sandbox.callbacks import sign
from webhooks import endpoints, signing
from webhooks.models import EventType

SHOPS = 20
PATIENCE_SECONDS = 20.0
CODE = {"amount": 150_000, "currency": "THB", "reference": "order-1042", "client_name": "Somchai Jaidee"}


@dataclass
class Round:
    """Seconds: of each request, from each code to its webhook, and of the whole round."""

    requests: list[float] = field(default_factory=list)
    webhooks: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Whole lives a second, or codes a second."""
        return len(self.webhooks or self.requests) / self.seconds


def p99(seconds: list[float]) -> float:
    """What 99 of 100 took at most, in milliseconds; 0 of nothing."""
    return 1000 * sorted(seconds)[int(0.99 * len(seconds))] if seconds else 0.0


class Load:
    """Test shops with webhooks at a service on this machine."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._waiting: dict[str, threading.Event] = {}
        server = ThreadingHTTPServer((HOST, 0), partial(_Webhook, self._waiting))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self._keys = [_open_shop(f"http://{HOST}:{server.server_port}/") for _ in range(SHOPS)]

    def lives(self, at_once: int, seconds: float) -> Round:
        """So many payments at once, each from its code to its poll. Raises Refused."""
        return self._round(self._live, at_once, seconds)

    def codes(self, at_once: int, seconds: float) -> Round:
        """Codes that nobody pays. Raises Refused."""
        return self._round(_make_code, at_once, seconds)

    def _round(self, act: Callable[["_Customer"], Any], at_once: int, seconds: float) -> Round:
        found, began = Round(), time.perf_counter()

        def shop(number: int) -> None:
            customer = _Customer(self._port, self._keys[number % SHOPS], found)
            while time.perf_counter() < began + seconds:
                act(customer)

        with ThreadPoolExecutor(at_once) as threads:
            list(threads.map(shop, range(at_once)))
        found.seconds = time.perf_counter() - began
        return found

    def _live(self, customer: "_Customer") -> None:
        began = time.perf_counter()
        code = _make_code(customer)
        payment_id = code["payment_id"]
        arrived = self._waiting[payment_id] = threading.Event()
        report, sent_at = _report(code["qr_data"]), str(int(clock.now().timestamp()))
        signature = {"Sandbox-Bank-Signature": sign(json.dumps(report).encode(), sent_at)}
        customer.ask("POST", "/banks/sandbox/notices", report, signature)
        if not arrived.wait(PATIENCE_SECONDS):
            raise Refused(f"The webhook of {payment_id} did not arrive.")
        customer.found.webhooks.append(time.perf_counter() - began)
        payment = customer.ask("GET", f"/Thai/v1/payments/{payment_id}")
        if payment["status"] != "succeeded":
            raise Refused(f"The shop read {payment}.")


class _Customer:
    """A kept connection to web, with the key of a shop."""

    def __init__(self, port: int, key: str, found: Round) -> None:
        self._connection, self.found = HTTPConnection(HOST, port, timeout=PATIENCE_SECONDS), found
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        """Raises Refused."""
        began = time.perf_counter()
        content = None if body is None else json.dumps(body)
        self._connection.request(method, path, content, self._headers | (headers or {}))
        response = self._connection.getresponse()
        answer = response.read()
        self.found.requests.append(time.perf_counter() - began)
        if response.status != 200:
            raise Refused(f"{method} {path}: {response.status} {answer!r}")
        return json.loads(answer)


class _Webhook(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, waiting: dict[str, threading.Event], *arguments: Any) -> None:
        self._waiting = waiting
        super().__init__(*arguments)

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._waiting.pop(message["data"]["payment_id"]).set()
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing: lines would cost more than the answer."""


def _open_shop(url: str) -> str:
    """Create a test merchant with a webhook at the URL; return its key."""
    now = clock.now()
    merchant, key = services.create_merchant(name="Measured shop", mode="test", now=now)
    events = [str(EventType.PAYMENT_SUCCEEDED)]
    secret = signing.new_secret()
    endpoints.store(endpoints.prepare(merchant=merchant, url=url, events=events, now=now, secret=secret))
    return key


def _make_code(customer: _Customer) -> Any:
    return customer.ask("POST", "/Thai/v1/qr-codes", CODE, {"Idempotency-Key": ids.random_text(25)})


def _report(qr_data: str) -> dict[str, Any]:
    """What the sandbox bank reports when somebody pays the code now."""
    code, paid_at = thaiqr.parse(qr_data), clock.now().astimezone(BANGKOK)
    return {
        "transaction_id": ids.new("sbp_", paid_at), "type": "credit", "biller_id": code.biller_id,
        "reference1": code.reference1, "reference2": code.reference2 or "",
        "reference3": code.reference3 or "",
        "amount": money.baht(code.amount or 0), "currency": money.CURRENCY,
        "paid_at": paid_at.isoformat(timespec="milliseconds"), "payer_name": "สมชาย ใจดี",
        "payer_bank_code": "014", "payer_account": "4051234567",
        "slip_reference": f"{paid_at:%Y%m%d}{ids.random_text(17)}",
    }  # fmt: skip
