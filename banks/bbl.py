"""Bangkok Bank: notifications, inquiries and voids of tag 30 codes that we make.

Sources: apiportal.bangkokbank.com, pages qr-payment and thai-qr, and public programs that use its API;
docs/banks.md lists what they leave open. Amounts are in baht, dates and times in Bangkok. Each side signs
what it sends with a JSON Web Token over the body, in a header.
"""

import re
import uuid
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any, ClassVar

import orjson

from banks import credentials, http_client, jwt, oauth, parsing
from banks.base import (
    AdapterConfig,
    InquiryFailed,
    InquiryRequest,
    InvalidSignature,
    ReportedTransaction,
    ReportedTransfer,
    TransactionKind,
    TransferOrder,
    TransferResult,
    UnreadableMessage,
)
from banks.credentials import CredentialField
from banks.http_client import CallFailed, NoResponse, Response
from banks.live_bank import LiveBank
from banks.oauth import AccessToken, AuthorizedSession
from core import clock, money
from core.failures import VOID_REJECTED, VOID_WINDOW_CLOSED

TOKEN_REQUEST = {"grant_type": "client_credentials", "scope": "CREATE READ"}
KINDS: dict[str, TransactionKind] = {"C": "credit", "D": "reversal"}
ACKNOWLEDGEMENT = {"responseCode": "000", "responseMesg": "Success"}
CODE_SUCCESS, CODE_NOT_FOUND = "000", "209"
VOID_ENDS_AT = time(23, 0)  # a void is possible on the day of the payment, until 23:00 in Bangkok
VOID_FIELDS = ("billerId", "reference1", "reference2", "transDate", "transTime", "approvalCode")
# The bank surely refused: unknown biller, payment not found, wrong data, amount, reference or payee.
FINAL_REFUSAL_CODES = {"052", "209", "211", "213", "331", "332"}
NOT_ACCEPTED_STATUSES = {401, 403, 404, 429}  # HTTP statuses with which the API surely did nothing
_PATTERNS = {
    "billerId": re.compile("[0-9]{15}"),
    "transDate": re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    "transTime": re.compile("[0-9]{2}:[0-9]{2}:[0-9]{2}"),
    "reference1": re.compile("[ -~]{1,20}"),
    "bankRef": re.compile("[0-9A-Za-z]{1,34}"),
    "txnType": re.compile("|".join(KINDS)),
}


class Bbl(LiveBank):
    title = "Bangkok Bank"
    code = "002"
    signs_callbacks = True
    # The bank answers 429 above its limit, but does not publish the limit.
    calls_per_second = 2.0
    authentication_note = "It signs each message with its key, and knows the secret in the path."
    credential_fields = (
        CredentialField("consumer_id", "Consumer ID of the application on its portal", credentials.text),
        CredentialField("consumer_secret", "Consumer secret of the application", credentials.text),
        CredentialField(
            "private_key",
            "Our RSA key in PEM; the bank has its public half",
            credentials.private_key,
            is_text=True,
        ),
        CredentialField(
            "bank_public_key",
            "The bank's RSA key in PEM",
            credentials.public_key,
            is_secret=False,
            is_text=True,
        ),
        credentials.api_url("https://api.bangkokbank.com", "bangkokbank.com"),
        credentials.api_path("inquiry_path", "Path of its inquiry", "/biller/v1/inquiry"),
        credentials.api_path("void_path", "Path of its void", "/biller/v1/refund/reversal"),
    )

    def verify(self, *, headers: Mapping[str, str], body: bytes, now: datetime) -> None:
        """The token is in `Signature`, or is the bearer token in `Authorization`."""
        token = headers.get("Signature") or headers.get("Authorization", "").removeprefix("Bearer ")
        try:
            jwt.verify(token, body, public_key=self._credentials["bank_public_key"], now=now)
        except jwt.InvalidToken:
            raise InvalidSignature() from None

    def parse_notification(self, body: bytes) -> ReportedTransaction:
        """`retryFlag` is ignored, because the id shows that a message is a repetition."""
        try:
            return _parse_transaction(parsing.parse_json(body), self._biller_id)
        except ValueError as error:
            raise UnreadableMessage(str(error)) from None

    def acknowledge(self, transaction: ReportedTransaction | ReportedTransfer | None) -> dict[str, str]:
        return ACKNOWLEDGEMENT

    def _inquire_days(self, inquiry: InquiryRequest, days: list[date]) -> list[bytes]:
        """By reference and amount: the bank does not find money of another amount."""
        session, bodies = _Session(self._credentials), []
        for day in days:
            response = session.inquire(inquiry.biller_id, day, inquiry.amount, inquiry.reference1)
            if response.status != 200 or _code(response.data) not in (CODE_SUCCESS, CODE_NOT_FOUND):
                raise InquiryFailed(
                    f"answered with {response.status}", cause=http_client.cause_of_status(response.status)
                )
            bodies.append(response.body)
        return bodies

    def _parse_inquiry(self, data: dict[str, Any], inquiry: InquiryRequest) -> list[ReportedTransaction]:
        if _code(data) == CODE_NOT_FOUND:
            return []
        if data.get("reference1") != inquiry.reference1:
            raise ValueError("the answer is about another code")
        return _parse_transactions(data, inquiry.biller_id)


