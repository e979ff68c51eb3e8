"""Money out through the sandbox bank: signed JSON over HTTP, amounts in baht as text."""

import hmac
import logging
import re
from collections.abc import Mapping
from typing import Any

import orjson

from banks import http_client, parsing
from banks.base import (
    FinalStatus,
    ReportedTransfer,
    ResultStatus,
    TransferOrder,
    TransferPurpose,
    TransferResult,
)
from banks.http_client import NoResponse, NotSent, Response
from core import clock, money

log = logging.getLogger("banks")
SIGNATURE = "Sandbox-Bank-Signature"
PATH = "/sandbox/bank/v1/orders"
CONNECT_SECONDS, READ_SECONDS = 2, 5
TYPES: dict[TransferPurpose, str] = {"refund": "refund", "withdrawal": "payout", "return": "refund"}
FINAL_STATUSES: dict[str, FinalStatus] = {
    "succeeded": "succeeded",
    "failed": "failed",
    "returned": "returned",
}
STATUSES: dict[str, ResultStatus] = {"processing": "processing", **FINAL_STATUSES}
# The bank's reasons for a failure in our words; others are `rejected_by_bank`.
FAILURE_CODES = {"account_not_found": "invalid_account"}
CODE_REJECTED, CODE_RETURNED = "rejected_by_bank", "returned_by_bank"
UNKNOWN = TransferResult("unknown")
_PATTERNS = {
    "reference": re.compile("[!-~]{1,64}"),
    "bank_reference": re.compile("[!-~]{1,64}"),
    "amount": re.compile("[0-9.]{1,13}"),
    "currency": re.compile(money.CURRENCY),
    "status": re.compile("|".join(STATUSES)),
    "reason": re.compile("[a-z_]{0,30}"),
}
_FINAL_PATTERNS = _PATTERNS | {"status": re.compile("|".join(FINAL_STATUSES))}
# Statuses that say of an order that it will never be carried out, and that it was not even looked at.
FINAL_REFUSAL_STATUSES, NOT_ACCEPTED_STATUSES = {400, 422}, {401, 403, 404, 429}


class SandboxSender:
    def __init__(self, secret: str, base_url: str) -> None:
        self._secret = secret.encode()
        self._base_url = base_url

    def send(self, order: TransferOrder) -> TransferResult:
        """The bank does an order once, however often it is told: it knows it by our id."""
        try:
            response = self._ask("POST", PATH, orjson.dumps(_order_body(order)))
        except NotSent:
            return TransferResult("not_sent")
        except NoResponse:
            return UNKNOWN
        if response.status in FINAL_REFUSAL_STATUSES:
            return TransferResult("failed", failure_code=CODE_REJECTED)
        return (
            TransferResult("not_sent")
            if response.status in NOT_ACCEPTED_STATUSES
            else _parse_result(response, order)
        )

    def inquire(self, order: TransferOrder) -> TransferResult:
        """A bank that knows nothing of the order proves nothing: it may still be on its way."""
        try:
            response = self._ask("GET", f"{PATH}/{order.order_id}", b"")
        except (NotSent, NoResponse):
            return UNKNOWN
        if response.status == 404:
            log.warning("the sandbox bank does not know order %s", order.order_id)
        return _parse_result(response, order)

    def _ask(self, method: str, path: str, body: bytes) -> Response:
        return http_client.request(
            method,
            self._base_url + path,
            data=body,
            headers={"Content-Type": "application/json", SIGNATURE: sign(self._secret, method, path, body)},
            timeout=(CONNECT_SECONDS, READ_SECONDS),
            is_internal=True,
        )


def sign(secret: bytes, method: str, path: str, body: bytes) -> str:
    """The value of the signature header on what we ask of the bank. path: with its query."""
    sent_at = str(int(clock.now().timestamp()))
    signed = f"{sent_at}.{method} {path}.".encode() + body
    return f"t={sent_at},v1={hmac.digest(secret, signed, 'sha256').hex()}"


def _order_body(order: TransferOrder) -> dict[str, str]:
    return {
        "reference": order.order_id,
        "type": TYPES[order.purpose],
        "amount": money.baht(order.amount),
        "currency": money.CURRENCY,
        "bank_code": order.bank_code,
        "account": order.account,
        "account_name": order.account_name,
    }


def parse_transfer(data: Mapping[str, Any]) -> ReportedTransfer:
    """What the bank says of an order of its own accord. Raises ValueError."""
    text = parsing.matching_texts(data, _FINAL_PATTERNS)
    status = FINAL_STATUSES[text["status"]]
    return ReportedTransfer(text["reference"], status, text["bank_reference"], _failure_code(text))


def _parse_result(response: Response, order: TransferOrder) -> TransferResult:
    """What an answer says, if it is one and speaks of this order."""
    if response.status != 200:
        return UNKNOWN
    try:
        text = parsing.matching_texts(response.data, _PATTERNS)
    except ValueError:
        return UNKNOWN
    if (text["reference"], text["amount"]) != (order.order_id, money.baht(order.amount)):
        return UNKNOWN
    return TransferResult(STATUSES[text["status"]], text["bank_reference"], _failure_code(text))


def _failure_code(text: Mapping[str, str]) -> str:
    if text["status"] == "returned":
        return CODE_RETURNED
    return FAILURE_CODES.get(text["reason"], CODE_REJECTED) if text["status"] == "failed" else ""
