"""Siam Commercial Bank: confirmations, inquiries and slips of tag 30 codes that we make.

Sources: developer.scb, pages payment-confirmation, get-billpayment-inquiry, get-billpayment-transactions,
post-oauth-token and generic-response-codes. Amounts are in baht, as text or number; times have an offset. The
bank does not sign, so its inquiry confirms each payment before it is credited.
"""

import re
import uuid
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from banks import credentials, http_client, oauth, parsing
from banks.base import (
    InquiryFailed,
    InquiryRequest,
    ReportedTransaction,
    ReportedTransfer,
    SlipTransfer,
    TransactionKind,
    UnreadableMessage,
)
from banks.credentials import CredentialField
from banks.http_client import CallFailed, Response
from banks.live_bank import LiveBank
from banks.oauth import AccessToken, AuthorizedSession
from core.thai.slips import Slip

PAYMENTS_PATH = "/v1/payment/billpayment"
EVENT_CODE_TAG_30 = "00300100"  # the bank's code for QR codes of tag 30
# HTTP status and code of the bank. The text of 1104 is "Requested entity record does not exist".
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
_SLIP_PATTERNS = {"transDate": re.compile("[0-9]{8}"), "transTime": re.compile("[0-9]{2}:[0-9]{2}:[0-9]{2}")}
_SLIP_NUMBER = "[0-9A-Za-z*-]{1,40}"  # accounts are shortened, such as xxx-x-x1234-x


class Scb(LiveBank):
    title = "Siam Commercial Bank"
    code = "014"
    signs_callbacks = False
    calls_per_second = 5.0  # the limit of each API in its sandbox
    authentication_note = (
        "It does not sign. It knows the secret in the path and calls from its networks, and its API confirms "
        "each payment before money is credited."
    )
    reference3_help = (
        "Required: the prefix that the bank registered for the callback, alone or with more after it."
    )
    credential_fields = (
        CredentialField("application_key", "API key of the application on developer.scb", credentials.text),
        CredentialField("application_secret", "API secret of the application", credentials.text),
        credentials.api_url("https://api.partners.scb/partners", "partners.scb"),
    )

    def verify(self, *, headers: Mapping[str, str], body: bytes, now: datetime) -> None:
        """Accepts everything, because the bank does not sign."""

    def parse_notification(self, body: bytes) -> ReportedTransaction:
        data: dict[str, Any] = {}
        try:
            data = parsing.parse_json(body)
            return _parse_transaction(data, "credit", self._biller_id)
        except ValueError as error:
            transaction_id = parsing.optional_text(data, "transactionId", ".{0,140}")
            raise UnreadableMessage(str(error), acknowledgement=_acknowledgement(transaction_id)) from None

    def acknowledge(self, transaction: ReportedTransaction | ReportedTransfer | None) -> dict[str, str]:
        if isinstance(transaction, ReportedTransaction):
            return _acknowledgement(transaction.bank_reference)
        return _acknowledgement("")

    def look_up_slip(self, slip: Slip) -> SlipTransfer | None:
        path, params = f"/transactions/{slip.transaction_id}", {"sendingBank": slip.sending_bank}
        try:
            response = _Session(self._credentials).get(path, params)
        except CallFailed as error:
            raise InquiryFailed(str(error), cause=error.cause) from None
        return None if _status_and_code(response) == NOT_FOUND else parse_slip_transfer(response.body, slip)

    def _inquire_days(self, inquiry: InquiryRequest, days: list[date]) -> list[bytes]:
        """By the reference."""
        session, bodies = _Session(self._credentials), []
        for day in days:
            params = {
                "eventCode": EVENT_CODE_TAG_30,
                "transactionDate": day.isoformat(),
                "billerId": inquiry.biller_id,
                "reference1": inquiry.reference1,
            }
            bodies.append(session.get("/inquiry", params).body)
        return bodies

    def _parse_inquiry(self, data: dict[str, Any], inquiry: InquiryRequest) -> list[ReportedTransaction]:
        rows = data.get("data") or []
        if not isinstance(rows, list):
            raise ValueError("data is not a list")
        return [transaction for row in rows for transaction in _parse_row(row, inquiry)]


