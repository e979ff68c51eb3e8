"""A shop that makes refunds through the API."""

from dataclasses import dataclass, replace
from typing import Any

import orjson

import banks
from core import clock
from payments.payers import Payer
from reconciliation.matching import intake, services as matching
from refunds.completion import TRANSFER_HANDLER
from tests.conftest import SandboxBankClient, Shop
from tests.transfers.builders import pass_time
from transfers import services as transfers

REFUNDS = "/v1/refunds"
PAYEE = {"bank_code": "KBANK", "bank_account": "4051234567", "account_name": "สมหญิง ใจดี"}
OBJECT = {
    "refund_id", "payment_id", "transaction_id", "amount", "amount_display", "currency", "status",
    "pending_reason", "awaiting_approval", "reason", "note", "failure_code", "metadata", "created_at",
    "updated_at", "completed_at",
}  # fmt: skip
NOBODY = Payer()
"""The payer that a bank reports if it does not know who paid."""


@dataclass
class RefundShop:
    """A shop, the sandbox bank that pays it, and its refunds."""

    shop: Shop
    bank: SandboxBankClient

    def paid(self, satang: int = 150_000, *, payer: Payer | None = None, **fields: Any) -> str:
        """Make a payment that succeeded; without `payer` by a callback that names the payer."""
        code = self.shop.qr_code(amount=satang, **fields)
        if payer is None:
            assert self.bank.notify(code).status_code == 200
        else:
            report(self.bank.notification(code), payer)
        return str(code["payment_id"])

    def ask(self, payment_id: str, *, key: str | None = None, **fields: Any) -> Any:
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
        """Return satang available and reserved."""
        held = self.shop.get("/v1/balance").json()
        return held["available"], held["reserved"]

    def history(self, kind: str = "refund") -> list[tuple[str, int]]:
        """Return status and amount of the transactions, the newest first."""
        rows = self.shop.get(f"/v1/transactions?type={kind}").json()["transactions"]
        return [(row["status"], row["amount"]) for row in rows]


def report(notification: dict[str, Any], payer: Payer) -> None:
    """Report it with a payer as other banks name them: masked, or not at all."""
    parsed: Any = banks.get("sandbox").parse_notification(orjson.dumps(notification))
    reported = replace(
        parsed,
        payer_name=payer.name,
        payer_bank_code=payer.bank_code,
        payer_account=payer.account,
    )
    named = {"payer_account": payer.account, "payer_bank_code": payer.bank_code}
    body = orjson.dumps(notification | named)
    bank_transaction = intake.receive(bank="sandbox", body=body, notification=reported, now=clock.now())
    matching.apply_report(bank_transaction, now=clock.now())


def send_due_refunds(times: int = 1) -> None:
    """Run the task `times` times, each time after all transfers became due."""
    for _ in range(times):
        transfers.run_due("refund", TRANSFER_HANDLER, now=clock.now)
        pass_time()


def error_of(answer: Any) -> tuple[int, str, str | None]:
    error = answer.json()["error"]
    return answer.status_code, error["code"], error.get("param")
