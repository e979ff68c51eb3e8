"""Opn Payments (Omise) on loopback, and its documented objects with the fields that an adapter uses."""

from bisect import bisect_left, bisect_right
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson

from core import clock
from tests.webhook_receiver import ReceivedRequest, Receiver, Reply, Script

Json = dict[str, Any]
SECURED_TOKEN = "tokn_test_3ds"
CHARGE_ID = "chrg_test_5x8glktwl62j63dr3me"
CARD = {
    "object": "card",
    "id": "card_test_5x17kjqylbrla8t3elw",
    "livemode": False,
    "country": "us",
    "financing": "credit",
    "bank": "JPMORGAN CHASE BANK N.A.",
    "brand": "Visa",
    "first_digits": None,
    "last_digits": "4242",
    "name": "JOHN DOE",
    "expiration_month": 2,
    "expiration_year": 2034,
    "security_code_check": True,
}


def charge(order_id: str = "pay_1", **changes: Any) -> Json:
    return {
        "object": "charge",
        "id": CHARGE_ID,
        "location": f"/charges/{CHARGE_ID}",
        "amount": 150_000,
        "currency": "THB",
        "description": order_id,
        "metadata": {"order_id": order_id},
        "card": CARD,
        "source": None,
        "failure_code": None,
        "failure_message": None,
        "status": "successful",
        "authorize_uri": None,
        "created_at": "2026-11-21T03:04:05Z",
        "paid_at": "2026-11-21T03:04:06Z",
        "authorized": True,
        "capture": True,
        "paid": True,
    } | changes


def failed(failure_code: str) -> Json:
    return charge(status="failed", failure_code=failure_code, paid=False, paid_at=None)


def refund(order_id: str = "ref_1", **changes: Any) -> Json:
    return {
        "object": "refund",
        "id": "rfnd_test_5x8gm1vq9o2nq5k7m3b",
        "charge": CHARGE_ID,
        "amount": 50_000,
        "currency": "THB",
        "metadata": {"order_id": order_id},
        "status": "closed",
        "voided": False,
        "created_at": "2026-11-22T03:04:05Z",
    } | changes


def error(code: str, message: str = "") -> Json:
    return {
        "object": "error",
        "location": f"https://www.omise.co/api-errors#{code.replace('_', '-')}",
        "code": code,
        "message": message or code.replace("_", " "),
    }


def listing(*data: Json, total: int | None = None) -> Json:
    return {
        "object": "list",
        "data": list(data),
        "limit": 100,
        "offset": 0,
        "total": len(data) if total is None else total,
        "order": "chronological",
    }


def response(body: Any, status: int = 200) -> Reply:
    return Reply(status, {"Content-Type": "application/json"}, orjson.dumps(body))


def time_text(at: datetime) -> str:
    """Opn's times have no fractions."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _second(text: str, *, rounds_up: bool = False) -> str:
    at = datetime.fromisoformat(text)
    return time_text(at + timedelta(seconds=1 if rounds_up and at.microsecond else 0))


def _created_at(row: Json) -> str:
    return str(row["created_at"])


class FakeOmise(Receiver):
    """Lists objects by time and page, and redirects browsers from 3-D Secure.

    lists: by path, each in the order of the rows' time. page_limit: the maximum of rows on a page.
    hides_rows: pages say the length of their list, and show no rows.
    """

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.charges: list[Json] = []
        self.lists = {"/charges": self.charges}
        self.return_uris: dict[str, str] = {}
        self.pages: list[Json] = []
        self.page_limit = 100
        self.hides_rows = False

    def reply_to(self, request: ReceivedRequest) -> Script:
        parts = urlsplit(request.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        if request.method == "POST":
            return response(self._charge(request.json))
        if parts.path in self.lists:
            return response(self._list(self.lists[parts.path], query))
        *_, kind, charge_id = parts.path.split("/")
        if kind == "charges":
            found = [each for each in self.charges if each["id"] == charge_id]
            return response(found[0]) if found else response(error("not_found"), 404)
        return Reply(302, {"Location": self._authorise(charge_id, is_refused="refuse" in query)})

    def add(self, order_id: str, at: datetime, **changes: Any) -> Json:
        fields = {"id": f"chrg_{len(self.charges)}", "created_at": time_text(at)}
        self.charges.append(charge(order_id, **fields | changes))
        return self.charges[-1]

    def _charge(self, body: Json) -> Json:
        changes: Json = {"amount": body["amount"], "currency": body["currency"].upper()}
        if body["card"] == SECURED_TOKEN:
            uri = f"{self.base_url}/authorize/chrg_{len(self.charges)}"
            changes |= {"status": "pending", "authorize_uri": uri, "paid": False, "paid_at": None}
        added = self.add(body["metadata"]["order_id"], clock.now(), **changes)
        self.return_uris[added["id"]] = body["return_uri"]
        return added

    def _list(self, rows: list[Json], query: Json) -> Json:
        self.pages.append(query)
        first, last = 0, len(rows)
        if "from" in query:
            first = bisect_left(rows, _second(query["from"], rounds_up=True), key=_created_at)
        if "to" in query:
            last = bisect_right(rows, _second(query["to"]), key=_created_at)
        found, offset = rows[first:last], int(query["offset"])
        if query.get("order") == "reverse_chronological":
            found.reverse()
        page = found[offset : offset + min(int(query["limit"]), self.page_limit)]
        return listing(*([] if self.hides_rows else page), total=len(found))

    def _find(self, charge_id: str) -> Json:
        return next(each for each in self.charges if each["id"] == charge_id)

    def _authorise(self, charge_id: str, *, is_refused: bool) -> str:
        """Store the payer's decision. Returns the URL to which the browser goes."""
        refused = {"status": "failed", "failure_code": "payment_rejected"}
        paid = {"status": "successful", "paid": True, "paid_at": clock.iso(clock.now())}
        self._find(charge_id).update(refused if is_refused else paid)
        return self.return_uris[charge_id]
