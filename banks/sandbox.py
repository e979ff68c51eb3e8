"""The sandbox bank: signed JSON, amounts in baht as text, times in Bangkok, as Thai banks send them."""

import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from banks import parsing, sandbox_inquiries, sandbox_orders
from banks.base import (
    InquiryRequest,
    InquiryResult,
    InvalidSignature,
    ReportedTransaction,
    ReportedTransfer,
    SlipTransfer,
    TransactionKind,
    UnreadableMessage,
)
from core import clock, money, strict_json
from core.errors import InvalidRequest
from core.slips import Slip

TOLERANCE = timedelta(minutes=5)
KINDS: dict[str, TransactionKind] = {"credit": "credit", "decline": "decline", "reversal": "reversal"}

_SIGNATURE = re.compile("t=([0-9]{1,11}),v1=([0-9a-f]{64})")
_PATTERNS = {
    "transaction_id": re.compile("[!-~]{1,64}"),
    "type": re.compile("|".join(KINDS)),
    "biller_id": re.compile("[0-9]{13}|[0-9]{15}"),
    "reference1": re.compile("[ -~]{1,35}"),
    "reference2": re.compile("[ -~]{0,35}"),
    "reference3": re.compile("[ -~]{0,35}"),
    "amount": re.compile(r"[0-9.]{1,13}"),
    "currency": re.compile(money.CURRENCY),
    "paid_at": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{3})?\+07:00"),
    "payer_name": re.compile("[^\x00-\x1f\x7f-\x9f]{0,140}"),
    "payer_bank_code": re.compile("[0-9]{3}"),
    "payer_account": re.compile("[0-9]{10,15}"),
}
# What an older bank would not tell; empty where there is no slip.
_SLIP_PATTERN = {"slip_reference": re.compile("[A-Za-z0-9]{15,25}|")}


class SandboxBank:
    """base_url: where it is asked; one that is only listened to needs none."""

    code = "998"  # of no bank in Thailand
    signs_callbacks: bool = True
    calls_per_second: float = 50.0

    def __init__(self, secret: str, base_url: str = "") -> None:
        self._secret = secret.encode()
        self._base_url = base_url

    def verify(self, *, headers: Mapping[str, str], body: bytes, now: datetime) -> None:
        """`Sandbox-Bank-Signature: t=<unix seconds>,v1=<hex HMAC-SHA256 of "<t>.<body>">`."""
        match = _SIGNATURE.fullmatch(headers.get(sandbox_orders.SIGNATURE, ""))
        if not match:
            raise InvalidSignature()
        sent_at, signature = match.groups()
        expected = hmac.digest(self._secret, sent_at.encode() + b"." + body, "sha256").hex()
        if not hmac.compare_digest(signature, expected):
            raise InvalidSignature()
        if abs(now.timestamp() - int(sent_at)) > TOLERANCE.total_seconds():
            raise InvalidSignature()

    def parse_notification(self, body: bytes) -> ReportedTransaction | ReportedTransfer:
        """Fields we do not know are ignored; those we know are all there and well-formed."""
        try:
            data = strict_json.loads(body)
            return (
                sandbox_orders.parse_transfer(data)
                if data.get("type") == "order"
                else _parse_transaction(data)
            )
        except (InvalidRequest, ValueError, OverflowError) as error:
            raise UnreadableMessage(str(error)) from None

    def acknowledge(self, transaction: ReportedTransaction | ReportedTransfer | None) -> dict[str, str]:
        return {"status": "received" if transaction else "parked"}

    @staticmethod
    def calls_needed(inquiry: InquiryRequest) -> int:
        return 1

    def inquire(self, inquiry: InquiryRequest) -> InquiryResult:
        found = self._request(sandbox_inquiries.TRANSACTIONS_PATH, sandbox_inquiries.inquiry_query(inquiry))
        body = (inquiry.biller_id, inquiry.reference1)
        if any((transaction.biller_id, transaction.reference1) != body for transaction in found.transactions):
            raise UnreadableMessage("the answer speaks of another code", body=found.body)
        return found

    def look_up_slip(self, slip: Slip) -> SlipTransfer | None:
        body = {"sending_bank": slip.sending_bank, "reference": slip.transaction_id}
        transactions = self._request(sandbox_inquiries.SLIPS_PATH, body).transactions
        if any([each.payer_bank_code, each.slip_reference] != [*body.values()] for each in transactions):
            raise UnreadableMessage("the answer speaks of another slip")
        return next((_slip_transfer(each) for each in transactions if each.kind == "credit"), None)

    def _request(self, path: str, body: Mapping[str, str]) -> InquiryResult:
        """Raises NotAnswered, Unreadable."""
        response = sandbox_inquiries.request(path, body, secret=self._secret, base_url=self._base_url)
        try:
            transactions = tuple(
                _parse_transaction(data) for data in sandbox_inquiries.transactions(response)
            )
        except (ValueError, OverflowError) as error:
            raise UnreadableMessage(str(error), body=response.body) from None
        return InquiryResult(response.body, transactions)


def _parse_transaction(data: dict[str, Any]) -> ReportedTransaction:
    text = parsing.matching_texts({"slip_reference": ""} | data, _PATTERNS | _SLIP_PATTERN)
    return ReportedTransaction(
        bank_transaction_id=text["transaction_id"],
        kind=KINDS[text["type"]],
        biller_id=text["biller_id"],
        reference1=text["reference1"],
        reference2=text["reference2"],
        reference3=text["reference3"],
        amount=_parse_amount(text["amount"]),
        paid_at=clock.to_millisecond(datetime.fromisoformat(text["paid_at"]).astimezone(UTC)),
        payer_name=text["payer_name"],
        payer_bank_code=text["payer_bank_code"],
        payer_account=text["payer_account"],
        slip_reference=text["slip_reference"],
    )


def _slip_transfer(credit: ReportedTransaction) -> SlipTransfer:
    return SlipTransfer(
        amount=credit.amount,
        transferred_at=credit.paid_at,
        payee=f"biller {credit.biller_id}",
        biller_id=credit.biller_id,
        reference1=credit.reference1,
        reference2=credit.reference2,
        reference3=credit.reference3,
    )


def _parse_amount(baht: str) -> int:
    satang = money.satang(baht)
    if satang < 1:
        raise ValueError("the amount is zero")
    return satang
