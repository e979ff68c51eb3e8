"""Money out through the sandbox bank: signed JSON over HTTP, amounts in baht as text."""

import hmac
import logging
import re

import orjson
import requests
from requests.exceptions import ConnectTimeout, RequestException
from urllib3.exceptions import NewConnectionError

from banks.base import Fate, Order, Purpose, Word
from core import clock, money, strict_json
from core.errors import InvalidRequest

log = logging.getLogger("banks")
SIGNATURE = "Sandbox-Bank-Signature"
PATH = "/sandbox/bank/v1/orders"
CONNECT_SECONDS, READ_SECONDS = 2, 5
LONGEST_ANSWER = 65_536
TYPES: dict[Purpose, str] = {"refund": "refund", "withdrawal": "payout"}
FATES: dict[str, Fate] = {
    "processing": "processing",
    "succeeded": "succeeded",
    "failed": "failed",
    "returned": "returned",
}
# The bank's reasons in our words; others are `rejected_by_bank`.
REASONS = {"account_not_found": "invalid_account", "returned": "returned_by_bank"}
REJECTED = "rejected_by_bank"
UNKNOWN = Word("unknown")
_REFERENCE = re.compile("[!-~]{1,64}")
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
            return answer.status_code, next(answer.iter_content(LONGEST_ANSWER), b"")

    def _sign(self, method: str, path: str, body: bytes) -> str:
        sent_at = str(int(clock.now().timestamp()))
        signed = f"{sent_at}.{method} {path}.".encode() + body
        return f"t={sent_at},v1={hmac.digest(self._secret, signed, 'sha256').hex()}"


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


def _word(status: int, body: bytes, order: Order) -> Word:
    """What an answer says, if it is one and speaks of this order."""
    try:
        told = strict_json.loads(body) if status == 200 else {}
    except InvalidRequest:
        return UNKNOWN
    fate, reference = FATES.get(str(told.get("status"))), told.get("bank_reference")
    asked = (order.order_id, money.baht(order.amount))
    if fate is None or (told.get("reference"), told.get("amount")) != asked or not _is_reference(reference):
        return UNKNOWN
    code = REASONS.get(str(told.get("reason")), REJECTED) if fate in ("failed", "returned") else ""
    return Word(fate, str(reference), code)


def _is_reference(value: object) -> bool:
    return isinstance(value, str) and _REFERENCE.fullmatch(value) is not None