class _Session(AuthorizedSession):
    def __init__(self, given: Mapping[str, str]) -> None:
        login = given["application_key"], given["application_secret"]
        super().__init__("scb", given["api_url"], *login)

    def get(self, path: str, params: Mapping[str, str]) -> Response:
        """An answer with or without a record. Raises CallFailed, and InquiryFailed for any other answer."""
        response = self.request("GET", PAYMENTS_PATH + path, headers=self._headers(), params=params)
        if _status_and_code(response) not in (FOUND, NOT_FOUND):
            raise InquiryFailed(
                f"answered with {response.status}", cause=http_client.cause_of_status(response.status)
            )
        return response

    def fetch_token(self) -> AccessToken:
        key, secret = self._login
        body = {"applicationKey": key, "applicationSecret": secret}
        response = self.request_without_token("POST", "/v1/oauth/token", json=body, headers=self._headers())
        data = _section(response.data, "data")
        return oauth.parse_token(response.status, data, "accessToken", "expiresIn")

    def _headers(self) -> dict[str, str]:
        return {"resourceOwnerId": self._login[0], "requestUId": str(uuid.uuid4()), "accept-language": "EN"}


def parse_slip_transfer(body: bytes, slip: Slip) -> SlipTransfer:
    """Raises UnreadableMessage."""
    try:
        data = _section(parsing.parse_json(body), "data")
        if (data.get("transRef"), data.get("sendingBank")) != (slip.transaction_id, slip.sending_bank):
            raise ValueError("the answer is about another slip")
        text = parsing.matching_texts(data, _SLIP_PATTERNS)
        receiver = _section(data, "receiver")
        proxy, account = (_section(receiver, name) for name in ("proxy", "account"))
        names = [
            parsing.optional_text(receiver, each, parsing.NAME_PATTERN) for each in ("displayName", "name")
        ]
        numbers = [parsing.optional_text(part, "value", _SLIP_NUMBER) for part in (proxy, account)]
        return SlipTransfer(
            amount=parsing.parse_amount(data.get("amount")),
            transferred_at=parsing.parse_instant(f"{text['transDate']}T{text['transTime']}+07:00"),
            payee=" ".join(filter(None, [next(filter(None, names), ""), *numbers])),
            biller_id=parsing.optional_text(proxy, "value", "[0-9]{15}"),
            reference1=parsing.optional_reference(data, "ref1"),
            reference2=parsing.optional_reference(data, "ref2"),
            reference3=parsing.optional_reference(data, "ref3"),
        )
    except ValueError as error:
        raise UnreadableMessage(str(error)) from None


def _section(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = data.get(name)
    return part if isinstance(part, dict) else {}


def _parse_row(data: object, inquiry: InquiryRequest) -> list[ReportedTransaction]:
    """The credit, and its reversal if the bank took it back. Raises ValueError."""
    if not isinstance(data, dict) or data.get("billPaymentRef1") != inquiry.reference1:
        raise ValueError("the answer is about another code")
    flag = data.get("reverseFlag")
    if flag != REVERSED and flag not in NOT_REVERSED:
        raise ValueError("reverseFlag is unknown")
    kinds: tuple[TransactionKind, ...] = ("credit", "reversal") if flag == REVERSED else ("credit",)
    return [_parse_transaction(data, kind, inquiry.biller_id) for kind in kinds]


def _parse_transaction(data: Mapping[str, Any], kind: TransactionKind, biller_id: str) -> ReportedTransaction:
    """Raises ValueError."""
    text = parsing.matching_texts(data, _PATTERNS)
    if text["payeeProxyId"] != biller_id:
        raise ValueError("the money is for another biller")
    return ReportedTransaction(
        bank_reference=text["transactionId"],
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


def _status_and_code(response: Response) -> tuple[int, object]:
    return response.status, _section(response.data, "status").get("code")
