"""A code expires at its time. The task stores that and publishes the event."""

from datetime import datetime, timedelta

import pytest
import time_machine
from pytest_django import Settings

from core import clock as our_clock
from payments import expiry_sweep, services
from payments.models import Payment
from tests.concurrency import run_concurrently
from tests.conftest import Shop, open_shop
from tests.console.lists.query_plans import unbounded
from tests.factories import PaymentFactory
from webhooks.models import Event


def test_payment_reads_as_expired_from_expires_at_without_the_expiry_task(shop: Shop, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        code = shop.qr_code(expiry_minutes=1)
        assert code["expires_at"] == "2026-11-21T05:01:00.000Z"
        clock.move_to(noon + timedelta(seconds=59, milliseconds=999))
        assert shop.payment(code["payment_id"])["status"] == "pending"
        clock.move_to(noon + timedelta(minutes=1))
        assert shop.payment(code["payment_id"])["status"] == "expired"
        assert shop.get(f"/v1/payments/{code['payment_id']}").json()["status"] == "expired"
        assert shop.get(f"/v1/qr-codes/{code['qr_code_id']}").json()["status"] == "expired"
        totals = {
            status: shop.get(f"/Thai/v1/payments?status={status}").json()["total"]
            for status in ("pending", "expired")
        }
        assert totals == {"pending": 0, "expired": 1}
    assert Payment.objects.get().status == "pending"


def test_expiry_task_expires_a_payment_once_and_publishes_payment_expired(shop: Shop, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        code, other = shop.qr_code(expiry_minutes=1), shop.qr_code()
        clock.move_to(noon + timedelta(minutes=2))
        assert expiry_sweep.expire_due(now=our_clock.now()) == 1
        assert expiry_sweep.expire_due(now=our_clock.now()) == 0
        answer = shop.get(f"/v1/payments/{code['payment_id']}").json()
        assert (answer["status"], answer["expires_at"]) == ("expired", "2026-11-21T05:01:00.000Z")
        assert shop.payment(other["payment_id"])["status"] == "pending"
    event = Event.objects.get(type="payment.failed")
    assert event.subject_id == code["payment_id"]
    assert b'"status":"expired"' in bytes(event.body)
    assert shop.get("/Thai/v1/transactions").json()["total"] == 0


def test_expiry_event_can_be_turned_off(shop: Shop, noon: datetime, settings: Settings) -> None:
    settings.EXPIRY_EVENTS = False
    with time_machine.travel(noon, tick=False) as clock:
        shop.qr_code(expiry_minutes=1)
        clock.move_to(noon + timedelta(minutes=2))
        expiry_sweep.expire_due(now=our_clock.now())
    assert not Event.objects.filter(type="payment.failed").exists()
    assert Payment.objects.get().status == "expired"


def test_merchant_expires_a_pending_qr_code(shop: Shop, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        code = shop.qr_code()
        clock.move_to(noon + timedelta(seconds=30))
        ended = shop.post(f"/Thai/v1/qr-codes/{code['qr_code_id']}/expire").json()
        assert (ended["status"], ended["expires_at"]) == ("expired", "2026-11-21T05:00:30.000Z")
        again = shop.post(f"/Thai/v1/qr-codes/{code['qr_code_id']}/expire")
        assert (again.status_code, again.json()["error"]["code"]) == (400, "qr_code_not_expirable")


def test_code_of_another_merchant_cannot_be_expired(shop: Shop, other_shop: Shop) -> None:
    code = shop.qr_code()
    refused = other_shop.post(f"/Thai/v1/qr-codes/{code['qr_code_id']}/expire")
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "qr_code_not_found")
    assert shop.payment(code["payment_id"])["status"] == "pending"


def test_expiry_task_expires_payments_of_several_batches(shop: Shop) -> None:
    now = our_clock.now()
    PaymentFactory.create_batch(4, merchant=shop.merchant, created_at=now - timedelta(hours=1))
    assert expiry_sweep.expire_due(now=now, batch=2) == 4


@pytest.mark.django_db
def test_expiry_task_reads_overdue_payments_by_an_index() -> None:
    params = [expiry_sweep.BEGINNING, our_clock.now(), 10]
    assert unbounded(services.EXPIRE_OVERDUE, params=params) == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_concurrent_expiry_tasks_publish_each_expiry_once() -> None:
    shop, now = open_shop("Busy"), our_clock.now()
    past = now - timedelta(hours=1)
    PaymentFactory.create_batch(60, merchant=shop.merchant, created_at=past)
    counts = run_concurrently(*[lambda: expiry_sweep.expire_due(now=now, batch=7) for _ in range(4)])
    counts.append(expiry_sweep.expire_due(now=now))
    assert sum(counts) == 60
    assert Event.objects.filter(type="payment.failed").count() == 60
