"""The sandbox bank: signed JSON, amounts in baht as text, times in Bangkok, as Thai banks send them."""

import hmac
import logging
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar, get_args
from urllib.parse import urlencode

import orjson

from banks import http_client, parsing
from banks.base import (
    FinalStatus,
    InquiryFailed,
    InquiryRequest,
    InquiryResult,
    InvalidSignature,
    ReportedTransaction,
    ReportedTransfer,
    ResultStatus,
    SlipTransfer,
    TransactionKind,
    TransferOrder,
    TransferPurpose,
    TransferResult,
    UnreadableMessage,
)
from banks.http_client import CallFailed, Response
from core import clock, money
from core.failures import INVALID_ACCOUNT, REJECTED_BY_BANK, RETURNED_BY_BANK
from core.thai.slips import Slip

log = logging.getLogger("banks")
CONNECT_SECONDS, READ_SECONDS = 2, 5
API_PATH = "/sandbox/bank/v1"
SIGNATURE_HEADER = "Sandbox-Bank-Signature"
SIGNATURE_TOLERANCE = timedelta(minutes=5)
KINDS: dict[str, TransactionKind] = {each: each for each in get_args(TransactionKind)}
ORDER_TYPES: dict[TransferPurpose, str] = {"refund": "refund", "withdrawal": "payout", "return": "refund"}
FINAL_STATUSES: dict[str, FinalStatus] = {each: each for each in get_args(FinalStatus)}
STATUSES: dict[str, ResultStatus] = {"processing": "processing", **FINAL_STATUSES}
# The bank's reasons for a failure as our failure codes; all others are `rejected_by_bank`.
FAILURE_CODES = {"account_not_found": INVALID_ACCOUNT}
# HTTP statuses with which the bank refuses an order for good, and with which it surely did not read it.
FINAL_REFUSAL_STATUSES, NOT_ACCEPTED_STATUSES = {400, 422}, {401, 403, 404, 429}
_SIGNATURE = re.compile("t=([0-9]{1,11}),v1=([0-9a-f]{64})")
_TRANSACTION_PATTERNS = {
    "transaction_id": re.compile("[!-~]{1,64}"),
    "type": re.compile("|".join(KINDS)),
    "biller_id": re.compile("[0-9]{13}|[0-9]{15}"),
    "reference1": re.compile("[ -~]{1,35}"),
    "reference2": re.compile("[ -~]{0,35}"),
    "reference3": re.compile("[ -~]{0,35}"),
    "amount": re.compile(r"[0-9]+\.[0-9]{2}"),
    "currency": re.compile(money.CURRENCY),
    "paid_at": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{3})?\+07:00"),
    "payer_name": re.compile(parsing.NAME_PATTERN),
    "payer_bank_code": re.compile("[0-9]{3}"),
    "payer_account": re.compile("[0-9]{10,15}|"),
    "slip_reference": re.compile("[A-Za-z0-9]{15,25}|"),
}
_ORDER_PATTERNS = {
    "reference": re.compile("[!-~]{1,64}"),
    "bank_reference": re.compile("[!-~]{1,64}"),
    "amount": re.compile("[0-9.]{1,13}"),
    "currency": re.compile(money.CURRENCY),
    "status": re.compile("|".join(STATUSES)),
    "reason": re.compile("[a-z_]{0,30}"),
}
_FINAL_ORDER_PATTERNS = _ORDER_PATTERNS | {"status": re.compile("|".join(FINAL_STATUSES))}


class _SandboxClient:
    """Signed requests to the sandbox bank. base_url: only for requests, not for notifications."""

    def __init__(self, secret: str, base_url: str = "") -> None:
        self._secret, self._base_url = secret.encode(), base_url

    def _request(self, method: str, path: str, body: bytes = b"") -> Response:
        """path: within the bank's API, with its query. Raises CallFailed."""
        path, sent_at = API_PATH + path, str(int(clock.now().timestamp()))
        signature = self._signature(sent_at, f"{method} {path}.".encode() + body)
        return http_client.request(
            method,
            self._base_url + path,
            data=body,
            headers={"Content-Type": "application/json", SIGNATURE_HEADER: f"t={sent_at},v1={signature}"},
            bank="sandbox",
            timeout=(CONNECT_SECONDS, READ_SECONDS),
            is_internal=True,
        )

    def _signature(self, sent_at: str, message: bytes) -> str:
        return hmac.digest(self._secret, sent_at.encode() + b"." + message, "sha256").hex()


