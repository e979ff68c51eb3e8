"""The sandbox bank over real HTTP: the last digits of an account choose the result."""

from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings

from core import clock
from reconciliation.models import BankNotification
from sandbox import callbacks
from sandbox.models import SandboxCallback, SandboxOrder
from tests.conftest import Shop
from tests.stack import wait_until
from tests.withdrawals.builders import balance, events_of, fetch_withdrawal, withdrawn
from withdrawals.tasks import run_due

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("audit_is_clean"),
]


@pytest.fixture(autouse=True)
def service(live_server: Any, settings: Settings) -> None:
    """Serve the service and the sandbox bank at one address."""
    settings.BASE_URL = live_server.url
    settings.SPEEDUP = 10


def ended(shop: Shop, account: str, status: str) -> dict[str, Any]:
    """Withdraw to the account and wait for the status."""
    made = withdrawn(shop, bank_account=account)

    def is_over() -> bool:
        run_due()
        return bool(fetch_withdrawal(shop, made)["status"] == status)

    wait_until(is_over, 60)
    return fetch_withdrawal(shop, made)


def test_withdrawal_to_another_account_succeeds(shop: Shop) -> None:
    made = ended(shop, "4051234567", "succeeded")
    order = SandboxOrder.objects.get()
    assert (order.reference, order.account, order.amount) == (made["withdrawal_id"], "4051234567", 100_000)
    assert made["bank_reference"] == order.id
    assert balance(shop) == (50_000, 0)


def test_withdrawal_to_0002_fails(shop: Shop) -> None:
    made = ended(shop, "4051230002", "failed")
    assert (made["failure_code"], made["completed_at"]) == ("invalid_account", None)
    assert balance(shop) == (150_000, 0)


def test_withdrawal_to_0003_is_sent_once_and_inquired(shop: Shop) -> None:
    made = ended(shop, "4051230003", "succeeded")
    assert SandboxOrder.objects.get().reference == made["withdrawal_id"]
    assert balance(shop) == (50_000, 0)


def test_withdrawal_to_0004_is_returned_after_success(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox.orders.RETURNS_AFTER", timedelta(hours=1))
    made = ended(shop, "4051230004", "succeeded")
    assert balance(shop) == (50_000, 0)
    SandboxCallback.objects.update(due_at=clock.now())
    assert callbacks.run_once() == 1
    back = fetch_withdrawal(shop, made)
    assert (back["status"], back["failure_code"]) == ("failed", "returned_by_bank")
    assert back["completed_at"] == made["completed_at"]
    assert balance(shop) == (150_000, 0)
    assert BankNotification.objects.filter(result="new", bank_transaction=None).count() == 1
    assert events_of(made)[-2:] == ["withdrawal.succeeded", "withdrawal.failed"]
