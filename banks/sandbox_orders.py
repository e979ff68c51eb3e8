"""Money out through the sandbox bank: signed JSON over HTTP, amounts in baht as text."""

import hmac
import logging
import re
from collections.abc import Mapping
from typing import Any

import orjson

from banks import exchange, texts
from banks.base import Fate, LastFate, Order, OrderNotice, Purpose, Word
from banks.exchange import Answer, NoAnswer, NotSent
from core import clock, money

log = logging.getLogger("banks")
SIGNATURE = "Sandbox-Bank-Signature"
PATH = "/sandbox/bank/v1/orders"
CONNECT_SECONDS, READ_SECONDS = 2, 5
TYPES: dict[Purpose, str] = {"refund": "refund", "withdrawal": "payout", "return": "refund"}
LAST_FATES: dict[str, LastFate] = {"succeeded": "succeeded", "failed": "failed", "returned": "returned"}
FATES: dict[str, Fate] = {"processing": "processing", **LAST_FATES}
# The bank's reasons for a failure in our words; others are `rejected_by_bank`.
REASONS = {"account_not_found": "invalid_account"}
REJECTED, RETURNED = "rejected_by_bank", "returned_by_bank"
UNKNOWN = Word("unknown")
_SHAPES = {
    "reference": re.compile("[!-~]{1,64}"),
    "bank_reference": re.compile("[!-~]{1,64}"),
    "amount": re.compile("[0-9.]{1,13}"),
    "currency": re.compile(money.CURRENCY),
    "status": re.compile("|".join(FATES)),
    "reason": re.compile("[a-z_]{0,30}"),
}
_LAST_SHAPES = _SHAPES | {"status": re.compile("|".join(LAST_FATES))}
# Statuses that say of an order that it will never be carried out, and that it was not even looked at.
REFUSED, NOT_TAKEN = {400, 422}, {401, 403, 404, 429}


class SandboxSender:
    def __init__(self, secret: str, base_url: str) -> None:
        self._secret = secret.encode()
        self._base_url = base_url

    def send(self, order: Order) -> Word:
        """The bank does an order once, however often it is told: it knows it by our id."""
        try:
            answer = self._ask("POST", PATH, orjson.dumps(_told(order)))
        except NotSent:
            return Word("not_sent")
        except NoAnswer:
            return UNKNOWN
        if answer.status in REFUSED:
            return Word("failed", failure_code=REJECTED)
        return Word("not_sent") if answer.status in NOT_TAKEN else _word(answer, order)

    def inquire(self, order: Order) -> Word:
        """A bank that knows nothing of the order proves nothing: it may still be on its way."""
        try:
            answer = self._ask("GET", f"{PATH}/{order.order_id}", b"")
        except (NotSent, NoAnswer):
            return UNKNOWN
        if answer.status == 404:
            log.warning("the sandbox bank does not know order %s", order.order_id)
        return _word(answer, order)

    def _ask(self, method: str, path: str, body: bytes) -> Answer:
        return exchange.ask(
            method,
            self._base_url + path,
            data=body,
            headers={"Content-Type": "application/json", SIGNATURE: sign(self._secret, method, path, body)},
            timeout=(CONNECT_SECONDS, READ_SECONDS),
            is_neighbour=True,
        )


def sign(secret: bytes, method: str, path: str, body: bytes) -> str:
    """The value of the signature header on what we ask of the bank. path: with its query."""
    sent_at = str(int(clock.now().timestamp()))
    signed = f"{sent_at}.{method} {path}.".encode() + body
    return f"t={sent_at},v1={hmac.digest(secret, signed, 'sha256').hex()}"


def _told(order: Order) -> dict[str, str]:
    return {
        "reference": order.order_id,
        "type": TYPES[order.purpose],
        "amount": money.baht(order.amount),
        "currency": money.CURRENCY,
        "bank_code": order.bank_code,
        "account": order.account,
        "account_name": order.account_name,
    }


def notice(told: Mapping[str, Any]) -> OrderNotice:
    """What the bank says of an order of its own accord. Raises ValueError."""
    text = texts.shaped(told, _LAST_SHAPES)
    fate = LAST_FATES[text["status"]]
    return OrderNotice(text["reference"], fate, text["bank_reference"], _failure_code(text))


def _word(answer: Answer, order: Order) -> Word:
    """What an answer says, if it is one and speaks of this order."""
    if answer.status != 200:
        return UNKNOWN
    try:
        text = texts.shaped(answer.told, _SHAPES)
    except ValueError:
        return UNKNOWN
    if (text["reference"], text["amount"]) != (order.order_id, money.baht(order.amount)):
        return UNKNOWN
    return Word(FATES[text["status"]], text["bank_reference"], _failure_code(text))


def _failure_code(text: Mapping[str, str]) -> str:
    if text["status"] == "returned":
        return RETURNED
    return REASONS.get(text["reason"], REJECTED) if text["status"] == "failed" else ""
