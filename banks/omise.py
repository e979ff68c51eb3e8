"""Opn Payments (Omise): cards by token. Amounts in satang; times in UTC.

Sources: docs.omise.co, pages charges-api, refunds-api, api-errors and api-versioning, and the
failure codes of its client libraries. A charge and a refund carry our id in their metadata, by which they are
found again, and as `Idempotency-Key`, which is kept there for a day; nothing is sent twice on its strength.
"""

import logging
from datetime import datetime, timedelta
from typing import Any

from banks import http_client
from banks.acquirers import ChargeRequest, ChargeResult, DeclineCode, TokenErrorCode
from banks.base import TransferOrder, TransferResult
from banks.http_client import NoResponse, NotSent, Response
from core import clock
from core.deadlines import Deadline

log = logging.getLogger("banks")
Json = dict[str, Any]
VERSION = "2019-05-29"
CONNECT_SECONDS, READ_SECONDS = 3.0, 10.0
# Their lists: rows on a page, and how many pages and seconds one search may take.
PAGE_SIZE, MAX_PAGES, SEARCH_SECONDS = 100, 40, 8.0
# A charge is looked for in these spans, in seconds around the second in which we wrote it down, the likeliest
# first. A call begins within 30 s of that and takes 13; the rest allows for two clocks a minute apart. Spans
# overlap by a second, because their times have no fractions.
SEARCH_WINDOWS = ((-1, 4), (3, 15), (14, 60), (-60, 0), (59, 120))
MAX_URI_LENGTH = 1_000
ORDER_ID_KEY = "order_id"  # the name of our id in their metadata

DECLINES: dict[str, DeclineCode] = {
    "insufficient_fund": "insufficient_funds",
    "insufficient_balance": "insufficient_funds",
    "stolen_or_lost_card": "card_declined",
    "payment_rejected": "card_declined",
    "invalid_security_code": "card_declined",
    "failed_fraud_check": "card_declined",
    "invalid_account_number": "card_declined",
    "invalid_account": "card_declined",
    "payment_cancelled": "card_declined",
    "failed_processing": "processing_error",
    "timeout": "processing_error",
}
# Error objects in the place of a charge: nothing was tried.
TOKEN_ERRORS: dict[str, TokenErrorCode] = {
    "used_token": "token_already_used",
    "invalid_card_token": "invalid_token_id",
    "invalid_card": "invalid_token_id",
    "not_found": "invalid_token_id",
}
# Theirs: it was tried, or stopped before the bank; the customer's card, or our account there, is at fault.
DECLINE_ERRORS: dict[str, DeclineCode] = {
    "failed_fraud_check": "card_declined",
    "brand_not_supported": "card_declined",
}
UNPAID_STATUSES = {"failed", "expired", "reversed"}
REFUNDED_STATUSES = {"closed", "voided"}


class TooManyRows(Exception):
    """A list is longer than one search may read: what was not found in it may still be there."""


class _Search:
    """How far one search has come, in pages and in time."""

    def __init__(self) -> None:
        self._pages = 0
        self._deadline = Deadline.after(SEARCH_SECONDS)

    def next_page(self) -> None:
        """Raises TooManyRows."""
        self._pages += 1
        if self._pages > MAX_PAGES or self._deadline.is_past:
            raise TooManyRows


class Omise:
    seconds = CONNECT_SECONDS + READ_SECONDS + 2.0

    def __init__(self, secret_key: str, url: str) -> None:
        self._secret_key, self._url = secret_key, url

    def charge(self, charge: ChargeRequest) -> ChargeResult:
        body = {
            "amount": charge.amount,
            "currency": "thb",
            "card": charge.token,
            "description": charge.order_id,
            "metadata": {ORDER_ID_KEY: charge.order_id},
            "return_uri": charge.return_uri,
        }
        try:
            response = self._request("POST", "/charges", body, key=charge.order_id)
        except NotSent:
            return ChargeResult("not_sent")
        except NoResponse:
            return ChargeResult("unknown")
        return _parse_charge(response.data) if response.status == 200 else _parse_error(response)

    def find(self, order_id: str, *, charge_id: str, starts_at: datetime) -> ChargeResult:
        """By its id, else by ours among all charges of that time: their search may not know it yet."""
        try:
            if charge_id:
                response = self._request("GET", f"/charges/{charge_id}")
                return _parse_charge(response.data) if response.status == 200 else ChargeResult("unknown")
            found = self._in_time(order_id, starts_at)
            return _parse_charge(found) if found else ChargeResult("missing")
        except TooManyRows:
            log.error("charge %s is not found: too many charges at that time, look for it there", order_id)
            return ChargeResult("unknown")
        except (NotSent, NoResponse):
            return ChargeResult("unknown")

    def _in_time(self, order_id: str, starts_at: datetime) -> Json | None:
        """Ours among all charges of its time. Raises TooManyRows."""
        second, search = starts_at.replace(microsecond=0), _Search()
        for begin, end in SEARCH_WINDOWS:
            span = {
                "from": clock.iso(second + timedelta(seconds=begin)),
                "to": clock.iso(second + timedelta(seconds=end)),
            }
            if found := self._among("/charges", order_id, span, search):
                return found
        return None

    def _among(self, path: str, order_id: str, body: Json, search: "_Search") -> Json | None:
        """Ours in one of their lists, page after page to its end. Raises TooManyRows, NoResponse."""
        read = 0
        while True:
            search.next_page()
            rows, total = _parse_list(
                self._request("GET", path, params=body | {"limit": PAGE_SIZE, "offset": read})
            )
            if found := _find_by_order_id(rows, order_id):
                return found
            read += len(rows)
            if read >= total:
                return None
            if not rows:  # rows that are said to be there and are not shown prove nothing
                raise NoResponse()

    def send(self, order: TransferOrder) -> TransferResult:
        body = {"amount": order.amount, "metadata": {ORDER_ID_KEY: order.order_id}}
        try:
            response = self._request("POST", f"/charges/{order.charge_id}/refunds", body, key=order.order_id)
        except NotSent:
            return TransferResult("not_sent")
        except NoResponse:
            return TransferResult("unknown")
        if response.status in (400, 404, 422):
            return TransferResult("failed", failure_code="rejected_by_acquirer")
        return _parse_refund(response.data) if response.status == 200 else _failed_refund(response)

    def inquire(self, order: TransferOrder) -> TransferResult:
        """Among the refunds of its charge. One that is not there proves nothing: it may be on its way."""
        try:
            path = f"/charges/{order.charge_id}/refunds"
            found = self._among(path, order.order_id, {}, _Search())
            return _parse_refund(found) if found else TransferResult("unknown")
        except (NotSent, NoResponse, TooManyRows):
            return TransferResult("unknown")

    def _request(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        key: str = "",
        params: Json | None = None,
    ) -> Response:
        return http_client.request(
            method,
            self._url + path,
            json=body,
            params=params,
            headers={"Omise-Version": VERSION} | ({"Idempotency-Key": key} if key else {}),
            auth=(self._secret_key, ""),
            timeout=(CONNECT_SECONDS, READ_SECONDS),
        )


