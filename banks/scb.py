"""Siam Commercial Bank: payment confirmation and inquiry of tag 30 codes that we make ourselves.

Sources: developer.scb, pages payment-confirmation, get-billpayment-inquiry, get-billpayment-transactions,
post-oauth-token and generic-response-codes. Amounts in baht, as text or number; times with their offset. It
signs nothing that it sends, so nothing is credited before its API, asked by us, has confirmed it.
"""

import re
import uuid
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, ClassVar

from banks import credentials, oauth, parsing, scb_slips
from banks.base import (
    AdapterConfig,
    InquiryFailed,
    InquiryRequest,
    InquiryResult,
    ReportedTransaction,
    ReportedTransfer,
    SlipTransfer,
    TransactionKind,
    UnreadableMessage,
)
from banks.credentials import CredentialField
from banks.http_client import NoResponse, NotSent, Response
from banks.oauth import ApiClient, AuthorizedSession
from banks.token_cache import AccessToken
from core.errors import InvalidRequest
from core.slips import Slip

API_URL = "https://api.partners.scb/partners"
EVENT_CODE_TAG_30 = "00300100"  # the bank's code for codes that the customer scans
# Status and code of an answer that tells, and of one that there is nothing to tell: "Requested entity record
# does not exist".
FOUND, NOT_FOUND = (200, 1000), (404, 1104)
REVERSED, NOT_REVERSED = "R", ("", "N", None)
_PATTERNS = {
    "transactionId": re.compile("[!-~]{1,64}"),
    "payeeProxyId": re.compile("[0-9]{15}"),
    "billPaymentRef1": re.compile("[ -~]{1,20}"),
    "currencyCode": re.compile("764"),
    "transactionDateandTime": re.compile(
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?[+-][0-9]{2}:[0-9]{2}"
    ),
}


class Scb:
    title: ClassVar[str] = "Siam Commercial Bank"
    code: str = "014"
    signs_callbacks: bool = False
    authentication_note: ClassVar[str] = (
        "It signs nothing: the secret in the path and its networks let it in, and it is asked before money "
        "is credited."
    )
    reference3_help: ClassVar[str] = (
        "Required: the prefix that the bank registered for the callback, alone or with more after it."
    )
    credential_fields: ClassVar[tuple[CredentialField, ...]] = (
        CredentialField("application_key", "API key of the application on developer.scb", credentials.text),
        CredentialField("application_secret", "API secret of the application", credentials.text),
        CredentialField("api_url", "Where its API is", credentials.url, is_secret=False, default=API_URL),
    )
    calls_per_second: float = 5.0  # as it says of each API in its sandbox

    def __init__(self, config: AdapterConfig) -> None:
        self._biller_id = config.biller_id
        self._key = config.credentials["application_key"]
        self._secret = config.credentials["application_secret"]
        self._api = ApiClient(config.credentials["api_url"], self._key, self._secret, self._fetch_token)

    def verify(self, *, headers: Mapping[str, str], body: bytes, now: datetime) -> None:
        """Accepts everything: see above."""

    def parse_notification(self, body: bytes) -> ReportedTransaction:
        data: dict[str, Any] = {}
        try:
            data = parsing.parse_json(body)
            return _parse_transaction(data, "credit", self._biller_id)
        except (InvalidRequest, ValueError, OverflowError) as error:
            raise UnreadableMessage(
                str(error), acknowledgement=_acknowledgement(_transaction_id(data))
            ) from None

    def acknowledge(self, transaction: ReportedTransaction | ReportedTransfer | None) -> dict[str, str]:
        return _acknowledgement(
            transaction.bank_transaction_id if isinstance(transaction, ReportedTransaction) else ""
        )

    @staticmethod
    def calls_needed(inquiry: InquiryRequest) -> int:
        return parsing.count_bangkok_days(inquiry.starts_at, inquiry.ends_at)

    def inquire(self, inquiry: InquiryRequest) -> InquiryResult:
        """Day by day, by the reference. The bodies of several days are joined by line feeds."""
        session = AuthorizedSession(self._api)
        try:
            days = parsing.bangkok_days(inquiry.starts_at, inquiry.ends_at)
            bodies = [self._day(session, inquiry, day) for day in days]
        except (NotSent, NoResponse):
            raise InquiryFailed() from None
        except ValueError as error:
            raise InquiryFailed(str(error)) from None
        found = [transaction for body in bodies for transaction in _parse_response(body, inquiry)]
        return InquiryResult(b"\n".join(bodies), tuple(dict.fromkeys(found)))

    def _day(self, session: AuthorizedSession, inquiry: InquiryRequest, day: date) -> bytes:
        """Raises NotAnswered for an answer that neither has nor denies money."""
        body = {
            "eventCode": EVENT_CODE_TAG_30,
            "transactionDate": day.isoformat(),
            "billerId": inquiry.biller_id,
            "reference1": inquiry.reference1,
        }
        path = "/v1/payment/billpayment/inquiry"
        response = session.request("GET", path, headers=self._headers(), params=body)
        if _status_and_code(response) not in (FOUND, NOT_FOUND):
            raise InquiryFailed(f"answered with {response.status}")
        return response.body

    def look_up_slip(self, slip: Slip) -> SlipTransfer | None:
        path = f"/v1/payment/billpayment/transactions/{slip.transaction_id}"
        body = {"sendingBank": slip.sending_bank}
        try:
            response = AuthorizedSession(self._api).request("GET", path, headers=self._headers(), params=body)
        except (NotSent, NoResponse):
            raise InquiryFailed() from None
        if _status_and_code(response) == NOT_FOUND:
            return None
        if _status_and_code(response) != FOUND:
            raise InquiryFailed(f"answered with {response.status}")
        return scb_slips.parse_slip_transfer(response.body, slip)

    def _fetch_token(self, session: AuthorizedSession) -> AccessToken:
        body = {"applicationKey": self._key, "applicationSecret": self._secret}
        response = session.request_without_token(
            "POST", "/v1/oauth/token", json=body, headers=self._headers()
        )
        data = response.data.get("data")
        if response.status != 200 or not isinstance(data, dict):
            raise NoResponse()
        return oauth.parse_token(data, "accessToken", "expiresIn")

    def _headers(self) -> dict[str, str]:
        return {"resourceOwnerId": self._key, "requestUId": str(uuid.uuid4()), "accept-language": "EN"}


