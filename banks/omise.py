"""Opn Payments (Omise): cards by token. Amounts in satang; times in UTC.

Sources: docs.omise.co, pages charges-api, refunds-api, api-errors and api-versioning, and the failure codes
of its client libraries. A charge and a refund have our id in their metadata, by which we find them again. Our
id is also the `Idempotency-Key`, but Opn keeps that for a day only, so we never send a request again because
of it.
"""

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import ClassVar

from banks import http_client, omise_objects, omise_settlements, paging
from banks.base import (
    AcquirerTransfer,
    ChargeRequest,
    ChargeResult,
    DeclineCode,
    LedgerCopy,
    TokenErrorCode,
    TransferOrder,
    TransferResult,
)
from banks.http_client import CallFailed, Response
from banks.omise_objects import ORDER_ID_KEY
from banks.paging import Json, TooManyRows
from core import clock
from core.failures import REJECTED_BY_ACQUIRER

log = logging.getLogger("banks")
VERSION = "2019-05-29"
CONNECT_SECONDS, READ_SECONDS = 3.0, 10.0
# The limits of one search in pages and seconds.
MAX_PAGES, SEARCH_SECONDS = 40, 8.0
# A charge is searched in these time ranges, the likeliest first, in seconds after the second in which we
# stored it. A call begins within 30 s and takes 13 s; the rest allows for a minute between the two clocks.
# The ranges overlap by a second, because Opn's times have no fractions.
SEARCH_WINDOWS = ((-1, 4), (3, 15), (14, 60), (-60, 0), (59, 120))
MAX_URI_LENGTH = 1_000
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


class Omise:
    title = "Opn"
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
        second, pages = starts_at.replace(microsecond=0), paging.pages(MAX_PAGES, SEARCH_SECONDS)
        for begin, end in SEARCH_WINDOWS:
            times = [clock.iso(second + timedelta(seconds=seconds)) for seconds in (begin, end)]
            params = dict(zip(("from", "to"), times, strict=True))
            if found := self._find_in_list("/charges", order_id, params, pages):
                return found
        return None

    def _find_in_list(self, path: str, order_id: str, params: Json, pages: Iterator[int]) -> Json | None:
        """Read the pages of a list until one has an object with our id. Raises TooManyRows, CallFailed."""
        rows = paging.rows_of_pages(self._get, path, params, pages)
        return next((row for row in rows if omise_objects.order_id_of(row) == order_id), None)

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
            found = self._find_in_list(path, order.order_id, {}, paging.pages(MAX_PAGES, SEARCH_SECONDS))
            return _parse_refund(found) if found else TransferResult("unknown")
        except (CallFailed, TooManyRows):
            return TransferResult("unknown")

    def settlements(self, since: datetime, until: datetime, ledger: LedgerCopy) -> list[AcquirerTransfer]:
        return omise_settlements.read(self._get, since, until, ledger)

    def _get(self, path: str, params: Json) -> Response:
        return self._request("GET", path, params=params)

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
            fee, fee_vat = omise_objects.parse_fees(data)
            return ChargeResult("succeeded", **known, paid_at=paid_at, fee=fee, fee_vat=fee_vat)
        if status in UNPAID_STATUSES:
            code = data.get("failure_code") or ""
            return ChargeResult("declined", **known, failure_code=DECLINES.get(code, "processing_error"))
        if status == "pending":
            return ChargeResult("pending", **known, authorize_uri=_safe_uri(data.get("authorize_uri")))
        return ChargeResult("unknown", **known)
    except (KeyError, TypeError, ValueError, AttributeError):
        return ChargeResult("unknown")


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
