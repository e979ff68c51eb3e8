"""Money out through the sandbox bank: signed JSON over HTTP, amounts in baht as text."""

import hmac
import logging
import re
from collections.abc import Mapping
from typing import Any

import orjson
import requests
from requests.exceptions import ConnectTimeout, RequestException
from urllib3.exceptions import NewConnectionError

from banks import texts
from banks.base import Fate, LastFate, Order, OrderNotice, Purpose, Word
from core import clock, money, strict_json
from core.errors import InvalidRequest

log = logging.getLogger("banks")
SIGNATURE = "Sandbox-Bank-Signature"
PATH = "/sandbox/bank/v1/orders"
CONNECT_SECONDS, READ_SECONDS = 2, 5
LONGEST_ANSWER = 65_536
TYPES: dict[Purpose, str] = {"refund": "refund", "withdrawal": "payout"}
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
            status, body = self._ask("POST", PATH, orjson.dumps(_told(order)))
        except RequestException as error:
            return Word("not_sent") if _never_left(error) else UNKNOWN
        if status in REFUSED:
            return Word("failed", failure_code=REJECTED)
        return Word("not_sent") if status in NOT_TAKEN else _word(status, body, order)

    def inquire(self, order: Order) -> Word:
        """A bank that knows nothing of the order proves nothing: it may still be on its way."""
        try:
            status, body = self._ask("GET", f"{PATH}/{order.order_id}", b"")
        except RequestException:
            return UNKNOWN
        if status == 404:
            log.warning("the sandbox bank does not know order %s", order.order_id)
        return _word(status, body, order)

    def _ask(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json", SIGNATURE: self._sign(method, path, body)}
        with requests.Session() as session:
            # A proxy of the environment is for the outside; the sandbox bank is our neighbour.
            session.trust_env = False
            answer = session.request(
                method,
                self._base_url + path,
                data=body,
                headers=headers,
                timeout=(CONNECT_SECONDS, READ_SECONDS),
                allow_redirects=False,
                stream=True,
            )
            return answer.status_code, _body(answer)

    def _sign(self, method: str, path: str, body: bytes) -> str:
        sent_at = str(int(clock.now().timestamp()))
        signed = f"{sent_at}.{method} {path}.".encode() + body
        return f"t={sent_at},v1={hmac.digest(self._secret, signed, 'sha256').hex()}"


def _body(answer: requests.Response) -> bytes:
    """The body, whatever pieces it comes in; what is longer than any answer is cut and means nothing."""
    body = b""
    for piece in answer.iter_content(LONGEST_ANSWER):
        body += piece
        if len(body) > LONGEST_ANSWER:
            break
    return body[:LONGEST_ANSWER]


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


def _never_left(error: RequestException) -> bool:
    """Whether there was no connection by which the order could have been sent."""
    reason = getattr(error.args[0], "reason", None) if error.args else None
    return isinstance(error, ConnectTimeout) or isinstance(reason, NewConnectionError)


def notice(told: Mapping[str, Any]) -> OrderNotice:
    """What the bank says of an order of its own accord. Raises ValueError."""
    text = texts.shaped(told, _LAST_SHAPES)
    fate = LAST_FATES[text["status"]]
    return OrderNotice(text["reference"], fate, text["bank_reference"], _failure_code(text))


def _word(status: int, body: bytes, order: Order) -> Word:
    """What an answer says, if it is one and speaks of this order."""
    if status != 200:
        return UNKNOWN
    try:
        text = texts.shaped(strict_json.loads(body), _SHAPES)
    except (InvalidRequest, ValueError):
        return UNKNOWN
    if (text["reference"], text["amount"]) != (order.order_id, money.baht(order.amount)):
        return UNKNOWN
    return Word(FATES[text["status"]], text["bank_reference"], _failure_code(text))


def _failure_code(text: Mapping[str, str]) -> str:
    if text["status"] == "returned":
        return RETURNED
    return REASONS.get(text["reason"], REJECTED) if text["status"] == "failed" else ""
