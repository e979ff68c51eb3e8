"""Bangkok Bank: pushes and inquiry of tag 30 codes that we make. What it takes back is in `bbl_void`.

Sources: apiportal.bangkokbank.com, pages qr-payment and thai-qr, and public programs that speak to it; what
they leave open is in docs/banks.md. Amounts in baht, dates and times in Bangkok. Both sides sign what they
send: a JSON Web Token over the body, in a header.
"""

import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, ClassVar

from banks import bbl_api, needs, reading, signing, texts
from banks.base import (
    BadSignature,
    Found,
    Kind,
    Link,
    NotAnswered,
    Notice,
    OrderNotice,
    Question,
    Unreadable,
)
from banks.exchange import NoAnswer, NotSent
from banks.needs import Need
from core import clock, money
from core.errors import InvalidRequest

KINDS: dict[str, Kind] = {"C": "credit", "D": "reversal"}
RECEIVED = {"responseCode": "000", "responseMesg": "Success"}
FOUND, UNPAID = "000", "209"
_SHAPES = {
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
    proof: ClassVar[str] = "It signs each message with its key; the secret in the path comes on top."
    reference3_help: ClassVar[str] = ""
    needs: ClassVar[tuple[Need, ...]] = (
        Need("consumer_id", "Consumer ID of the application on its portal", needs.text),
        Need("consumer_secret", "Consumer secret of the application", needs.text),
        Need("private_key", "Our RSA key in PEM; the bank has its public half", needs.private_key),
        Need("bank_public_key", "The bank's RSA key in PEM", needs.public_key, is_secret=False),
        Need("api_url", "Where its API is", needs.url, is_secret=False, default=bbl_api.API_URL),
        Need("inquiry_path", "Its inquiry", needs.path, is_secret=False, default="/biller/v1/inquiry"),
        Need("void_path", "Its void", needs.path, is_secret=False, default="/biller/v1/refund/reversal"),
    )
    # It says 429 to too many, and not how many that is.
    calls_per_second: float = 2.0

    def __init__(self, link: Link) -> None:
        self._biller_id = link.biller_id
        self._credentials = link.credentials

    def verify(self, *, headers: Mapping[str, str], body: bytes, now: datetime) -> None:
        """The token stands in `Signature`, or as a bearer's in `Authorization`."""
        token = headers.get("Signature") or headers.get("Authorization", "").removeprefix("Bearer ")
        try:
            signing.check(token, body, public_key=self._credentials["bank_public_key"], now=now)
        except signing.BadToken:
            raise BadSignature() from None

    def parse_notice(self, body: bytes) -> Notice:
        """Whatever `retryFlag` says: a repeat is known by its id."""
        try:
            return notice(reading.loads(body), self._biller_id)
        except (InvalidRequest, ValueError, OverflowError) as error:
            raise Unreadable(str(error)) from None

    def answer(self, notice: Notice | OrderNotice | None) -> dict[str, str]:
        return RECEIVED

    @staticmethod
    def calls_for(question: Question) -> int:
        return reading.number_of_days(question.since, question.until)

    def inquire(self, question: Question) -> Found:
        """Day by day, by reference and amount: money of another amount is not found this way.

        The bodies of several days are joined by line feeds.
        """
        caller = bbl_api.Caller(self._credentials)
        try:
            days = reading.days(question.since, question.until)
            answers = [_day(caller, question, day) for day in days]
        except (NotSent, NoAnswer):
            raise NotAnswered() from None
        except ValueError as error:
            raise NotAnswered(str(error)) from None
        found = [notice for body, code in answers if code == FOUND for notice in _found(body, question)]
        return Found(b"\n".join(body for body, _ in answers), tuple(dict.fromkeys(found)))


def _day(caller: bbl_api.Caller, question: Question, day: date) -> tuple[bytes, str]:
    asked = {
        "billerId": question.biller_id,
        "transDate": day.isoformat(),
        "amount": money.baht(question.amount),
        "reference1": question.reference1,
    }
    answer = caller.ask("inquiry_path", asked)
    code = bbl_api.code(answer)
    if answer.status != 200 or code not in (FOUND, UNPAID):
        raise NotAnswered(f"answered with {answer.status}")
    return answer.body, code


def _found(body: bytes, question: Question) -> list[Notice]:
    try:
        told = reading.loads(body)
        if told.get("reference1") != question.reference1:
            raise ValueError("an answer to another question")
        return words(told, question.biller_id)
    except (InvalidRequest, ValueError, OverflowError) as error:
        raise Unreadable(str(error), body=body) from None


def words(told: Mapping[str, Any], biller_id: str) -> list[Notice]:
    """One payment; two words if it was taken back since. Raises ValueError, OverflowError."""
    last = notice(told, biller_id)
    return [last] if last.kind == "credit" else [notice({**told, "txnType": "C"}, biller_id), last]


def notice(told: Mapping[str, Any], biller_id: str) -> Notice:
    """Raises ValueError, OverflowError."""
    text = texts.shaped(told, _SHAPES)
    if text["billerId"] != biller_id:
        raise ValueError("money for another biller")
    return Notice(
        bank_transaction_id=transaction_id(text),
        kind=KINDS[text["txnType"]],
        biller_id=text["billerId"],
        reference1=text["reference1"],
        reference2=reading.reference(told, "reference2"),
        reference3=reading.reference(told, "reference3"),
        amount=reading.satang(told.get("amount")),
        paid_at=clock.to_millisecond(reading.instant(f"{text['transDate']}T{text['transTime']}+07:00")),
        payer_name=reading.optional(told, "fromName", reading.NAME),
        payer_bank_code=reading.optional(told, "fromBank", "[0-9]{3}"),
        payer_account="",
    )


def transaction_id(text: Mapping[str, str]) -> str:
    """Day, reference and the bank's own reference: that of the bank is not said to last beyond a day, and a
    void must name the other two."""
    return f"{text['transDate'].replace('-', '')}.{text['reference1']}.{text['bankRef']}"
