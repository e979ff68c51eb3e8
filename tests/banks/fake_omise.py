"""Opn Payments on loopback: it lists charges by time and page, and redirects browsers from 3-D Secure."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson

from core import clock
from tests.banks import omise_objects

Json = dict[str, Any]
SECURED_TOKEN = "tokn_test_3ds"


class FakeOmise:
    """charges: in the order of their time. page_limit: the most rows that a page shows."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.charges: list[Json] = []
        self.return_uris: dict[str, str] = {}
        self.pages: list[Json] = []
        self.page_limit = 100
        self.hides_rows = False

    def add(self, order_id: str, at: datetime, **changes: Any) -> Json:
        charge_id = f"chrg_{len(self.charges)}"
        shown = {"created_at": at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "id": charge_id}
        self.charges.append(omise_objects.charge(order_id, **(shown | changes)))
        return self.charges[-1]

    def listed(self, query: Json) -> Json:
        self.pages.append(query)
        since, until = (datetime.fromisoformat(query[name]) for name in ("from", "to"))
        found = [each for each in self.charges if since <= _created(each) <= until]
        begin = int(query["offset"])
        shown = found[begin : begin + min(int(query["limit"]), self.page_limit)]
        return omise_objects.listing(*([] if self.hides_rows else shown), total=len(found))

    def charge(self, request_body: Json) -> Json:
        changes: Json = {"amount": request_body["amount"], "currency": request_body["currency"].upper()}
        if request_body["card"] == SECURED_TOKEN:
            uri = f"{self.base_url}/authorize/chrg_{len(self.charges)}"
            changes |= {"status": "pending", "authorize_uri": uri, "paid": False, "paid_at": None}
        made = self.add(request_body["metadata"]["order_id"], clock.now(), **changes)
        self.return_uris[made["id"]] = request_body["return_uri"]
        return made

    def find(self, charge_id: str) -> Json:
        return next(each for each in self.charges if each["id"] == charge_id)

    def authorise(self, charge_id: str, *, is_refused: bool) -> str:
        """What the payer decides on their page; returns where the browser goes then."""
        failed = {"status": "failed", "failure_code": "payment_rejected"}
        paid = {"status": "successful", "paid": True, "paid_at": clock.iso(clock.now())}
        self.find(charge_id).update(failed if is_refused else paid)
        return self.return_uris[charge_id]


def _created(charge: Json) -> datetime:
    return datetime.fromisoformat(charge["created_at"])


@contextmanager
def omise() -> Iterator[FakeOmise]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {
                name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()
            }
            if parts.path == "/charges":
                return self._answer(stand_in.listed(query))
            *_, kind, charge_id = parts.path.split("/")
            if kind == "charges":
                return self._answer(stand_in.find(charge_id))
            self.send_response(302)
            self.send_header("Location", stand_in.authorise(charge_id, is_refused="refuse" in query))
            return self.end_headers()

        def do_POST(self) -> None:
            request_body = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._answer(stand_in.charge(request_body))

        def _answer(self, shown: Json) -> None:
            body = orjson.dumps(shown)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        stand_in = FakeOmise(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield stand_in
        finally:
            server.shutdown()
            thread.join()
