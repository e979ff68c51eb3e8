"""Opn Payments (Omise): cards by token. Amounts in satang; times in UTC.

Sources: docs.omise.co, pages charges-api, refunds-api, api-errors and api-versioning, and the
failure codes of its client libraries. A charge and a refund carry our id in their metadata, by which they are
found again, and as `Idempotency-Key`, which is kept there for a day; nothing is sent twice on its strength.
"""

import logging
from datetime import datetime, timedelta
from typing import Any

from banks import exchange
from banks.acquirers import Charge, Decline, Refusal, Said
from banks.base import Order, Word
from banks.exchange import Answer, NoAnswer, NotSent
from core import clock

log = logging.getLogger("banks")
Json = dict[str, Any]
VERSION = "2019-05-29"
CONNECT_SECONDS, READ_SECONDS = 3.0, 10.0
# Their lists: rows on a page, the most that are looked through, and from when to when around an order.
PAGE, MOST_LISTED = 100, 5_000
AROUND = timedelta(minutes=10)
OUR_ID = "order_id"  # the name of our id in their metadata

DECLINES: dict[str, Decline] = {
    "insufficient_fund": "insufficient_funds",
    "insufficient_balance": "insufficient_funds",
    "stolen_or_lost_card": "card_declined",
    "payment_rejected": "card_declined",
    "invalid_security_code": "card_declined",
    "failed_fraud_check": "card_declined",
    "invalid_account_number": "card_declined",
    "invalid_account": "card_declined",
    "payment_cancelled": "card_declined",
    "failed_processing": "processing_error",
    "timeout": "processing_error",
}
# Error objects in the place of a charge: nothing was tried.
REFUSALS: dict[str, Refusal] = {
    "used_token": "token_already_used",
    "invalid_card_token": "invalid_token_id",
    "invalid_card": "invalid_token_id",
    "not_found": "invalid_token_id",
}
# Theirs: it was tried, or stopped before the bank; the customer's card, or our account there, is at fault.
FAULTS: dict[str, Decline] = {
    "failed_fraud_check": "card_declined",
    "brand_not_supported": "card_declined",
}
ENDED_UNPAID = {"failed", "expired", "reversed"}
REFUNDED = {"closed", "voided"}


class Omise:
    seconds = CONNECT_SECONDS + READ_SECONDS + 2.0

    def __init__(self, secret_key: str, url: str) -> None:
        self._secret_key, self._url = secret_key, url

    def charge(self, charge: Charge) -> Said:
        asked = {
            "amount": charge.amount,
            "currency": "thb",
            "card": charge.token,
            "description": charge.order_id,
            "metadata": {OUR_ID: charge.order_id},
        }
        try:
            answer = self._ask("POST", "/charges", asked, key=charge.order_id)
        except NotSent:
            return Said("not_sent")
        except NoAnswer:
            return Said("unknown")
        return _said(answer.told) if answer.status == 200 else _refused(answer)

    def find(self, order_id: str, *, charge_id: str, since: datetime) -> Said:
        """By its id, else by ours among all charges of that time: their search may not know it yet."""
        try:
            if charge_id:
                answer = self._ask("GET", f"/charges/{charge_id}")
                return _said(answer.told) if answer.status == 200 else Said("unknown")
            found = self._in_time(order_id, since)
            return _said(found) if found else Said("missing")
        except (NotSent, NoAnswer):
            return Said("unknown")

    def _in_time(self, order_id: str, since: datetime) -> Json | None:
        asked = {"from": clock.iso(since - AROUND), "to": clock.iso(since + AROUND)}
        return self._among("/charges", order_id, asked)

    def _among(self, path: str, order_id: str, asked: Json) -> Json | None:
        """Ours in one of their lists. Raises NoAnswer for a list too long to look through."""
        for offset in range(0, MOST_LISTED, PAGE):
            params = asked | {"limit": PAGE, "offset": offset}
            listed = _listed(self._ask("GET", path, params=params))
            if found := _ours(listed, order_id):
                return found
            if len(listed) < PAGE:
                return None
        raise NoAnswer()

    def send(self, order: Order) -> Word:
        asked = {"amount": order.amount, "metadata": {OUR_ID: order.order_id}}
        try:
            answer = self._ask("POST", f"/charges/{order.charge_id}/refunds", asked, key=order.order_id)
        except NotSent:
            return Word("not_sent")
        except NoAnswer:
            return Word("unknown")
        if answer.status in (400, 404, 422):
            return Word("failed", failure_code="rejected_by_acquirer")
        return _word(answer.told) if answer.status == 200 else _not_done(answer)

    def inquire(self, order: Order) -> Word:
        """Among the refunds of its charge. One that is not there proves nothing: it may be on its way."""
        try:
            found = self._among(f"/charges/{order.charge_id}/refunds", order.order_id, {})
            return _word(found) if found else Word("unknown")
        except (NotSent, NoAnswer):
            return Word("unknown")

    def _ask(
        self,
        method: str,
        path: str,
        asked: Json | None = None,
        *,
        key: str = "",
        params: Json | None = None,
    ) -> Answer:
        return exchange.ask(
            method,
            self._url + path,
            json=asked,
            params=params,
            headers={"Omise-Version": VERSION} | ({"Idempotency-Key": key} if key else {}),
            auth=(self._secret_key, ""),
            timeout=(CONNECT_SECONDS, READ_SECONDS),
        )


