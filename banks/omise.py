"""Opn Payments (Omise): cards by token. Amounts in satang; times in UTC.

Sources: docs.omise.co, pages charges-api, refunds-api, api-errors and api-versioning, and the failure codes
of its client libraries. A charge and a refund have our id in their metadata, by which we find them again. Our
id is also the `Idempotency-Key`, but Opn keeps that for a day only, so we never send a request again because
of it.
"""

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, ClassVar

from banks import http_client
from banks.base import ChargeRequest, ChargeResult, DeclineCode, TokenErrorCode, TransferOrder, TransferResult
from banks.http_client import CallFailed, NoResponse, Response
from core import clock
from core.deadlines import Deadline
from core.failures import REJECTED_BY_ACQUIRER

log = logging.getLogger("banks")
Json = dict[str, Any]
VERSION = "2019-05-29"
CONNECT_SECONDS, READ_SECONDS = 3.0, 10.0
# Rows on a page of a list, and the limits of one search in pages and seconds.
PAGE_SIZE, MAX_PAGES, SEARCH_SECONDS = 100, 40, 8.0
# A charge is searched in these time ranges, the likeliest first, in seconds after the second in which we
# stored it. A call begins within 30 s and takes 13 s; the rest allows for a minute between the two clocks.
# The ranges overlap by a second, because Opn's times have no fractions.
SEARCH_WINDOWS = ((-1, 4), (3, 15), (14, 60), (-60, 0), (59, 120))
MAX_URI_LENGTH = 1_000
ORDER_ID_KEY = "order_id"  # the name of our id in the metadata
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
# Codes of error objects that mean that the token is invalid and nothing was tried.
TOKEN_ERRORS: dict[str, TokenErrorCode] = {
    "used_token": "token_already_used",
    "invalid_card_token": "invalid_token_id",
    "invalid_card": "invalid_token_id",
    "not_found": "invalid_token_id",
}
# Codes of error objects that mean that the card was declined.
DECLINE_ERRORS: dict[str, DeclineCode] = {
    "failed_fraud_check": "card_declined",
    "brand_not_supported": "card_declined",
}
UNPAID_STATUSES = {"failed", "expired", "reversed"}
REFUNDED_STATUSES = {"closed", "voided"}


class TooManyRows(Exception):
    """A list is longer than one search may read, so a charge that was not found may still be in it."""


def _pages_of_search() -> Iterator[int]:
    """A number for each page that one search may read. Raises TooManyRows after the last one, or too late."""
    deadline = Deadline.after(SEARCH_SECONDS)
    for number in range(MAX_PAGES):
        if deadline.is_past:
            break
        yield number
    raise TooManyRows


class Omise:
    IS_VOID_ONLY: ClassVar[bool] = False
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
        except CallFailed as failure:
            return ChargeResult(failure.outcome)
        return _parse_charge(response.data) if response.status == 200 else _parse_error(response)

    def find(self, order_id: str, *, charge_id: str, starts_at: datetime) -> ChargeResult:
        """By the charge id, or by our id among all charges of that time: Opn's search index may be behind."""
        try:
            if charge_id:
                response = self._request("GET", f"/charges/{charge_id}")
                return _parse_charge(response.data) if response.status == 200 else ChargeResult("unknown")
            found = self._find_by_time(order_id, starts_at)
            return _parse_charge(found) if found else ChargeResult("missing")
        except TooManyRows:
            log.error(
                "charge %s is not found: too many charges at that time, search it in the dashboard", order_id
            )
            return ChargeResult("unknown")
        except CallFailed:
            return ChargeResult("unknown")

    def _find_by_time(self, order_id: str, starts_at: datetime) -> Json | None:
        """Raises TooManyRows, CallFailed."""
        second, pages = starts_at.replace(microsecond=0), _pages_of_search()
        for begin, end in SEARCH_WINDOWS:
            times = [clock.iso(second + timedelta(seconds=seconds)) for seconds in (begin, end)]
            params = dict(zip(("from", "to"), times, strict=True))
            if found := self._find_in_list("/charges", order_id, params, pages):
                return found
        return None

    def _find_in_list(self, path: str, order_id: str, params: Json, pages: Iterator[int]) -> Json | None:
        """Read the pages of a list until one has an object with our id. Raises TooManyRows, CallFailed."""
        read = 0
        for _ in pages:
            page = {"limit": PAGE_SIZE, "offset": read}
            rows, total = _parse_list(self._request("GET", path, params=params | page))
            for row in rows:
                if (row.get("metadata") or {}).get(ORDER_ID_KEY) == order_id:
                    return row
            read += len(rows)
            if read >= total:
                return None
            if not rows:  # the list is incomplete, so a missing object proves nothing
                raise NoResponse()
        return None

    def send(self, order: TransferOrder) -> TransferResult:
        body = {"amount": order.amount, "metadata": {ORDER_ID_KEY: order.order_id}}
        try:
            response = self._request("POST", f"/charges/{order.charge_id}/refunds", body, key=order.order_id)
        except CallFailed as failure:
            return TransferResult(failure.outcome)
        if response.status in (400, 404, 422):
            return TransferResult("failed", failure_code=REJECTED_BY_ACQUIRER)
        if response.status in (401, 403, 429):
            return TransferResult("not_sent")
        return _parse_refund(response.data) if response.status == 200 else TransferResult("unknown")

    def inquire(self, order: TransferOrder) -> TransferResult:
        """Search the refunds of the charge. A missing one is unknown, because the order may still arrive."""
        try:
            path = f"/charges/{order.charge_id}/refunds"
            found = self._find_in_list(path, order.order_id, {}, _pages_of_search())
            return _parse_refund(found) if found else TransferResult("unknown")
        except (CallFailed, TooManyRows):
            return TransferResult("unknown")

    def _request(
        self, method: str, path: str, body: Json | None = None, *, key: str = "", params: Json | None = None
    ) -> Response:
        return http_client.request(
            method,
            self._url + path,
            json=body,
            params=params,
            headers={"Omise-Version": VERSION} | ({"Idempotency-Key": key} if key else {}),
            auth=(self._secret_key, ""),
            bank="omise",
            timeout=(CONNECT_SECONDS, READ_SECONDS),
        )