class BblVoidSender:
    """Voids a whole payment on its day; the payer has the money at once.

    `TransferOrder.charge_id` is the id that `_transaction_id` made of the payment.
    """

    IS_VOID_ONLY: ClassVar[bool] = True

    def __init__(self, config: AdapterConfig) -> None:
        self._biller_id, self._credentials = config.biller_id, config.credentials

    def send(self, order: TransferOrder) -> TransferResult:
        """Inquire the payment for what a void needs, then void it. If the inquiry fails, nothing was sent."""
        if not _is_window_open(order, clock.now()):
            return TransferResult("failed", failure_code=VOID_WINDOW_CLOSED)
        session = _Session(self._credentials)
        try:
            data, transactions = self._find_payment(session, order)
        except (CallFailed, ValueError):
            return TransferResult("not_sent")
        if not transactions or transactions[0].amount != order.amount:
            return TransferResult("failed", failure_code=VOID_REJECTED)
        if len(transactions) == 2:  # it is void already
            return TransferResult("succeeded", order.charge_id)
        body = {name: str(data.get(name) or "") for name in VOID_FIELDS}
        body["amount"] = money.baht(order.amount)
        try:
            return _parse_void(session.send("void_path", body), order)
        except CallFailed as failure:
            return TransferResult(failure.outcome)

    def inquire(self, order: TransferOrder) -> TransferResult:
        """Without a reversal the result is unknown: the void may still arrive."""
        try:
            _, transactions = self._find_payment(_Session(self._credentials), order)
        except (CallFailed, ValueError):
            return TransferResult("unknown")
        is_void = len(transactions) == 2
        return TransferResult("succeeded", order.charge_id) if is_void else TransferResult("unknown")

    def _find_payment(
        self, session: "_Session", order: TransferOrder
    ) -> tuple[dict[str, Any], list[ReportedTransaction]]:
        """The answer about the payment, empty if it is not known. Raises CallFailed, ValueError."""
        day, reference1 = _split_transaction_id(order)
        response = session.inquire(self._biller_id, day.date(), order.amount, reference1)
        if response.status == 200 and _code(response.data) == CODE_NOT_FOUND:
            return {}, []
        if response.status != 200 or _code(response.data) != CODE_SUCCESS:
            raise NoResponse()
        data = parsing.parse_json(response.body)
        transactions = _parse_transactions(data, self._biller_id)
        return data, transactions if transactions[0].bank_reference == order.charge_id else []


