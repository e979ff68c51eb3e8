"""A shop with exceptions, what its bank reports, what staff decide, and pages of the console."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import orjson
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.db.models import Model
from django.test import Client

import banks
from banks import TransferResult
from core import clock, money
from core.clock import BANGKOK
from ledger.models import AccountType, Entry, Journal
from reconciliation.exceptions import contradictions, resolutions
from reconciliation.exceptions.confirmations import confirm_manually
from reconciliation.exceptions.exception_acts import EXCEPTION_ACTS
from reconciliation.matching import intake, order_completion, services as matching
from reconciliation.models import BankTransaction, ReportSource, Return
from tests.context import acting_as
from tests.refunds.builders import RefundShop
from tests.transfers.builders import pass_time
from webhooks.models import Event

NOTE = "The customer called."
SERVICES: dict[str, Callable[..., Any]] = {
    "confirm": confirm_manually,
    "mark_failed": contradictions.mark_failed,
    "mark_returned": contradictions.mark_returned,
}
EXCEPTIONS_URL = "/admin/reconciliation/reconciliationexception/"


# What a person needs who resolves exceptions in every way but `confirm`.
RESOLVES = [
    "view_banktransaction",
    *(each.permission.partition(".")[2] for each in EXCEPTION_ACTS if each.slug != "confirm"),
]


def staff_client(name: str, *permissions: str) -> Client:
    """A logged-in member of staff with these permissions."""
    user = User.objects.create_user(name, password="three-elephants-crossing", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


def exception_url(subject_id: str) -> str:
    return f"{EXCEPTIONS_URL}{quote(subject_id)}/change/"


def get_page(client: Client, path: str, **query: Any) -> str:
    answer = client.get(path, query)
    assert answer.status_code == 200, answer.status_code
    return answer.content.decode()


@dataclass
class Seller(RefundShop):
    """A shop that sells, refunds, and gets money that does not match."""

    def report(self, code: dict[str, Any], **changes: Any) -> BankTransaction:
        """The bank reports money for a code. Return the bank transaction."""
        notification = self.bank.notification(code, **changes)
        assert self.bank.post(notification).status_code == 200
        bank_transaction: BankTransaction = BankTransaction.objects.get(
            bank_reference=notification["transaction_id"], kind=notification["type"]
        )
        return bank_transaction

    def unmatched(self, **changes: Any) -> BankTransaction:
        return self.report(self.shop.qr_code(), **{"reference1": "NOBODYKNOWSTHIS00000"} | changes)

    def mismatch(self, satang: int = 149_900, **changes: Any) -> BankTransaction:
        return self.report(self.shop.qr_code(), satang=satang, **changes)

    def duplicate(self) -> BankTransaction:
        code = self.shop.qr_code()
        self.report(code)
        return self.report(code)

    def late(self, by: timedelta = timedelta(minutes=4)) -> BankTransaction:
        code = self.shop.qr_code(expiry_minutes=1)
        return self.report(code, paid_at=clock.now() + timedelta(minutes=1) + by)

    def bank_transaction(self, payment_id: str) -> BankTransaction:
        """Return the bank transaction that paid a payment."""
        found: BankTransaction = BankTransaction.objects.credited().get(payment_id=payment_id)
        return found

    def sale(self, satang: int = 150_000) -> BankTransaction:
        """Return the bank transaction of a new payment."""
        return self.bank_transaction(self.paid(satang))

    def reverse(self, credit: BankTransaction, satang: int | None = None, **changes: Any) -> BankTransaction:
        """The bank reverses a credit. Return the reversal."""
        notification = reversal_of(credit, satang, **changes)
        assert self.bank.post(notification).status_code == 200
        found: BankTransaction = BankTransaction.objects.get(
            bank_reference=notification["transaction_id"], kind="reversal", bank="sandbox"
        )
        return found

    def ask_to(self, decision: str, bank_transaction: BankTransaction, **body: Any) -> Any:
        """The answer when the merchant decides about an exception: `accept` or `return`."""
        path = f"/v1/payments/{bank_transaction.payment_id}/exceptions/{bank_transaction.id}/{decision}"
        return self.shop.post(path, body)

    def decide(self, decision: str, bank_transaction: BankTransaction, **body: Any) -> dict[str, Any]:
        """The exception after the merchant has decided."""
        answer = self.ask_to(decision, bank_transaction, **body)
        assert answer.status_code == 200, answer.content
        found: dict[str, Any] = answer.json()
        return found

    def funds(self) -> dict[str, Any]:
        """Return what the balance API shows, without the currency."""
        balance: dict[str, Any] = self.shop.get("/v1/balance").json()
        return {name: balance[name] for name in balance if name != "currency"}


def reversal_of(credit: BankTransaction, satang: int | None = None, **changes: Any) -> dict[str, Any]:
    """Return the notification of a reversal of a credit, or of a part of it."""
    return {
        "transaction_id": credit.current_bank_reference,
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
        "payer_account": credit.payer_account or "1234567890",  # statement lines have no account
    } | changes


def parse(notification: dict[str, Any]) -> banks.ReportedTransaction:
    """Return the notification as the adapter of the sandbox bank parses it."""
    parsed = banks.get("sandbox").parse_notification(orjson.dumps(notification))
    assert isinstance(parsed, banks.ReportedTransaction)
    return parsed


def apply_inquiry_answer(notification: dict[str, Any], **changes: Any) -> BankTransaction:
    """Store and apply what the bank answers to an inquiry."""
    reported = replace(parse(notification), **changes)
    named = {"payer_account": reported.payer_account, "payer_bank_code": reported.payer_bank_code}
    bank_transaction = intake.receive(
        bank="sandbox",
        body=orjson.dumps(notification | named),
        notification=reported,
        now=clock.now(),
        source=ReportSource.INQUIRY,
    )
    return matching.apply(bank_transaction_id=bank_transaction.id, now=clock.now())


def decide(
    action: str, subject: Model | str, *, actor: str = "staff:malee", note: str = NOTE, **values: Any
) -> Any:
    """Do an action of staff on an exception, by the name of its service."""
    service = SERVICES.get(action) or getattr(resolutions, action)
    with acting_as(actor):
        return service(getattr(subject, "pk", subject), note=note, now=clock.now(), **values)


def complete_order(order_id: str, result: TransferResult, *, actor: str = "staff:malee") -> bool:
    """Staff complete an overdue order."""
    with acting_as(actor):
        return order_completion.complete_by_staff(order_id, result, now=clock.now())


def state_of(bank_transaction: BankTransaction) -> tuple[str, str]:
    """Return the match result and the resolution state."""
    bank_transaction.refresh_from_db()
    return bank_transaction.match_result, bank_transaction.resolution_state


def suspense() -> int:
    """Return the satang in suspense accounts."""
    entries = Entry.objects.filter(account__type=AccountType.SUSPENSE)
    return sum(entries.values_list("amount", flat=True))


def postings_of(subject_id: str) -> list[tuple[str, int]]:
    """Return the types and amounts of journals, the oldest first."""
    return list(Journal.objects.filter(subject_id=subject_id).order_by("id").values_list("type", "amount"))


def events_of(subject_id: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the types and data of webhook events, the oldest first."""
    events = Event.objects.filter(subject_id=subject_id).order_by("created_at", "id")
    return [(event.type, orjson.loads(bytes(event.body))["data"]) for event in events]


def event_types_of(subject_id: str) -> list[str]:
    return [event_type for event_type, _ in events_of(subject_id)]


def run_returns(times: int = 1) -> None:
    """Run the task for returns several times, each time after all waiting times."""
    for _ in range(times):
        order_completion.run_due_returns(now=clock.now)
        pass_time()


def latest_return(bank_transaction: BankTransaction) -> Return:
    found: Return = Return.objects.filter(bank_transaction=bank_transaction).latest("created_at", "id")
    return found