def _parse_response(body: bytes, inquiry: InquiryRequest) -> list[ReportedTransaction]:
    try:
        rows = parsing.parse_json(body).get("data") or []
        if not isinstance(rows, list):
            raise ValueError("data is no list")
        return [transaction for data in rows for transaction in _parse_row(data, inquiry)]
    except (InvalidRequest, ValueError, OverflowError) as error:
        raise UnreadableMessage(str(error), body=body) from None


def _parse_row(data: object, inquiry: InquiryRequest) -> list[ReportedTransaction]:
    """One payment; two words if the bank took it back since."""
    if not isinstance(data, dict) or data.get("billPaymentRef1") != inquiry.reference1:
        raise ValueError("an answer to another question")
    flag = data.get("reverseFlag")
    if flag != REVERSED and flag not in NOT_REVERSED:
        raise ValueError("reverseFlag is unknown")
    kinds: tuple[TransactionKind, ...] = ("credit", "reversal") if flag == REVERSED else ("credit",)
    return [_parse_transaction(data, kind, inquiry.biller_id) for kind in kinds]


def _parse_transaction(data: Mapping[str, Any], kind: TransactionKind, biller_id: str) -> ReportedTransaction:
    """Raises ValueError, OverflowError."""
    text = parsing.matching_texts(data, _PATTERNS)
    if text["payeeProxyId"] != biller_id:
        raise ValueError("money for another biller")
    return ReportedTransaction(
        bank_transaction_id=text["transactionId"],
        kind=kind,
        biller_id=text["payeeProxyId"],
        reference1=text["billPaymentRef1"],
        reference2=parsing.optional_reference(data, "billPaymentRef2"),
        reference3=parsing.optional_reference(data, "billPaymentRef3"),
        amount=parsing.parse_amount(data.get("amount")),
        paid_at=parsing.parse_instant(text["transactionDateandTime"]),
        payer_name=parsing.optional_text(data, "payerName", parsing.NAME_PATTERN),
        payer_bank_code=parsing.optional_text(data, "sendingBankCode", "[0-9]{3}"),
        payer_account=parsing.optional_text(data, "payerAccountNumber", "[0-9A-Za-z*-]{0,35}"),
        slip_reference=parsing.optional_text(data, "fastEasySlipNumber", "[0-9A-Za-z]{0,25}"),
    )


def _acknowledgement(transaction_id: str) -> dict[str, str]:
    return {"resCode": "00", "resDesc": "success", "transactionId": transaction_id}


def _transaction_id(data: Mapping[str, Any]) -> str:
    """What a message that is parked says its id is, to be repeated in the answer."""
    return parsing.optional_text(data, "transactionId", ".{0,140}")


def _status_and_code(response: Response) -> tuple[int, object]:
    status = response.data.get("status")
    return response.status, status.get("code") if isinstance(status, dict) else None