def _parse_error(response: Response) -> ChargeResult:
    """Read an error object. After an error of ours, such as a wrong key, nothing was tried."""
    code, message = str(response.data.get("code")), str(response.data.get("message"))
    if response.status >= 500 or response.data.get("object") != "error":
        return ChargeResult("unknown")
    if code == "invalid_card" and "expir" in message:
        return ChargeResult("declined", failure_code="expired_card")
    if code in TOKEN_ERRORS:
        return ChargeResult("refused", failure_code=TOKEN_ERRORS[code])
    if code not in DECLINE_ERRORS:
        log.error("the acquirer refused a charge: %s", code)
    return ChargeResult("declined", failure_code=DECLINE_ERRORS.get(code, "processing_error"))


def _parse_charge(data: Json) -> ChargeResult:
    """Read a charge object. It is pending while the customer has not passed 3-D Secure."""
    try:
        status, card = data["status"], data.get("card") or {}
        known: Json = {
            "charge_id": data["id"],
            "brand": _brand(card.get("brand")),
            "last4": card.get("last_digits") or "",
            "amount": data["amount"],
            "currency": str(data["currency"]).upper(),
        }
        if status == "successful":
            paid_at = datetime.fromisoformat(data.get("paid_at") or data["created_at"])
            return ChargeResult("succeeded", **known, **_parse_fees(data), paid_at=paid_at)
        if status in UNPAID_STATUSES:
            code = data.get("failure_code") or ""
            return ChargeResult("declined", **known, failure_code=DECLINES.get(code, "processing_error"))
        if status == "pending":
            return ChargeResult("pending", **known, authorize_uri=_safe_uri(data.get("authorize_uri")))
        return ChargeResult("unknown", **known)
    except (KeyError, TypeError, ValueError, AttributeError):
        return ChargeResult("unknown")


def _parse_fees(data: Json) -> dict[str, int | None]:
    """The fee of a charge and its VAT, with the interest of instalments that the merchant bears."""
    fee, fee_vat = (_sum_of(data, *names) for names in (("fee", "interest"), ("fee_vat", "interest_vat")))
    if fee is None or fee_vat is None:
        return {}
    if min(fee, fee_vat) < 0 or fee + fee_vat > data["amount"]:
        log.error("the fee of charge %s is impossible: %s and VAT of %s", data["id"], fee, fee_vat)
        return {}
    return {"fee": fee, "fee_vat": fee_vat}


def _sum_of(data: Json, name: str, optional: str) -> int | None:
    """The sum of two amounts, or None if one is malformed. Only the second may be missing."""
    values = [data.get(name), 0 if data.get(optional) is None else data[optional]]
    return sum(values) if all(type(value) is int for value in values) else None


def _safe_uri(uri: str | None) -> str:
    """A URL that a browser may open; empty for anything else."""
    return uri if uri and len(uri) <= MAX_URI_LENGTH and uri.startswith(("https://", "http://")) else ""


def _brand(data: str | None) -> str:
    """The brand as other acquirers name it, such as `amex` for `American Express`."""
    name = (data or "").lower().replace(" ", "")
    return {"americanexpress": "amex", "unionpayinternational": "unionpay"}.get(name, name)[:20]


def _parse_refund(data: Json) -> TransferResult:
    status, reference = data.get("status"), str(data.get("id", ""))
    if status in REFUNDED_STATUSES:
        return TransferResult("succeeded", reference)
    if status == "failed":
        return TransferResult("failed", reference, REJECTED_BY_ACQUIRER)
    return TransferResult("processing" if status == "pending" else "unknown", reference)


def _parse_list(response: Response) -> tuple[list[Json], int]:
    """The rows of a page, and the length of the whole list.

    Raises NoResponse for anything but a list, because an error does not prove that an object is missing.
    """
    found = response.data.get("data") if response.status == 200 else None
    total = response.data.get("total")
    if not isinstance(found, list) or not isinstance(total, int):
        raise NoResponse()
    return [each for each in found if isinstance(each, dict)], total