def _parse_error(response: Response) -> ChargeResult:
    """An error object. What is our own fault, such as a wrong key, was surely not tried."""
    code, message = str(response.data.get("code")), str(response.data.get("message"))
    if response.status >= 500 or response.data.get("object") != "error":
        return ChargeResult("unknown")
    if code == "invalid_card" and "expir" in message:
        return ChargeResult("declined", failure_code="expired_card")
    if code in TOKEN_ERRORS:
        return ChargeResult("refused", failure_code=TOKEN_ERRORS[code])
    if code not in DECLINE_ERRORS:
        log.error("the acquirer did not take a charge: %s", code)
    return ChargeResult("declined", failure_code=DECLINE_ERRORS.get(code, "processing_error"))


def _failed_refund(response: Response) -> TransferResult:
    return TransferResult("not_sent") if response.status in (401, 403, 429) else TransferResult("unknown")


def _parse_charge(data: Json) -> ChargeResult:
    """A charge object. One that waits for the customer (3-D Secure) is pending."""
    try:
        return _read_charge(data)
    except (KeyError, TypeError, ValueError, AttributeError):
        return ChargeResult("unknown")


def _read_charge(data: Json) -> ChargeResult:
    status, card = data["status"], data.get("card") or {}
    known: Json = {
        "charge_id": data["id"],
        "brand": _brand(card.get("brand")),
        "last4": card.get("last_digits") or "",
        "amount": data["amount"],
        "currency": str(data["currency"]).upper(),
    }
    if status == "successful":
        return ChargeResult("succeeded", **known, paid_at=_paid_at(data))
    if status in UNPAID_STATUSES:
        code = data.get("failure_code") or ""
        return ChargeResult("declined", **known, failure_code=DECLINES.get(code, "processing_error"))
    if status == "pending":
        return ChargeResult("pending", **known, authorize_uri=_safe_uri(data.get("authorize_uri")))
    return ChargeResult("unknown", **known)


def _safe_uri(uri: str | None) -> str:
    """A page that a browser may be sent to; empty for anything else."""
    return uri if uri and len(uri) <= MAX_URI_LENGTH and uri.startswith(("https://", "http://")) else ""


def _paid_at(data: Json) -> datetime:
    return datetime.fromisoformat(data.get("paid_at") or data["created_at"])


def _brand(data: str | None) -> str:
    """`American Express` is `amex` everywhere else."""
    name = (data or "").lower().replace(" ", "")
    return {"americanexpress": "amex", "unionpayinternational": "unionpay"}.get(name, name)[:20]


def _parse_refund(data: Json) -> TransferResult:
    status, reference = data.get("status"), str(data.get("id", ""))
    if status in REFUNDED_STATUSES:
        return TransferResult("succeeded", reference)
    if status == "failed":
        return TransferResult("failed", reference, "rejected_by_acquirer")
    return TransferResult("processing" if status == "pending" else "unknown", reference)


def _parse_list(response: Response) -> tuple[list[Json], int]:
    """The rows of a page, and of the whole list.

    Raises NoResponse for what is no list, such as an error: nothing can be concluded from that.
    """
    found = response.data.get("data") if response.status == 200 else None
    total = response.data.get("total")
    if not isinstance(found, list) or not isinstance(total, int):
        raise NoResponse()
    return [each for each in found if isinstance(each, dict)], total


def _find_by_order_id(rows: list[Json], order_id: str) -> Json | None:
    return next((each for each in rows if (each.get("metadata") or {}).get(ORDER_ID_KEY) == order_id), None)
