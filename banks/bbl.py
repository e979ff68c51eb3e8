"""Bangkok Bank: pushes and inquiry of tag 30 codes that we make. What it takes back is in `bbl_void`.

Sources: apiportal.bangkokbank.com, pages qr-payment and thai-qr, and public programs that speak to it; what
they leave open is in docs/banks.md. Amounts in baht, dates and times in Bangkok. Both sides sign what they
send: a JSON Web Token over the body, in a header.
"""

import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, ClassVar

from banks import bbl_api, credentials, jwt, parsing
from banks.base import (
    AdapterConfig,
    InquiryFailed,
    InquiryRequest,
    InquiryResult,
    InvalidSignature,
    ReportedTransaction,
    ReportedTransfer,
    TransactionKind,
    UnreadableMessage,
)
from banks.credentials import CredentialField
from banks.http_client import NoResponse, NotSent
from core import clock, money
from core.errors import InvalidRequest

KINDS: dict[str, TransactionKind] = {"C": "credit", "D": "reversal"}
ACKNOWLEDGEMENT = {"responseCode": "000", "responseMesg": "Success"}
CODE_FOUND, CODE_NOT_FOUND = "000", "209"
_PATTERNS = {
    "billerId": re.compile("[0-9]{15}"),
    "transDate": re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    "transTime": re.compile("[0-9]{2}:[0-9]{2}:[0-9]{2}"),
    "reference1": re.compile("[ -~]{1,20}"),
    "bankRef": re.compile("[0-9A-Za-z]{1,34}"),
    "txnType": re.compile("|".join(KINDS)),
}


class Bbl:
    title: ClassVar[str] = "Bangkok Bank"
    code: str = "002"
    signs_callbacks: bool = True
    authentication_note: ClassVar[str] = (
        "It signs each message with its key; the secret in the path comes on top."
    )
    reference3_help: ClassVar[str] = ""
    credential_fields: ClassVar[tuple[CredentialField, ...]] = (
        CredentialField("consumer_id", "Consumer ID of the application on its portal", credentials.text),
        CredentialField("consumer_secret", "Consumer secret of the application", credentials.text),
        CredentialField(
            "private_key", "Our RSA key in PEM; the bank has its public half", credentials.private_key
        ),
        CredentialField(
            "bank_public_key", "The bank's RSA key in PEM", credentials.public_key, is_secret=False
        ),
        CredentialField(
            "api_url", "Where its API is", credentials.url, is_secret=False, default=bbl_api.API_URL
        ),
        CredentialField(
            "inquiry_path", "Its inquiry", credentials.path, is_secret=False, default="/biller/v1/inquiry"
        ),
        CredentialField(
            "void_path", "Its void", credentials.path, is_secret=False, default="/biller/v1/refund/reversal"
        ),
    )
    # It says 429 to too many, and not how many that is.
    calls_per_second: float = 2.0

    def __init__(self, config: AdapterConfig) -> None:
        self._biller_id = config.biller_id
        self._credentials = config.credentials

    def verify(self, *, headers: Mapping[str, str], body: bytes, now: datetime) -> None:
        """The token stands in `Signature`, or as a bearer's in `Authorization`."""
        token = headers.get("Signature") or headers.get("Authorization", "").removeprefix("Bearer ")
        try:
            jwt.verify(token, body, public_key=self._credentials["bank_public_key"], now=now)
        except jwt.InvalidToken:
            raise InvalidSignature() from None

    def parse_notification(self, body: bytes) -> ReportedTransaction:
        """Whatever `retryFlag` says: a repeat is known by its id."""
        try:
            return parse_transaction(parsing.parse_json(body), self._biller_id)
        except (InvalidRequest, ValueError, OverflowError) as error:
            raise UnreadableMessage(str(error)) from None

    def acknowledge(self, transaction: ReportedTransaction | ReportedTransfer | None) -> dict[str, str]:
        return ACKNOWLEDGEMENT

    @staticmethod
    def calls_needed(inquiry: InquiryRequest) -> int:
        return parsing.count_bangkok_days(inquiry.starts_at, inquiry.ends_at)

    def inquire(self, inquiry: InquiryRequest) -> InquiryResult:
        """Day by day, by reference and amount: money of another amount is not found this way.

        The bodies of several days are joined by line feeds.
        """
        client = bbl_api.BblClient(self._credentials)
        try:
            days = parsing.bangkok_days(inquiry.starts_at, inquiry.ends_at)
            responses = [_inquire_day(client, inquiry, day) for day in days]
        except (NotSent, NoResponse):
            raise InquiryFailed() from None
        except ValueError as error:
            raise InquiryFailed(str(error)) from None
        found = [
            transaction
            for body, code in responses
            if code == CODE_FOUND
            for transaction in _parse_response(body, inquiry)
        ]
        return InquiryResult(b"\n".join(body for body, _ in responses), tuple(dict.fromkeys(found)))


def _inquire_day(client: bbl_api.BblClient, inquiry: InquiryRequest, day: date) -> tuple[bytes, str]:
    body = {
        "billerId": inquiry.biller_id,
        "transDate": day.isoformat(),
        "amount": money.baht(inquiry.amount),
        "reference1": inquiry.reference1,
    }
    response = client.request("inquiry_path", body)
    code = bbl_api.response_code(response)
    if response.status != 200 or code not in (CODE_FOUND, CODE_NOT_FOUND):
        raise InquiryFailed(f"answered with {response.status}")
    return response.body, code


def _parse_response(body: bytes, inquiry: InquiryRequest) -> list[ReportedTransaction]:
    try:
        data = parsing.parse_json(body)
        if data.get("reference1") != inquiry.reference1:
            raise ValueError("an answer to another question")
        return parse_transactions(data, inquiry.biller_id)
    except (InvalidRequest, ValueError, OverflowError) as error:
        raise UnreadableMessage(str(error), body=body) from None


def parse_transactions(data: Mapping[str, Any], biller_id: str) -> list[ReportedTransaction]:
    """One payment; two words if it was taken back since. Raises ValueError, OverflowError."""
    last = parse_transaction(data, biller_id)
    return [last] if last.kind == "credit" else [parse_transaction({**data, "txnType": "C"}, biller_id), last]


def parse_transaction(data: Mapping[str, Any], biller_id: str) -> ReportedTransaction:
    """Raises ValueError, OverflowError."""
    text = parsing.matching_texts(data, _PATTERNS)
    if text["billerId"] != biller_id:
        raise ValueError("money for another biller")
    return ReportedTransaction(
        bank_transaction_id=transaction_id(text),
        kind=KINDS[text["txnType"]],
        biller_id=text["billerId"],
        reference1=text["reference1"],
        reference2=parsing.optional_reference(data, "reference2"),
        reference3=parsing.optional_reference(data, "reference3"),
        amount=parsing.parse_amount(data.get("amount")),
        paid_at=clock.to_millisecond(parsing.parse_instant(f"{text['transDate']}T{text['transTime']}+07:00")),
        payer_name=parsing.optional_text(data, "fromName", parsing.NAME_PATTERN),
        payer_bank_code=parsing.optional_text(data, "fromBank", "[0-9]{3}"),
        payer_account="",
    )


def transaction_id(text: Mapping[str, str]) -> str:
    """Day, reference and the bank's own reference: that of the bank is not said to last beyond a day, and a
    void must name the other two."""
    return f"{text['transDate'].replace('-', '')}.{text['reference1']}.{text['bankRef']}"
