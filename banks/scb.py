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

from banks import needs, oauth, reading, scb_slips, texts
from banks.base import (
    Found,
    Kind,
    Link,
    NotAnswered,
    Notice,
    OrderNotice,
    Question,
    Transferred,
    Unreadable,
)
from banks.exchange import Answer, NoAnswer, NotSent
from banks.needs import Need
from banks.oauth import Api, Errand
from banks.tokens import Token
from core.errors import InvalidRequest
from core.slips import Slip

API_URL = "https://api.partners.scb/partners"
TAG_30 = "00300100"  # the bank's code for codes that the customer scans
# Status and code of an answer that tells, and of one that there is nothing to tell: "Requested entity record
# does not exist".
FOUND, NOTHING = (200, 1000), (404, 1104)
REVERSED, NOT_REVERSED = "R", ("", "N", None)
_SHAPES = {
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
    proof: ClassVar[str] = (
        "It signs nothing: the secret in the path and its networks let it in, and it is asked before money "
        "is credited."
    )
    reference3_help: ClassVar[str] = (
        "Required: the prefix that the bank registered for the callback, alone or with more after it."
    )
    needs: ClassVar[tuple[Need, ...]] = (
        Need("application_key", "API key of the application on developer.scb", needs.text),
        Need("application_secret", "API secret of the application", needs.text),
        Need("api_url", "Where its API is", needs.url, is_secret=False, default=API_URL),
    )
    calls_per_second: float = 5.0  # as it says of each API in its sandbox

    def __init__(self, link: Link) -> None:
        self._biller_id = link.biller_id
        self._key = link.credentials["application_key"]
        self._secret = link.credentials["application_secret"]
        self._api = Api(link.credentials["api_url"], self._key, self._secret, self._fetch_token)

    def verify(self, *, headers: Mapping[str, str], body: bytes, now: datetime) -> None:
        """Accepts everything: see above."""

    def parse_notice(self, body: bytes) -> Notice:
        told: dict[str, Any] = {}
        try:
            told = reading.loads(body)
            return _notice(told, "credit", self._biller_id)
        except (InvalidRequest, ValueError, OverflowError) as error:
            raise Unreadable(str(error), answer=_received(_transaction_id(told))) from None

    def answer(self, notice: Notice | OrderNotice | None) -> dict[str, str]:
        return _received(notice.bank_transaction_id if isinstance(notice, Notice) else "")

    @staticmethod
    def calls_for(question: Question) -> int:
        return reading.number_of_days(question.since, question.until)

    def inquire(self, question: Question) -> Found:
        """Day by day, by the reference. The bodies of several days are joined by line feeds."""
        errand = Errand(self._api)
        try:
            days = reading.days(question.since, question.until)
            bodies = [self._day(errand, question, day) for day in days]
        except (NotSent, NoAnswer):
            raise NotAnswered() from None
        except ValueError as error:
            raise NotAnswered(str(error)) from None
        found = [notice for body in bodies for notice in _found(body, question)]
        return Found(b"\n".join(bodies), tuple(dict.fromkeys(found)))

    def _day(self, errand: Errand, question: Question, day: date) -> bytes:
        """Raises NotAnswered for an answer that neither has nor denies money."""
        asked = {
            "eventCode": TAG_30,
            "transactionDate": day.isoformat(),
            "billerId": question.biller_id,
            "reference1": question.reference1,
        }
        path = "/v1/payment/billpayment/inquiry"
        answer = errand.ask("GET", path, headers=self._headers(), params=asked)
        if _kind(answer) not in (FOUND, NOTHING):
            raise NotAnswered(f"answered with {answer.status}")
        return answer.body

    def transfer(self, slip: Slip) -> Transferred | None:
        path = f"/v1/payment/billpayment/transactions/{slip.transaction_id}"
        asked = {"sendingBank": slip.sending_bank}
        try:
            answer = Errand(self._api).ask("GET", path, headers=self._headers(), params=asked)
        except (NotSent, NoAnswer):
            raise NotAnswered() from None
        if _kind(answer) == NOTHING:
            return None
        if _kind(answer) != FOUND:
            raise NotAnswered(f"answered with {answer.status}")
        return scb_slips.read(answer.body, slip)

    def _fetch_token(self, errand: Errand) -> Token:
        asked = {"applicationKey": self._key, "applicationSecret": self._secret}
        answer = errand.call("POST", "/v1/oauth/token", json=asked, headers=self._headers())
        told = answer.told.get("data")
        if answer.status != 200 or not isinstance(told, dict):
            raise NoAnswer()
        return oauth.token(told, "accessToken", "expiresIn")

    def _headers(self) -> dict[str, str]:
        return {"resourceOwnerId": self._key, "requestUId": str(uuid.uuid4()), "accept-language": "EN"}


def _found(body: bytes, question: Question) -> list[Notice]:
    try:
        listed = reading.loads(body).get("data") or []
        if not isinstance(listed, list):
            raise ValueError("data is no list")
        return [notice for told in listed for notice in _notices(told, question)]
    except (InvalidRequest, ValueError, OverflowError) as error:
        raise Unreadable(str(error), body=body) from None


def _notices(told: object, question: Question) -> list[Notice]:
    """One payment; two words if the bank took it back since."""
    if not isinstance(told, dict) or told.get("billPaymentRef1") != question.reference1:
        raise ValueError("an answer to another question")
    flag = told.get("reverseFlag")
    if flag != REVERSED and flag not in NOT_REVERSED:
        raise ValueError("reverseFlag is unknown")
    kinds: tuple[Kind, ...] = ("credit", "reversal") if flag == REVERSED else ("credit",)
    return [_notice(told, kind, question.biller_id) for kind in kinds]


def _notice(told: Mapping[str, Any], kind: Kind, biller_id: str) -> Notice:
    """Raises ValueError, OverflowError."""
    text = texts.shaped(told, _SHAPES)
    if text["payeeProxyId"] != biller_id:
        raise ValueError("money for another biller")
    return Notice(
        bank_transaction_id=text["transactionId"],
        kind=kind,
        biller_id=text["payeeProxyId"],
        reference1=text["billPaymentRef1"],
        reference2=reading.reference(told, "billPaymentRef2"),
        reference3=reading.reference(told, "billPaymentRef3"),
        amount=reading.satang(told.get("amount")),
        paid_at=reading.instant(text["transactionDateandTime"]),
        payer_name=reading.optional(told, "payerName", reading.NAME),
        payer_bank_code=reading.optional(told, "sendingBankCode", "[0-9]{3}"),
        payer_account=reading.optional(told, "payerAccountNumber", "[0-9A-Za-z*-]{0,35}"),
        slip_reference=reading.optional(told, "fastEasySlipNumber", "[0-9A-Za-z]{0,25}"),
    )


def _received(transaction_id: str) -> dict[str, str]:
    return {"resCode": "00", "resDesc": "success", "transactionId": transaction_id}


def _transaction_id(told: Mapping[str, Any]) -> str:
    """What a message that is parked says its id is, to be repeated in the answer."""
    return reading.optional(told, "transactionId", ".{0,140}")


def _kind(answer: Answer) -> tuple[int, object]:
    status = answer.told.get("status")
    return answer.status, status.get("code") if isinstance(status, dict) else None
