"""A shop to which odd money comes, what its bank says of that afterwards, and what staff decide."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson
from django.db.models import Model

import banks
from banks import TransferResult
from core import clock, money
from core.clock import BANGKOK
from ledger.models import AccountType, Entry, Journal
from reconciliation.exceptions import contradictions, order_completion, resolutions, return_completion
from reconciliation.matching.confirmation import confirm_manually
from reconciliation.models import BankTransaction, Return
from tests.context import acting_as
from tests.reconciliation.console import ExceptionBuilder
from tests.refunds.builders import RefundShop
from tests.transfers.builders import pass_time
from webhooks.models import Event

WHY = "The customer called."
SERVICES: dict[str, Callable[..., Any]] = {
    "confirm": confirm_manually,
    "mark_failed": contradictions.mark_failed,
    "mark_returned": contradictions.mark_returned,
}


@dataclass
class Till(ExceptionBuilder, RefundShop):
    """A shop that sells, gives money back, and gets money that does not fit."""

    def movement(self, payment_id: str) -> BankTransaction:
        """By which a payment succeeded."""
        found: BankTransaction = BankTransaction.objects.credited().get(payment_id=payment_id)
        return found

    def sold(self, satang: int = 150_000) -> BankTransaction:
        """The bank transaction of a payment that came as it should."""
        return self.movement(self.paid(satang))

    def takes_back(
        self, credit: BankTransaction, satang: int | None = None, **changes: Any
    ) -> BankTransaction:
        """The bank takes back a credit; the bank transaction of that word."""
        notification = reversal_of(credit, satang, **changes)
        assert self.bank.post(notification).status_code == 200
        found: BankTransaction = BankTransaction.objects.get(
            bank_transaction_id=notification["transaction_id"], kind="reversal", bank="sandbox"
        )
        return found

    def held(self) -> dict[str, Any]:
        """The balance as the merchant sees it, without the currency."""
        told: dict[str, Any] = self.shop.get("/v1/balance").json()
        return {name: told[name] for name in told if name != "currency"}


def reversal_of(credit: BankTransaction, satang: int | None = None, **changes: Any) -> dict[str, Any]:
    """What the bank says when it takes back a credit, all of it or so much."""
    return {
        "transaction_id": credit.current_bank_transaction_id,
        "type": "reversal",
        "biller_id": credit.biller_id,
        "reference1": credit.reference1,
        "reference2": credit.reference2,
        "reference3": credit.reference3,
        "amount": money.baht(credit.amount if satang is None else satang),
        "currency": "THB",
        "paid_at": clock.now().astimezone(BANGKOK).isoformat(timespec="milliseconds"),
        "payer_name": credit.payer_name,
        "payer_bank_code": credit.payer_bank_code,
        "payer_account": credit.payer_account or "1234567890",  # lines of statements do not tell it
    } | changes


def parsed(notification: dict[str, Any]) -> banks.ReportedTransaction:
    """As the bank's adapter reads it."""
    told = banks.get("sandbox").parse_notification(orjson.dumps(notification))
    assert isinstance(told, banks.ReportedTransaction)
    return told


def decide(
    action: str, subject: Model | str, *, actor: str = "staff:malee", note: str = WHY, **values: Any
) -> Any:
    """An action of staff on an exception, by the name of its service."""
    service = SERVICES.get(action) or getattr(resolutions, action)
    with acting_as(actor):
        return service(getattr(subject, "pk", subject), note=note, now=clock.now(), **values)


def complete_order(order_id: str, result: TransferResult, *, actor: str = "staff:malee") -> bool:
    """Staff end an overdue order."""
    with acting_as(actor):
        return order_completion.complete_by_staff(order_id, result, now=clock.now())


def now_of(movement: BankTransaction) -> tuple[str, str]:
    """Outcome and resolution."""
    movement.refresh_from_db()
    return movement.match_result, movement.resolution_state


def suspense() -> int:
    """Satang that are nobody's."""
    held = Entry.objects.filter(account__type=AccountType.SUSPENSE)
    return sum(held.values_list("amount", flat=True))


def postings_of(subject_id: str) -> list[tuple[str, int]]:
    """Facts and their satang, in the order in which they were posted."""
    return list(Journal.objects.filter(subject_id=subject_id).order_by("id").values_list("type", "amount"))


def told_of(subject_id: str) -> list[tuple[str, dict[str, Any]]]:
    """The notifications to merchants, the oldest first: type and data."""
    events = Event.objects.filter(subject_id=subject_id).order_by("created_at", "id")
    return [(event.type, orjson.loads(bytes(event.body))["data"]) for event in events]


def kinds_told(subject_id: str) -> list[str]:
    return [kind for kind, _ in told_of(subject_id)]


def carry_back(times: int = 1) -> None:
    """So many rounds of the task for returns, each when all that waits has come due."""
    for _ in range(times):
        return_completion.run_due(now=clock.now)
        pass_time()


def return_of(movement: BankTransaction) -> Return:
    """The latest."""
    found: Return = Return.objects.filter(movement=movement).latest("created_at", "id")
    return found
