"""Siam Commercial Bank does not sign its notifications: its API confirms the money before it is credited."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine

from core import clock
from core.clock import BANGKOK
from core.thai import thaiqr
from reconciliation.exceptions import resolutions
from reconciliation.models import (
    BankNotification,
    BankTransaction,
    ConfirmationInquiry,
    ReconciliationException,
    ResolutionType,
)
from tests.banks import fake_scb
from tests.banks.fake_scb import CONFIRMATION, FakeScb, confirmation, success, transaction
from tests.conftest import new_client, open_shop
from tests.reconciliation.builders import RESOLVES, decide, exception_url, get_page, staff_client
from tests.reconciliation.inquiries.builders import sweep
from tests.reconciliation.statements.statement_files import confirm_all_transactions, csv_file, import_file
from tests.webhook_receiver import Reply

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
DAY = "2026-11-21"
NO_ANSWER = Reply(503, body=b"")


class ScbShop:
    """A live shop of the bank with one code, and its notification endpoint."""

    def __init__(self, bank: FakeScb) -> None:
        self.bank, self.shop = bank, open_shop("Khao Soi", mode="live")
        self.secret = bank.connect(self.shop)
        self.code = self.shop.qr_code()
        self.reference = str(thaiqr.parse(self.code["qr_data"]).reference1)
        paid_at = clock.now().astimezone(BANGKOK).isoformat(timespec="seconds")
        self.fields = {"billPaymentRef1": self.reference, "transactionDateandTime": paid_at}

    def notify(self, **changes: Any) -> Any:
        path = f"/banks/scb/notifications/{self.secret}"
        body = confirmation(**self.fields | changes)
        return new_client().post(path, body, content_type="application/json")

    def on_inquiry(self, *replies: Reply, reference: str = "") -> None:
        self.bank.on_inquiry(DAY, *replies, reference=reference or self.reference)

    def paid(self, **changes: Any) -> Reply:
        return success([transaction(**self.fields | changes)])

    @property
    def status(self) -> str:
        return str(self.shop.payment(self.code["payment_id"])["status"])


@pytest.fixture
def shop(db: None, noon: datetime) -> Iterator[ScbShop]:
    with time_machine.travel(noon, tick=False), FakeScb.running() as bank:
        yield ScbShop(bank)


def test_unsigned_notification_is_stored_and_credits_nothing(shop: ScbShop) -> None:
    shop.on_inquiry(success([]))
    response = shop.notify()
    assert (response.status_code, response.json()["transactionId"]) == (200, CONFIRMATION["transactionId"])
    assert (shop.status, BankTransaction.objects.count()) == ("pending", 0)
    assert sweep(1) == 1
    assert (shop.status, BankTransaction.objects.count()) == ("pending", 0)
    stored = BankNotification.objects.get()
    assert (stored.result, json.loads(stored.body)["billPaymentRef1"]) == ("unsigned", shop.reference)


def test_payment_succeeds_when_inquiry_confirms_unsigned_notification(shop: ScbShop) -> None:
    shop.on_inquiry(shop.paid())
    shop.notify()
    assert sweep(0) == 1
    bank_transaction = BankTransaction.objects.get()
    assert (shop.status, bank_transaction.source, bank_transaction.is_confirmed) == (
        "succeeded",
        "inquiry",
        True,
    )
    assert ConfirmationInquiry.objects.get().confirmed_at is not None
    assert sweep(3600) == 0


@pytest.mark.parametrize(("received_early", "status"), [(1, "succeeded"), (-1, "expired")])
def test_lateness_counts_from_reception_of_unsigned_notification(
    shop: ScbShop, received_early: int, status: str
) -> None:
    """The clock of the bank is 5 s ahead, and its answer comes after the code has expired."""
    end = datetime.fromisoformat(shop.code["expires_at"])
    paid_at = (end + timedelta(seconds=5)).astimezone(BANGKOK).isoformat(timespec="seconds")
    shop.fields["transactionDateandTime"] = paid_at
    shop.on_inquiry(shop.paid())
    with time_machine.travel(end - timedelta(seconds=received_early), tick=False) as now:
        shop.notify()
        now.move_to(end + timedelta(seconds=2))
        sweep(0)
        assert (shop.status, BankTransaction.objects.get().is_confirmed) == (status, True)


def test_unsigned_notification_with_forged_amount_credits_nothing(shop: ScbShop) -> None:
    shop.on_inquiry(shop.paid())
    shop.notify(amount="2000000.00")
    sweep(0)
    assert (BankTransaction.objects.get().amount, shop.status) == (150_000, "succeeded")


def test_confirmation_inquiry_is_retried_with_back_off(shop: ScbShop) -> None:
    shop.on_inquiry(NO_ANSWER, NO_ANSWER, shop.paid())
    shop.notify()
    sweep(0)
    first = ConfirmationInquiry.objects.get()
    assert (first.last_outcome, first.due_at) == ("no_answer", clock.now() + timedelta(seconds=1))
    assert sweep(0.5) == 0
    assert sweep(1) == 1
    assert ConfirmationInquiry.objects.get().due_at == clock.now() + timedelta(seconds=3)
    sweep(3)
    assert shop.status == "succeeded"


def test_repeated_unsigned_notification_makes_one_inquiry(shop: ScbShop) -> None:
    shop.on_inquiry(success([]))
    for _ in range(3):
        assert shop.notify().status_code == 200
    assert (BankNotification.objects.count(), ConfirmationInquiry.objects.count()) == (3, 1)
    assert sweep(0) == 1


def test_unsigned_notification_with_unknown_reference_becomes_exception(shop: ScbShop) -> None:
    shop.on_inquiry(shop.paid(billPaymentRef1="TYPEDBYHAND"), reference="TYPEDBYHAND")
    shop.notify(billPaymentRef1="TYPEDBYHAND")
    assert not BankTransaction.objects.exists()
    sweep(0)
    bank_transaction = BankTransaction.objects.get()
    assert (bank_transaction.match_result, bank_transaction.is_confirmed) == ("unmatched", True)


def test_notification_unconfirmed_for_five_minutes_is_an_exception(shop: ScbShop) -> None:
    shop.on_inquiry(success([]))
    shop.notify()
    sweep(0)
    assert not ReconciliationException.objects.exists()
    sweep(301)
    listed = ReconciliationException.objects.get()
    assert (listed.reason, listed.amount) == ("unconfirmed", 150_000)
    assert listed.payment_id == shop.code["payment_id"]
    malee = staff_client("malee", *RESOLVES)
    assert "Not confirmed by the bank" in get_page(malee, "/admin/reconciliation/reconciliationexception/")
    counted = new_client().get("/metrics").content.decode()
    assert 'notification_exceptions{money="live"} 1.0' in counted
    assert 'bank_transaction_exceptions{money="live"} 0.0' in counted
    assert "without a signature" in get_page(malee, exception_url(listed.id))
    decide("dismiss", listed.id)
    assert not ReconciliationException.objects.exists()


def test_exception_closes_when_bank_confirms_later(shop: ScbShop) -> None:
    shop.on_inquiry(success([]))
    shop.notify()
    sweep(301)
    assert ReconciliationException.objects.count() == 1
    shop.on_inquiry(shop.paid())
    sweep(700)
    assert (ReconciliationException.objects.count(), shop.status) == (0, "succeeded")


def test_statement_and_unsigned_notification_together_are_not_yet_confirmed(shop: ScbShop) -> None:
    shop.on_inquiry(success([]))
    shop.notify()
    shown = f"2026-11-21,12:00:00,{fake_scb.BILLER},{shop.reference},,PTF,1500.00,credit,Somchai,014"
    import_file(csv_file(shown), bank="scb")
    balance = shop.shop.get("/v1/balance").json()
    assert (balance["available"], balance["unconfirmed"]) == (0, 150_000)
    bank_transaction = BankTransaction.objects.get()
    assert not bank_transaction.is_confirmed
    assert ResolutionType.CONFIRMED in resolutions.allowed_types(bank_transaction)
    confirm_all_transactions()
    assert shop.shop.get("/v1/balance").json()["available"] == 150_000


def test_timeline_shows_confirmation_inquiry(shop: ScbShop) -> None:
    shop.on_inquiry(shop.paid())
    shop.notify()
    sweep(0)
    path = f"/v1/payments/{shop.code['payment_id']}/timeline"
    entries = shop.shop.get(path).json()["timeline"]
    shown = [entry for entry in entries if entry["type"] == "bank.notification"]
    assert [entry["details"]["result"] for entry in reversed(shown)] == ["unsigned", "new"]
    assert "not signed" in shown[-1]["summary"]