class _Session(AuthorizedSession):
    """Signed requests to the bank."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._credentials = given
        login = given["consumer_id"], given["consumer_secret"]
        super().__init__("bbl", given["api_url"], *login)

    def inquire(self, biller_id: str, day: date, amount: int, reference1: str) -> Response:
        """Raises CallFailed."""
        code = {"billerId": biller_id, "reference1": reference1}
        return self.send("inquiry_path", {**code, "transDate": day.isoformat(), "amount": money.baht(amount)})

    def send(self, path: str, params: Mapping[str, str]) -> Response:
        """path: the name of the credential with the path. Raises CallFailed."""
        now = clock.now()
        headers = {
            "Content-Type": "application/json",
            "Request-Ref": uuid.uuid4().hex,
            "Transmit-Date-Time": now.astimezone(clock.BANGKOK).isoformat(timespec="milliseconds"),
            "Signature": jwt.sign(params, private_key=self._credentials["private_key"], now=now),
        }
        body = orjson.dumps(params)
        return self.request("POST", self._credentials[path], headers=headers, data=body)

    def fetch_token(self) -> AccessToken:
        response = self.request_without_token(
            "POST", "/oauth/accesstoken", data=TOKEN_REQUEST, auth=self._login
        )
        # The bank's pages write `accessToken`, its gateway answers with `access_token`.
        data = {name.replace("_", "").lower(): value for name, value in response.data.items()}
        return oauth.parse_token(response.status, data, "accesstoken", "expiresin")


def _code(data: Mapping[str, Any]) -> str:
    return str(data.get("responseCode", ""))


def _parse_transactions(data: Mapping[str, Any], biller_id: str) -> list[ReportedTransaction]:
    """The credit, and its reversal if the bank took it back. Raises ValueError."""
    last = _parse_transaction(data, biller_id)
    earlier = [] if last.kind == "credit" else [_parse_transaction({**data, "txnType": "C"}, biller_id)]
    return [*earlier, last]


def _parse_transaction(data: Mapping[str, Any], biller_id: str) -> ReportedTransaction:
    """Raises ValueError."""
    text = parsing.matching_texts(data, _PATTERNS)
    if text["billerId"] != biller_id:
        raise ValueError("the money is for another biller")
    return ReportedTransaction(
        bank_reference=_transaction_id(text),
        kind=KINDS[text["txnType"]],
        biller_id=text["billerId"],
        reference1=text["reference1"],
        reference2=parsing.optional_reference(data, "reference2"),
        reference3=parsing.optional_reference(data, "reference3"),
        amount=parsing.parse_amount(data.get("amount")),
        paid_at=parsing.parse_instant(f"{text['transDate']}T{text['transTime']}+07:00"),
        payer_name=parsing.optional_text(data, "fromName", parsing.NAME_PATTERN),
        payer_bank_code=parsing.optional_text(data, "fromBank", "[0-9]{3}"),
        payer_account="",
    )


def _transaction_id(text: Mapping[str, str]) -> str:
    """Day and reference, which a void needs, and the bank's, which may be unique for a day only."""
    return f"{text['transDate'].replace('-', '')}.{text['reference1']}.{text['bankRef']}"


def _split_transaction_id(order: TransferOrder) -> tuple[datetime, str]:
    """Day and reference of the payment. Raises ValueError for an id that `_transaction_id` did not make."""
    day, _, rest = order.charge_id.partition(".")
    reference1, _, bank_reference = rest.rpartition(".")
    if not reference1 or not bank_reference:
        raise ValueError("not a transaction id of this bank")
    return datetime.strptime(day, "%Y%m%d").replace(tzinfo=clock.BANGKOK), reference1


def _is_window_open(order: TransferOrder, now: datetime) -> bool:
    """Whether the bank still voids this payment."""
    local = now.astimezone(clock.BANGKOK)
    try:
        day, _ = _split_transaction_id(order)
    except ValueError:
        return False
    return day.date() == local.date() and local.time() < VOID_ENDS_AT


def _parse_void(response: Response, order: TransferOrder) -> TransferResult:
    if response.status in NOT_ACCEPTED_STATUSES:
        return TransferResult("not_sent")
    code = _code(response.data)
    if response.status == 200 and code == CODE_SUCCESS:
        return TransferResult("succeeded", order.charge_id)
    if code in FINAL_REFUSAL_CODES:
        return TransferResult("failed", failure_code=VOID_REJECTED)
    return TransferResult("unknown")
