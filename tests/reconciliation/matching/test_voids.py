"""Voids at a bank that reports them as reversals: ordered money is not taken twice."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import time_machine

import banks
from banks import AdapterConfig, TransferOrder, TransferResult
from core import money
from payments.models import Payment
from reconciliation.models import BankTransaction, ReconciliationException
from refunds.tasks import run_due
from tests.banks import fake_bbl
from tests.banks.fake_bbl import INQUIRY, VOID, FakeBbl, response
from tests.error_messages import check_error
from tests.merchants.connection_configs import BBL_CONFIG
from tests.reconciliation.endpoint.test_notification_endpoint import ConnectedShop, connect_shop, pushed
from tests.transfers.builders import pass_time
from tests.webhook_receiver import Reply
from webhooks.models import Event
from withdrawals.tasks import run_due as withdraw_due

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
AFTERNOON = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
LATE = datetime(2026, 11, 21, 16, 30, tzinfo=UTC)  # 23:30 in Bangkok


@pytest.fixture(autouse=True)
def afternoon() -> Iterator[Any]:
    with time_machine.travel(AFTERNOON, tick=True) as machine:
        yield machine


@pytest.fixture
def bank() -> Iterator[FakeBbl]:
    with FakeBbl.running() as bank:
        yield bank


@pytest.fixture
def live(db: None, bank: FakeBbl) -> ConnectedShop:
    return connect_shop(BBL_CONFIG, credentials=fake_bbl.credentials(bank.secret, bank.base_url))


def paid(live: ConnectedShop, bank: FakeBbl) -> tuple[dict[str, Any], bytes]:
    """A code that was paid at the bank, and its notification."""
    code = live.shop.qr_code()
    notification = pushed(code)
    live.push(notification)
    bank.on(INQUIRY, response(**json.loads(notification)))
    return code, notification


def refund(live: ConnectedShop, code: dict[str, Any], **fields: Any) -> dict[str, Any]:
    answer = live.shop.post("/v1/refunds", {"payment_id": code["payment_id"]} | fields)
    assert answer.status_code == 200, answer.content
    made: dict[str, Any] = answer.json()
    return made


def void_notification(notification: bytes) -> bytes:
    return json.dumps(json.loads(notification) | {"txnType": "D"}).encode()


def assert_refunded_once(live: ConnectedShop, code: dict[str, Any]) -> None:
    assert live.shop.get("/v1/balance").json() == {"available": 0, "reserved": 0, "currency": "THB"}
    payment = Payment.objects.get(pk=code["payment_id"])
    assert (payment.status, payment.amount_refunded) == ("refunded", payment.amount)
    assert Event.objects.filter(type="refund.completed").count() == 1
    assert BankTransaction.objects.get(kind="reversal").match_result == "ordered"
    assert not ReconciliationException.objects.exists()


def test_void_reported_by_the_bank_is_matched_with_the_refund(live: ConnectedShop, bank: FakeBbl) -> None:
    code, notification = paid(live, bank)
    bank.on(VOID, response())
    made = refund(live, code)
    run_due()
    assert live.shop.get(f"/v1/refunds/{made['refund_id']}").json()["status"] == "completed"
    live.push(void_notification(notification))
    assert_refunded_once(live, code)
    assert len(bank.to(VOID)) == 1


def test_void_notification_may_arrive_before_the_response(live: ConnectedShop, bank: FakeBbl) -> None:
    code, notification = paid(live, bank)
    bank.on(VOID, Reply(status=500))
    refund(live, code)
    run_due()
    live.push(void_notification(notification))
    bank.on(INQUIRY, response(**json.loads(notification), txnStatus="D"))
    pass_time()
    run_due()
    payment = Payment.objects.get(pk=code["payment_id"])
    assert BankTransaction.objects.get(kind="reversal").match_result == "ordered"
    assert payment.amount_refunding + payment.amount_refunded == payment.amount
    assert live.shop.get("/v1/balance").json()["available"] == 0


def test_void_initiated_by_the_bank_is_applied_as_reversal(live: ConnectedShop, bank: FakeBbl) -> None:
    code, notification = paid(live, bank)
    live.push(void_notification(notification))
    assert BankTransaction.objects.get(kind="reversal").match_result == "reversed"
    assert live.status(code) == "refunded"


def test_void_after_the_bank_day_fails(live: ConnectedShop, bank: FakeBbl, afternoon: Any) -> None:
    code, _ = paid(live, bank)
    afternoon.move_to(LATE)
    made = refund(live, code)
    run_due()
    ended = live.shop.get(f"/v1/refunds/{made['refund_id']}").json()
    assert (ended["status"], ended["failure_code"]) == ("failed", "void_window_closed")
    assert live.shop.get("/v1/balance").json()["available"] == code["amount"]


def test_partial_refund_is_refused_by_a_void_only_bank(live: ConnectedShop, bank: FakeBbl) -> None:
    code, notification = paid(live, bank)
    part = {"payment_id": code["payment_id"], "amount": code["amount"] - 1}
    refused = live.shop.post("/v1/refunds", part).json()
    assert refused["error"]["param"] == "amount"
    check_error(refused, "partial_refund_not_supported", whole=money.display(code["amount"]))
    assert live.shop.get("/v1/refunds").json()["total"] == 0
    live.push(void_notification(notification))
    assert live.status(code) == "refunded"


def test_refund_to_an_account_is_refused_by_a_void_only_bank(live: ConnectedShop, bank: FakeBbl) -> None:
    code, _ = paid(live, bank)
    to = {"bank_code": "014", "bank_account": "4051234567", "account_name": "Somchai"}
    answer = live.shop.post("/v1/refunds", {"payment_id": code["payment_id"], "destination": to})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bank_not_configured")
    money_out = {"amount": 10_000, "currency": "THB"} | to
    assert live.shop.post("/v1/withdrawals", money_out).json()["error"]["code"] == "bank_not_configured"


TO_ACCOUNT = {"bank_code": "014", "bank_account": "4051234567", "account_name": "Somchai"}


class AccountSender:
    """A bank that sends to accounts, added as CONTRIBUTING.md says."""

    IS_VOID_ONLY = False
    sent: list[TransferOrder] = []

    def __init__(self, config: AdapterConfig) -> None:
        assert config.bank == "bbl"

    def send(self, order: TransferOrder) -> TransferResult:
        self.sent.append(order)
        return TransferResult("succeeded", "b-1")

    inquire = send


def test_bank_that_sends_to_accounts_gets_no_voids(
    live: ConnectedShop, bank: FakeBbl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(banks.LIVE_SENDERS, "bank:bbl", AccountSender)
    monkeypatch.setattr(AccountSender, "sent", [])
    code, notification = paid(live, bank)
    refund(live, code, amount=20_000, destination=TO_ACCOUNT)
    withdrawal = {"amount": 30_000, "currency": "THB"} | TO_ACCOUNT
    assert live.shop.post("/v1/withdrawals", withdrawal).status_code == 200
    run_due()
    withdraw_due()
    sent = [(order.purpose, order.amount, order.account, order.charge_id) for order in AccountSender.sent]
    assert sent == [("refund", 20_000, "4051234567", ""), ("withdrawal", 30_000, "4051234567", "")]
    live.push(void_notification(notification))
    assert BankTransaction.objects.get(kind="reversal").match_result == "reversed"
