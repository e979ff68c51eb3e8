"""Card payments at the sandbox bank: JSON over HTTP, amounts in satang, times in UTC."""

from datetime import datetime
from typing import Any

from banks import exchange
from banks.acquirers import Charge, Decline, Outcome, Refusal, Said
from banks.base import Order, Word
from banks.exchange import Answer, NoAnswer, NotSent

# Short, since a merchant's test waits for it; a neighbour that is well answers in milliseconds.
CONNECT_SECONDS, READ_SECONDS = 1.0, 2.0
REFUSALS: dict[str, Refusal] = {"invalid_token": "invalid_token_id", "used_token": "token_already_used"}
DECLINES: dict[str, Decline] = {
    "insufficient_funds": "insufficient_funds",
    "do_not_honor": "card_declined",
    "expired_card": "expired_card",
    "authentication_failed": "card_declined",
}
STATUSES: dict[str, Outcome] = {"succeeded": "succeeded", "failed": "declined", "pending": "pending"}


class SandboxAcquirer:
    seconds = CONNECT_SECONDS + READ_SECONDS + 1.0

    def __init__(self, secret: str, url: str) -> None:
        self._secret, self._url = secret, url

    def charge(self, charge: Charge) -> Said:
        asked = {
            "order_id": charge.order_id,
            "token": charge.token,
            "amount": charge.amount,
            "return_uri": charge.return_uri,
        }
        try:
            answer = self._ask("POST", "/charges", asked)
        except NotSent:
            return Said("not_sent")
        except NoAnswer:
            return Said("unknown")
        refusal = REFUSALS.get(str(answer.told.get("code"))) if answer.status == 400 else None
        return Said("refused", failure_code=refusal) if refusal else _said(answer)

    def find(self, order_id: str, *, charge_id: str, since: datetime) -> Said:
        try:
            answer = self._ask("GET", f"/charges/{order_id}")
        except (NotSent, NoAnswer):
            return Said("unknown")
        return Said("missing") if answer.status == 404 else _said(answer)

    def send(self, order: Order) -> Word:
        asked = {"order_id": order.order_id, "charge_id": order.charge_id, "amount": order.amount}
        try:
            answer = self._ask("POST", "/refunds", asked)
        except NotSent:
            return Word("not_sent")
        except NoAnswer:
            return Word("unknown")
        return Word("failed", failure_code="rejected_by_acquirer") if answer.status == 400 else _word(answer)

    def inquire(self, order: Order) -> Word:
        try:
            return _word(self._ask("GET", f"/refunds/{order.order_id}"))
        except (NotSent, NoAnswer):
            return Word("unknown")

    def _ask(self, method: str, path: str, asked: dict[str, Any] | None = None) -> Answer:
        return exchange.ask(
            method,
            self._url + path,
            json=asked,
            headers={"Authorization": f"Bearer {self._secret}"},
            timeout=(CONNECT_SECONDS, READ_SECONDS),
            is_neighbour=True,
        )


def _said(answer: Answer) -> Said:
    try:
        return _read(answer.told) if answer.status == 200 else Said("unknown")
    except (KeyError, TypeError, ValueError):
        return Said("unknown")


def _read(told: dict[str, Any]) -> Said:
    outcome = STATUSES[told["status"]]
    reason = DECLINES.get(told["failure_code"], "processing_error") if outcome == "declined" else None
    return Said(
        outcome,
        charge_id=told["id"],
        failure_code=reason,
        brand=told["card"]["brand"],
        last4=told["card"]["last4"],
        paid_at=datetime.fromisoformat(told["created_at"]) if outcome == "succeeded" else None,
        amount=told["amount"],
        currency=told["currency"],
        authorize_uri=told["authorize_uri"] or "",
    )


def _word(answer: Answer) -> Word:
    is_done = answer.status == 200 and answer.told.get("status") == "succeeded"
    return Word("succeeded", str(answer.told.get("id", ""))) if is_done else Word("unknown")