def _refused(answer: Answer) -> Said:
    """An error object. What is our own fault, such as a wrong key, was surely not tried."""
    code, message = str(answer.told.get("code")), str(answer.told.get("message"))
    if answer.status >= 500 or answer.told.get("object") != "error":
        return Said("unknown")
    if code == "invalid_card" and "expir" in message:
        return Said("declined", failure_code="expired_card")
    if code in REFUSALS:
        return Said("refused", failure_code=REFUSALS[code])
    if code not in FAULTS:
        log.error("the acquirer did not take a charge: %s", code)
    return Said("declined", failure_code=FAULTS.get(code, "processing_error"))


def _not_done(answer: Answer) -> Word:
    return Word("not_sent") if answer.status in (401, 403, 429) else Word("unknown")


def _said(told: Json) -> Said:
    """A charge object. One that waits for the customer (3-D Secure) is pending."""
    try:
        return _read(told)
    except (KeyError, TypeError, ValueError, AttributeError):
        return Said("unknown")


def _read(told: Json) -> Said:
    status, card = told["status"], told.get("card") or {}
    known: Json = {
        "charge_id": told["id"],
        "brand": _brand(card.get("brand")),
        "last4": card.get("last_digits") or "",
    }
    if status == "successful":
        return Said("succeeded", **known, paid_at=_instant(told))
    if status in ENDED_UNPAID:
        code = told.get("failure_code") or ""
        return Said("declined", **known, failure_code=DECLINES.get(code, "processing_error"))
    return Said("pending" if status == "pending" else "unknown", **known)


def _instant(told: Json) -> datetime:
    return datetime.fromisoformat(told.get("paid_at") or told["created_at"])


def _brand(told: str | None) -> str:
    """`American Express` is `amex` everywhere else."""
    name = (told or "").lower().replace(" ", "")
    return {"americanexpress": "amex", "unionpayinternational": "unionpay"}.get(name, name)[:20]


def _word(told: Json) -> Word:
    status, reference = told.get("status"), str(told.get("id", ""))
    if status in REFUNDED:
        return Word("succeeded", reference)
    if status == "failed":
        return Word("failed", reference, "rejected_by_acquirer")
    return Word("processing" if status == "pending" else "unknown", reference)


def _listed(answer: Answer) -> list[Json]:
    """Raises NoAnswer for what is no list, such as an error: nothing can be concluded from that."""
    found = answer.told.get("data") if answer.status == 200 else None
    if not isinstance(found, list):
        raise NoAnswer()
    return [each for each in found if isinstance(each, dict)]


def _ours(listed: list[Json], order_id: str) -> Json | None:
    return next((each for each in listed if (each.get("metadata") or {}).get(OUR_ID) == order_id), None)
