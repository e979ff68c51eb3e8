"""Requests for withdrawals, and what became of their money."""

from typing import Any

import orjson

from core import clock
from ledger import accounts, services as ledger
from ledger.models import Entry
from tests.conftest import SandboxBankClient, Shop
from tests.transfers.builders import pass_time
from transfers import services as transfers
from webhooks.models import Event
from withdrawals.services import TRANSFER_HANDLER

PATH = "/Thai/v1/withdrawals"
ACCOUNT = "4051234567"


def withdrawal_request(**changes: Any) -> dict[str, Any]:
    """A request to send 1,000.00 THB."""
    return {
        "amount": 100_000,
        "currency": "THB",
        "bank_code": "014",
        "bank_account": ACCOUNT,
        "account_name": "สมชาย ใจดี",
    } | changes


def fund(shop: Shop, bank: SandboxBankClient, satang: int = 150_000) -> None:
    assert bank.notify(shop.qr_code(amount=satang)).status_code == 200


def withdrawn(shop: Shop, **changes: Any) -> dict[str, Any]:
    answer = shop.post(PATH, withdrawal_request(**changes))
    assert answer.status_code == 200, answer.content
    made: dict[str, Any] = answer.json()
    return made


def fetch_withdrawal(shop: Shop, withdrawal: dict[str, Any]) -> dict[str, Any]:
    """Return the withdrawal, which is the same at both forms of the path."""
    thai, plain = (
        shop.get(f"{form}/withdrawals/{withdrawal['withdrawal_id']}") for form in ("/Thai/v1", "/v1")
    )
    assert (thai.status_code, thai.content) == (200, plain.content)
    found: dict[str, Any] = thai.json()
    return found


def send_due_withdrawals(times: int = 1) -> None:
    """Run the worker's task `times` times, with a long time between."""
    for turn in range(times):
        if turn:
            pass_time()
        transfers.run_due("withdrawal", TRANSFER_HANDLER, now=clock.now)


def balance(shop: Shop) -> tuple[int, int]:
    """Return satang available and reserved."""
    held = ledger.balance(shop.merchant.id)
    return held.available, held.reserved


def sent_out() -> int:
    """Return the satang that left through the sandbox bank, less what came in."""
    moved = Entry.objects.filter(account_id=accounts.bank("sandbox"))
    return sum(moved.values_list("amount", flat=True))


def event_data_of(withdrawal: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the bodies of its events, the oldest first."""
    events = Event.objects.filter(subject_id=withdrawal["withdrawal_id"])
    found = [orjson.loads(bytes(event.body)) for event in events]
    order = ["pending", "processed", "succeeded", "failed"]
    return sorted(found, key=lambda body: order.index(body["event"].partition(".")[2]))


def events_of(withdrawal: dict[str, Any]) -> list[str]:
    return [str(body["event"]) for body in event_data_of(withdrawal)]
