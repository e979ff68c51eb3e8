"""A shop's counter where money goes back."""

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from core import clock
from ledger import accounts
from payments import services as payments
from payments.models import Payment
from payments.services import Payer
from refunds.completion import TRANSFER_HANDLER
from tests.conftest import SandboxBankClient, Shop
from tests.transfers.builders import pass_time
from transfers import services as transfers

REFUNDS = "/v1/refunds"
PAYEE = {"bank_code": "KBANK", "bank_account": "4051234567", "account_name": "สมหญิง ใจดี"}
OBJECT = {
    "refund_id", "payment_id", "transaction_id", "amount", "currency", "status", "pending_reason",
    "awaiting_approval", "reason", "note", "failure_code", "metadata", "created_at", "updated_at",
    "completed_at",
}  # fmt: skip
NOBODY = Payer()
"""Whom a bank names that does not say who paid."""


@dataclass
class RefundShop:
    """A shop that is paid by the bank and gives money back."""

    shop: Shop
    bank: SandboxBankClient

    def paid(self, satang: int = 150_000, *, payer: Payer | None = None, **fields: Any) -> str:
        """A payment that succeeded; without `payer` by the word of the sandbox bank, which says who paid."""
        code = self.shop.qr_code(amount=satang, **fields)
        if payer is None:
            assert self.bank.notify(code).status_code == 200
        else:
            confirm(code["payment_id"], payer)
        return str(code["payment_id"])

    def ask(self, payment_id: str, *, key: str | None = None, **fields: Any) -> Any:
        """The answer to a request for a refund."""
        return self.shop.post(REFUNDS, {"payment_id": payment_id} | fields, key=key)

    def refund(self, payment_id: str, **fields: Any) -> dict[str, Any]:
        answer = self.ask(payment_id, **fields)
        assert answer.status_code == 200, answer.content
        made: dict[str, Any] = answer.json()
        return made

    def read(self, refund: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = self.shop.get(f"{REFUNDS}/{refund['refund_id']}").json()
        return found

    def act(self, refund: dict[str, Any], act: str, body: Any = None) -> Any:
        return self.shop.post(f"{REFUNDS}/{refund['refund_id']}/{act}", body)

    def balance(self) -> tuple[int, int]:
        """Available and reserved."""
        held = self.shop.get("/v1/balance").json()
        return held["available"], held["reserved"]

    def history(self, kind: str = "refund") -> list[tuple[str, int]]:
        """Status and amount of the rows, the newest first."""
        rows = self.shop.get(f"/v1/transactions?type={kind}").json()["transactions"]
        return [(row["status"], row["amount"]) for row in rows]


@transaction.atomic
def confirm(payment_id: str, payer: Payer) -> None:
    """What a bank transaction does to its payment."""
    payment, now = Payment.objects.locked(payment_id), clock.now()
    payments.succeed([payments.PaidPayment(payment, now, payer)], source=accounts.bank("sandbox"), now=now)


def send_due_refunds(times: int = 1) -> None:
    """So many rounds of the task, each when all that waits has come due."""
    for _ in range(times):
        transfers.run_due("refund", TRANSFER_HANDLER, now=clock.now)
        pass_time()


def error_of(answer: Any) -> tuple[int, str, str | None]:
    error = answer.json()["error"]
    return answer.status_code, error["code"], error.get("param")
