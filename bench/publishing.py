"""Shops with a webhook, and events of payments, by the functions of the service. Needs its settings."""

import itertools
import time

from django.db import transaction

from bench.shops import Shop
from config.celery import app
from core import clock, ids
from merchants import services
from payments.models import Payment, PaymentStatus
from payments.shapes import event_data
from webhooks import endpoints, events, signing
from webhooks.delivery import wakeup
from webhooks.models import EventType

EVENT_TYPES = [str(EventType.PAYMENT_SUCCEEDED), str(EventType.PAYMENT_FAILED)]
# A statement may have at most 65,535 parameters.
BATCH_SIZE = 1000


def open_shop(url: str) -> Shop:
    """Create a test merchant with a webhook at the URL."""
    now, webhook_secret = clock.now(), signing.new_secret()
    merchant, secret_key = services.create_merchant(name="Measured shop", mode="test", now=now)
    endpoint = endpoints.prepare(
        merchant=merchant, url=url, events=EVENT_TYPES, now=now, secret=webhook_secret
    )
    endpoints.store(endpoint)
    return Shop(merchant.id, secret_key, webhook_secret, endpoint.id)


def publish(count: int, merchant_id: str) -> float:
    """Publish the events of `count` payments of a merchant in one commit; return the instant before it."""
    _wake()  # connects to Redis
    made = [new_event(merchant_id) for _ in range(count)]
    with transaction.atomic():
        for start in range(0, count, BATCH_SIZE):
            events.publish_many(made[start : start + BATCH_SIZE])
        at = time.time()
    _wake()
    return at


def _wake() -> None:
    """Wake the workers now. A process that ends may do so before its thread for wake-ups sends one."""
    app.send_task(wakeup.TASK, queue=wakeup.QUEUE)


_numbers = itertools.count(1)


def new_event(merchant_id: str) -> events.NewEvent:
    """The event of a new payment that succeeded. The payment itself has no row."""
    now = clock.now()
    payment = Payment(
        id=ids.new("pay_", now),
        qr_code_id=ids.new("qr_", now),
        status=PaymentStatus.SUCCEEDED,
        amount=150_000,
        currency="THB",
        reference=f"order-{next(_numbers)}",
        metadata={"table": 4},
    )
    return events.NewEvent(merchant_id, EventType.PAYMENT_SUCCEEDED, payment.id, event_data(payment), now)
