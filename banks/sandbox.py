"""The sandbox bank: signed JSON, amounts in baht as text, times in Bangkok, as Thai banks send them."""

import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from banks import sandbox_inquiries, sandbox_orders, texts
from banks.base import BadSignature, Found, Kind, Notice, OrderNotice, Question, Transferred, Unreadable
from core import clock, money, strict_json
from core.errors import InvalidRequest
from core.slips import Slip

TOLERANCE = timedelta(minutes=5)
KINDS: dict[str, Kind] = {"credit": "credit", "decline": "decline", "reversal": "reversal"}

_SIGNATURE = re.compile("t=([0-9]{1,11}),v1=([0-9a-f]{64})")
_SHAPES = {
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
_SLIP = {"slip_reference": re.compile("[A-Za-z0-9]{15,25}|")}


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
            raise BadSignature()
        sent_at, signature = match.groups()
        expected = hmac.digest(self._secret, sent_at.encode() + b"." + body, "sha256").hex()
        if not hmac.compare_digest(signature, expected):
            raise BadSignature()
        if abs(now.timestamp() - int(sent_at)) > TOLERANCE.total_seconds():
            raise BadSignature()

    def parse_notice(self, body: bytes) -> Notice | OrderNotice:
        """Fields we do not know are ignored; those we know are all there and well-formed."""
        try:
            told = strict_json.loads(body)
            return sandbox_orders.notice(told) if told.get("type") == "order" else _notice(told)
        except (InvalidRequest, ValueError, OverflowError) as error:
            raise Unreadable(str(error)) from None

    def answer(self, notice: Notice | OrderNotice | None) -> dict[str, str]:
        return {"status": "received" if notice else "parked"}

    @staticmethod
    def calls_for(question: Question) -> int:
        return 1

    def inquire(self, question: Question) -> Found:
        found = self._ask(sandbox_inquiries.TRANSACTIONS, sandbox_inquiries.about(question))
        asked = (question.biller_id, question.reference1)
        if any((notice.biller_id, notice.reference1) != asked for notice in found.notices):
            raise Unreadable("the answer speaks of another code", body=found.body)
        return found

    def transfer(self, slip: Slip) -> Transferred | None:
        asked = {"sending_bank": slip.sending_bank, "reference": slip.transaction_id}
        notices = self._ask(sandbox_inquiries.SLIPS, asked).notices
        if any([each.payer_bank_code, each.slip_reference] != [*asked.values()] for each in notices):
            raise Unreadable("the answer speaks of another slip")
        return next((_transferred(each) for each in notices if each.kind == "credit"), None)

    def _ask(self, door: str, asked: Mapping[str, str]) -> Found:
        """Raises NotAnswered, Unreadable."""
        answer = sandbox_inquiries.ask(door, asked, secret=self._secret, base_url=self._base_url)
        try:
            notices = tuple(_notice(told) for told in sandbox_inquiries.transactions(answer))
        except (ValueError, OverflowError) as error:
            raise Unreadable(str(error), body=answer.body) from None
        return Found(answer.body, notices)


def _notice(told: dict[str, Any]) -> Notice:
    text = texts.shaped({"slip_reference": ""} | told, _SHAPES | _SLIP)
    return Notice(
        bank_transaction_id=text["transaction_id"],
        kind=KINDS[text["type"]],
        biller_id=text["biller_id"],
        reference1=text["reference1"],
        reference2=text["reference2"],
        reference3=text["reference3"],
        amount=_amount(text["amount"]),
        paid_at=clock.to_millisecond(datetime.fromisoformat(text["paid_at"]).astimezone(UTC)),
        payer_name=text["payer_name"],
        payer_bank_code=text["payer_bank_code"],
        payer_account=text["payer_account"],
        slip_reference=text["slip_reference"],
    )


def _transferred(credit: Notice) -> Transferred:
    return Transferred(
        amount=credit.amount,
        at=credit.paid_at,
        payee=f"biller {credit.biller_id}",
        biller_id=credit.biller_id,
        reference1=credit.reference1,
        reference2=credit.reference2,
        reference3=credit.reference3,
    )


def _amount(baht: str) -> int:
    satang = money.satang(baht)
    if satang < 1:
        raise ValueError("the amount is zero")
    return satang