class SandboxBank(_SandboxClient):
    code = "998"  # no bank in Thailand has it
    signs_callbacks: bool = True
    calls_per_second: float = 50.0

    def verify(self, *, headers: Mapping[str, str], body: bytes, now: datetime) -> None:
        """`Sandbox-Bank-Signature: t=<unix seconds>,v1=<hex HMAC-SHA256 of "<t>.<body>">`."""
        match = _SIGNATURE.fullmatch(headers.get(SIGNATURE_HEADER, ""))
        if not match:
            raise InvalidSignature()
        sent_at, signature = match.groups()
        if not hmac.compare_digest(signature, self._signature(sent_at, body)):
            raise InvalidSignature()
        if abs(now.timestamp() - int(sent_at)) > SIGNATURE_TOLERANCE.total_seconds():
            raise InvalidSignature()

    def parse_notification(self, body: bytes) -> ReportedTransaction | ReportedTransfer:
        """Unknown fields are ignored. All known fields are required."""
        try:
            data = parsing.parse_json(body)
            if data.get("type") != "order":
                return _parse_transaction(data)
            text = parsing.matching_texts(data, _FINAL_ORDER_PATTERNS)
            status = FINAL_STATUSES[text["status"]]
            return ReportedTransfer(text["reference"], status, text["bank_reference"], _failure_code(text))
        except ValueError as error:
            raise UnreadableMessage(str(error)) from None

    def acknowledge(self, transaction: ReportedTransaction | ReportedTransfer | None) -> dict[str, str]:
        return {"status": "received" if transaction else "held"}

    @staticmethod
    def calls_needed(inquiry: InquiryRequest) -> int:
        return 1

    def inquire(self, inquiry: InquiryRequest) -> InquiryResult:
        query = {
            "biller_id": inquiry.biller_id,
            "reference1": inquiry.reference1,
            "since": clock.iso(inquiry.starts_at),
            "until": clock.iso(inquiry.ends_at),
        }
        result, code = self._find("/transactions", query), (inquiry.biller_id, inquiry.reference1)
        if any((each.biller_id, each.reference1) != code for each in result.transactions):
            raise UnreadableMessage("the answer is about another code", body=result.body)
        return result

    def look_up_slip(self, slip: Slip) -> SlipTransfer | None:
        query = {"sending_bank": slip.sending_bank, "reference": slip.transaction_id}
        transactions = self._find("/slips", query).transactions
        if any([each.payer_bank_code, each.slip_reference] != [*query.values()] for each in transactions):
            raise UnreadableMessage("the answer is about another slip")
        return next((_slip_transfer(each) for each in transactions if each.kind == "credit"), None)

    def _find(self, path: str, query: Mapping[str, str]) -> InquiryResult:
        """Raises InquiryFailed, UnreadableMessage."""
        try:
            response = self._request("GET", f"{path}?{urlencode(query)}")
        except CallFailed as error:
            raise InquiryFailed(type(error).__name__, cause=error.cause) from None
        if response.status != 200:
            log.warning("the sandbox bank answered an inquiry with %s", response.status)
            cause = http_client.cause_of_status(response.status)
            raise InquiryFailed(f"HTTP {response.status}", cause=cause)
        try:
            return InquiryResult(response.body, _parse_transactions(response.data))
        except ValueError as error:
            raise UnreadableMessage(str(error), body=response.body) from None


class SandboxSender(_SandboxClient):
    """Refunds, withdrawals and returns through the sandbox bank."""

    IS_VOID_ONLY: ClassVar[bool] = False

    def send(self, order: TransferOrder) -> TransferResult:
        """The bank executes an order once, however often it gets the same id."""
        body = {
            "reference": order.order_id,
            "type": ORDER_TYPES[order.purpose],
            "amount": money.baht(order.amount),
            "currency": money.CURRENCY,
            "bank_code": order.bank_code,
            "account": order.account,
            "account_name": order.account_name,
        }
        try:
            response = self._request("POST", "/orders", orjson.dumps(body))
        except CallFailed as failure:
            return TransferResult(failure.outcome)
        if response.status in FINAL_REFUSAL_STATUSES:
            return TransferResult("failed", failure_code=REJECTED_BY_BANK)
        if response.status in NOT_ACCEPTED_STATUSES:
            return TransferResult("not_sent")
        return _parse_result(response, order)

    def inquire(self, order: TransferOrder) -> TransferResult:
        """Return `unknown` if the bank does not have the order, because it may still arrive."""
        try:
            response = self._request("GET", f"/orders/{order.order_id}")
        except CallFailed:
            return TransferResult("unknown")
        if response.status == 404:
            log.warning("the sandbox bank does not know order %s", order.order_id)
        return _parse_result(response, order)


def _parse_transactions(data: Mapping[str, Any]) -> tuple[ReportedTransaction, ...]:
    found = data.get("transactions")
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ValueError("transactions is missing or malformed")
    return tuple(_parse_transaction(each) for each in found)


def _parse_transaction(data: Mapping[str, Any]) -> ReportedTransaction:
    # Banks need not report the slip.
    text = parsing.matching_texts({"slip_reference": "", **data}, _TRANSACTION_PATTERNS)
    return ReportedTransaction(
        bank_reference=text["transaction_id"],
        kind=KINDS[text["type"]],
        biller_id=text["biller_id"],
        reference1=text["reference1"],
        reference2=text["reference2"],
        reference3=text["reference3"],
        amount=parsing.parse_amount(text["amount"]),
        paid_at=parsing.parse_instant(text["paid_at"]),
        payer_name=text["payer_name"],
        payer_bank_code=text["payer_bank_code"],
        payer_account=text["payer_account"],
        slip_reference=text["slip_reference"],
    )


def _slip_transfer(credit: ReportedTransaction) -> SlipTransfer:
    payee = f"biller {credit.biller_id}"
    references = credit.reference1, credit.reference2, credit.reference3
    return SlipTransfer(credit.amount, credit.paid_at, payee, credit.biller_id, *references)


def _parse_result(response: Response, order: TransferOrder) -> TransferResult:
    """The result in an answer; unknown unless it is about this order."""
    if response.status != 200:
        return TransferResult("unknown")
    try:
        text = parsing.matching_texts(response.data, _ORDER_PATTERNS)
    except ValueError:
        return TransferResult("unknown")
    if (text["reference"], text["amount"]) != (order.order_id, money.baht(order.amount)):
        return TransferResult("unknown")
    return TransferResult(STATUSES[text["status"]], text["bank_reference"], _failure_code(text))


def _failure_code(text: Mapping[str, str]) -> str:
    if text["status"] == "returned":
        return RETURNED_BY_BANK
    return FAILURE_CODES.get(text["reason"], REJECTED_BY_BANK) if text["status"] == "failed" else ""
