"""A test merchant advances its time, and what is due happens at once."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

import banks
from core import clock
from payments import card_inquiries, expiry_sweep
from payments.models import CardCharge, Payment
from reconciliation.inquiries import scan
from reconciliation.models import BankTransaction, Inquiry
from refunds.completion import TRANSFER_HANDLER
from sandbox.models import SandboxCallback, SandboxEntry, SandboxOrder, SandboxPayment
from tests.banks.ledger_copy import MemoryLedger
from tests.conftest import SandboxBankClient, Shop
from tests.payments.conftest import acquirer, card_shop  # noqa: F401 (fixtures)
from tests.refunds.builders import RefundShop
from tests.transfers.builders import Bank
from tests.transfers.conftest import served_by  # noqa: F401 (a fixture)
from tests.webhook_receiver import Receiver, Reply
from tests.webhooks.builders import make_endpoint, only_delivery, set_health
from tests.webhooks.conftest import loopback, receiver  # noqa: F401 (fixtures)
from transfers import services as transfers
from webhooks.delivery import circuit_breaker, dispatcher
from webhooks.models import Endpoint, EndpointHealth, Event

pytestmark = pytest.mark.slow

PATH = "/sandbox/v1/clock"
MINUTE = timedelta(minutes=1)


def advance(shop: Shop, **fields: int) -> dict[str, Any]:
    answer = shop.post(PATH, fields)
    assert answer.status_code == 200, answer.content
    advanced: dict[str, Any] = answer.json()
    return advanced


def pay(shop: Shop, code: dict[str, Any], scenario: str = "paid", **times: datetime) -> None:
    """The customer pays at the sandbox bank, which reports it when the callback is due."""
    given = {name: clock.iso(at) for name, at in times.items()}
    body = {"qr_data": code["qr_data"], "scenario": scenario} | given
    assert shop.post("/sandbox/v1/payments", body).status_code == 200


def deliver_reports(bank: SandboxBankClient) -> int:
    """Deliver the callbacks of the sandbox bank that are due."""
    due = SandboxCallback.objects.filter(state="waiting", due_at__lte=clock.now())
    for callback in due:
        assert bank.post(callback.body.encode()).status_code == 200
        SandboxCallback.objects.filter(pk=callback.pk).update(state="delivered", ended_at=clock.now())
    return len(due)


def test_code_expires_at_once_with_its_event(shop: Shop, other_shop: Shop) -> None:
    code, other = shop.qr_code(), other_shop.qr_code()
    make_endpoint(shop, events=["payment.failed"])
    advanced = advance(shop, advance_minutes=16)
    assert (advanced["advanced_seconds"], advanced["moved"]["qr_codes"], advanced["moved"]["expired"]) == (
        960,
        1,
        1,
    )
    payment = shop.payment(code["payment_id"])
    assert payment["status"] == "expired"
    assert payment["created_at"] <= payment["expires_at"] == payment["updated_at"] <= clock.iso(clock.now())
    assert Payment.objects.get(pk=code["payment_id"]).status == "expired"
    assert [event["event"] for event in shop.get("/v1/events").json()["events"]] == [
        "payment.failed",
        "payment.pending",
    ]
    assert only_delivery().event_type == "payment.failed"
    assert other_shop.payment(other["payment_id"])["status"] == "pending"
    assert expiry_sweep.expire_due(now=clock.now()) == 0


def test_later_expiry_comes_nearer(shop: Shop) -> None:
    code = shop.qr_code(expiry_minutes=60)
    before = Payment.objects.get().expires_at
    assert advance(shop, advance_seconds=960)["moved"]["expired"] == 0
    payment = Payment.objects.get()
    assert before is not None and payment.expires_at is not None
    assert (payment.status, payment.expires_at) == ("pending", before - 16 * MINUTE)
    assert shop.get(f"/v1/qr-codes/{code['qr_code_id']}").json()["expires_at"] == clock.iso(
        payment.expires_at
    )
    advance(shop, advance_minutes=44)
    assert shop.payment(code["payment_id"])["status"] == "expired"


def test_payment_after_the_advance_is_late(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code()
    advance(shop, advance_minutes=16)
    pay(shop, code)
    assert deliver_reports(bank) == 1
    payment = shop.payment(code["payment_id"])
    assert payment["status"] == "expired"
    assert [(each["reason"], each["status"]) for each in payment["exceptions"]] == [("late", "open")]


@pytest.mark.parametrize(
    ("scenario", "paid_in", "status"),
    [
        ("paid", 5 * MINUTE, "succeeded"),
        ("paid", 15 * MINUTE - timedelta(seconds=2), "succeeded"),
        ("paid", 15 * MINUTE + timedelta(seconds=2), "expired"),
        ("reported_late", None, "succeeded"),
    ],
)
def test_planned_payment_keeps_its_order_with_the_expiry(
    shop: Shop, bank: SandboxBankClient, scenario: str, paid_in: timedelta | None, status: str
) -> None:
    code = shop.qr_code()
    paid_at = (
        {} if paid_in is None else {"paid_at": clock.now() + paid_in, "report_at": clock.now() + 20 * MINUTE}
    )
    pay(shop, code, scenario, **paid_at)
    assert deliver_reports(bank) == 0
    assert advance(shop, advance_minutes=25 * 60)["moved"]["bank_reports"] == 1
    now = clock.now() + timedelta(milliseconds=1)
    assert SandboxPayment.objects.get().paid_at == SandboxEntry.objects.get().occurred_at <= now
    assert deliver_reports(bank) == 1
    assert shop.payment(code["payment_id"])["status"] == status
    assert (BankTransaction.objects.get().match_result == "late") == (status == "expired")


def test_payment_that_the_bank_reported_before_its_time_stays(shop: Shop, bank: SandboxBankClient) -> None:
    pay(shop, shop.qr_code(), "late")
    assert deliver_reports(bank) == 1
    before = SandboxEntry.objects.values().get()
    assert advance(shop, advance_minutes=25 * 60)["moved"]["bank_reports"] == 0
    assert SandboxEntry.objects.values().get() == before


def test_inquiry_is_due_at_once(shop: Shop) -> None:
    shop.qr_code()
    scan.create_inquiries(now=clock.now() + timedelta(seconds=5))
    before = Inquiry.objects.get().due_at
    assert before is not None and before > clock.now()
    assert advance(shop, advance_seconds=20)["moved"]["inquiries"] == 1
    due_at = Inquiry.objects.get().due_at
    assert due_at is not None and due_at <= clock.now()


@pytest.mark.usefixtures("loopback")
def test_failed_delivery_is_sent_again_at_once(shop: Shop, receiver: Receiver) -> None:  # noqa: F811
    receiver.on("/hook", Reply(status=500), Reply(status=500), Reply(status=200))
    make_endpoint(shop, receiver.url(), events=["payment.pending"])
    shop.qr_code()
    assert [dispatcher.drain(), dispatcher.drain()] == [1, 0]
    for minutes in (1, 10):
        assert advance(shop, advance_minutes=minutes)["moved"]["deliveries"] == 1
        assert dispatcher.drain() == 1
    assert (only_delivery().state, only_delivery().attempt_count) == ("succeeded", 3)


@pytest.mark.usefixtures("loopback")
def test_pause_of_an_endpoint_passes_and_five_days_of_failures_disable_it(
    shop: Shop,
    receiver: Receiver,  # noqa: F811
) -> None:
    receiver.on("/hook", Reply(status=500))
    endpoint = make_endpoint(shop, receiver.url(), events=["payment.pending"])
    now = clock.now()
    set_health(
        endpoint,
        consecutive_failures=circuit_breaker.MAX_CONSECUTIVE_FAILURES,
        failing_since=now,
        paused_at=now,
        paused_until=now + 15 * MINUTE,
        pause_seconds=900,
    )
    shop.qr_code()
    assert dispatcher.drain() == 0
    advance(shop, advance_minutes=15)
    assert (dispatcher.drain(), Endpoint.objects.get().status) == (1, "active")
    advance(shop, advance_minutes=5 * 24 * 60)
    assert dispatcher.drain() == 1
    assert (Endpoint.objects.get().status, Endpoint.objects.get().disabled_reason) == ("disabled", "failing")


def test_endpoint_of_another_merchant_stays(shop: Shop, other_shop: Shop) -> None:
    endpoint = make_endpoint(other_shop, events=["payment.pending"])
    set_health(endpoint, failing_since=clock.now(), consecutive_failures=3)
    other_shop.qr_code()
    before = only_delivery().due_at, EndpointHealth.objects.get().failing_since
    assert advance(shop, advance_minutes=60)["moved"]["deliveries"] == 0
    assert (only_delivery().due_at, EndpointHealth.objects.get().failing_since) == before


def test_refund_completes_at_once(
    shop: Shop,
    bank: SandboxBankClient,
    served_by: Callable[..., Bank],  # noqa: F811
) -> None:
    served_by()
    refund_shop = RefundShop(shop, bank)
    refund = refund_shop.refund(refund_shop.paid())

    def run() -> str:
        transfers.run_due("refund", TRANSFER_HANDLER, now=clock.now)
        return str(refund_shop.read(refund)["status"])

    assert [run(), run()] == ["pending", "pending"]
    assert advance(shop, advance_minutes=1)["moved"]["transfers"] == 1
    assert run() == "completed"
    assert Event.objects.filter(type="refund.completed").count() == 1


def test_order_at_the_sandbox_bank_completes_at_once(shop: Shop, bank: SandboxBankClient) -> None:
    refund_shop = RefundShop(shop, bank)
    refund = refund_shop.refund(refund_shop.paid())
    order = SandboxOrder.objects.create(
        id="sbo_1",
        reference=refund["refund_id"],
        type="refund",
        amount=1,
        completes_at=clock.now() + MINUTE,
        created_at=clock.now(),
    )
    advance(shop, advance_minutes=1)
    order.refresh_from_db()
    assert order.status_at(clock.now()) == "succeeded"


@pytest.mark.django_db(transaction=True)
def test_acquirer_transfers_card_payment_when_its_hold_is_over(card_shop: Shop) -> None:  # noqa: F811
    body = {"token_id": "tok_test_visa", "amount": 150_000, "currency": "THB"}
    payment_id = card_shop.post("/v1/payments", body).json()["payment_id"]
    adapter, now = banks.acquirer("sandbox"), clock.now()
    advance(card_shop, advance_minutes=12 * 60)
    assert adapter.settlements(now, now + timedelta(hours=1), MemoryLedger()) == []
    advance(card_shop, advance_minutes=12 * 60)
    (transfer,) = adapter.settlements(now, now + timedelta(hours=1), MemoryLedger())
    assert [item.order_id for item in transfer.items] == [payment_id]


def test_card_charge_that_nobody_authorises_fails_at_once(card_shop: Shop) -> None:  # noqa: F811
    body = {"token_id": "tok_test_3ds", "amount": 150_000, "currency": "THB"}
    made = card_shop.post("/v1/payments", body).json()
    assert made["status"] == "pending"
    assert advance(card_shop, advance_minutes=11)["moved"]["card_payments"] == 1
    assert CardCharge.objects.get().due_at <= clock.now()
    card_inquiries.inquire_due(now=clock.now)
    assert card_shop.payment(made["payment_id"])["status"] == "failed"
