"""The load: customers of test shops, each in a thread.

The shop makes a code, its bank reports the payment, the webhook arrives, and the shop polls. Any other answer
ends the measurement.
"""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from banks.sandbox import SIGNATURE_HEADER
from config.capacity.databases import Refused
from config.capacity.figures import Round
from config.capacity.processes import HOST
from core import clock, ids, money
from core.thai import thaiqr
from merchants import services
from sandbox.callbacks import sign
from webhooks import endpoints
from webhooks.models import Endpoint, EventType

SHOPS = 20
NOTIFICATION_PATH = "/banks/sandbox/notifications"
PATIENCE_SECONDS = 20.0
CODE = {"amount": 150_000, "currency": "THB", "reference": "order-1042", "client_name": "Somchai Jaidee"}


class Load:
    """Test shops with webhooks at a service on this machine."""

    def __init__(self, port: int) -> None:
        self._port = port
        server = ThreadingHTTPServer((HOST, 0), _Webhook)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://{HOST}:{server.server_port}/"
        self._keys = [open_shop(url)[1] for _ in range(SHOPS)]

    def lives(self, at_once: int, seconds: float) -> Round:
        """So many payments at once, each from its code to its poll. Raises Refused."""
        found, began = Round(at_once), time.perf_counter()

        def shop(number: int) -> None:
            customer = _Customer(self._port, self._keys[number % SHOPS], found)
            while time.perf_counter() < began + seconds:
                customer.live()

        with ThreadPoolExecutor(at_once) as threads:
            list(threads.map(shop, range(at_once)))
        found.seconds = time.perf_counter() - began
        return found


class _Customer:
    """A kept connection to web, with the key of a shop."""

    def __init__(self, port: int, key: str, found: Round) -> None:
        self._connection = HTTPConnection(HOST, port, timeout=PATIENCE_SECONDS)
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._found = found

    def live(self) -> None:
        """Raises Refused."""
        began = time.perf_counter()
        code = self._ask("POST", "/Thai/v1/qr-codes", CODE, {"Idempotency-Key": ids.random_text(25)})
        payment_id = code["payment_id"]
        arrived = _Webhook.waiting[payment_id] = threading.Event()
        self._ask("POST", NOTIFICATION_PATH, *notification(code["qr_data"]))
        if not arrived.wait(PATIENCE_SECONDS):
            raise Refused(f"The webhook of {payment_id} did not arrive.")
        self._found.webhooks.append(time.perf_counter() - began)
        payment = self._ask("GET", f"/Thai/v1/payments/{payment_id}")
        if payment["status"] != "succeeded":
            raise Refused(f"The shop read {payment}.")

    def _ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        """Raises Refused."""
        began = time.perf_counter()
        content = None if body is None else json.dumps(body)
        self._connection.request(method, path, content, self._headers | (headers or {}))
        response = self._connection.getresponse()
        answer = response.read()
        self._found.requests.append(time.perf_counter() - began)
        if response.status != 200:
            raise Refused(f"{method} {path}: {response.status} {answer!r}")
        return json.loads(answer)


class _Webhook(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    waiting: ClassVar[dict[str, threading.Event]] = {}  # by payment, in all loads of this process

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.waiting.pop(message["data"]["payment_id"]).set()
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing: lines would cost more than the answer."""


def open_shop(url: str) -> tuple[Endpoint, str]:
    """Create a test merchant with a webhook at the URL; return the webhook, and the key of the merchant."""
    now, events = clock.now(), [str(EventType.PAYMENT_SUCCEEDED)]
    merchant, key = services.create_merchant(name="Measured shop", mode="test", now=now)
    endpoint = endpoints.prepare(merchant=merchant, url=url, events=events, now=now)
    endpoints.store(endpoint)
    return endpoint, key


def notification(qr_data: str) -> tuple[dict[str, Any], dict[str, str]]:
    """What the sandbox bank reports when somebody pays the code now, and its signature as a header."""
    code, paid_at = thaiqr.parse(qr_data), clock.now().astimezone(clock.BANGKOK)
    report = {
        "transaction_id": ids.new("sbp_", paid_at), "type": "credit", "biller_id": code.biller_id,
        "reference1": code.reference1, "reference2": code.reference2, "reference3": code.reference3,
        "amount": money.baht(code.amount or 0), "currency": money.CURRENCY,
        "paid_at": paid_at.isoformat(timespec="milliseconds"), "payer_name": "สมชาย ใจดี",
        "payer_bank_code": "014", "payer_account": "4051234567",
        "slip_reference": f"{paid_at:%Y%m%d}{ids.random_text(17)}",
    }  # fmt: skip
    return report, {SIGNATURE_HEADER: sign(json.dumps(report).encode(), str(int(paid_at.timestamp())))}
