"""Old attempts are deleted. Their deliveries and events are kept."""

from datetime import datetime, timedelta

import pytest
from django.db import connection, transaction
from pytest_django import Settings

from config.celery import app
from tests.concurrency import run_concurrently
from tests.conftest import Shop, open_shop
from tests.webhooks.builders import NOW, make_endpoint, only_delivery, publish
from webhooks import tasks
from webhooks.delivery import attempt_log
from webhooks.models import Delivery, DeliveryAttempt, Event

KEPT = timedelta(days=90)
INSTANT = timedelta(microseconds=1)


@pytest.fixture
def delivery(shop: Shop) -> Delivery:
    return create_delivery(shop)


def create_delivery(shop: Shop) -> Delivery:
    make_endpoint(shop)
    publish(shop)
    return only_delivery()


def create_attempts(delivery: Delivery, *times: datetime) -> None:
    DeliveryAttempt.objects.bulk_create(
        DeliveryAttempt(delivery=delivery, number=number, started_at=at) for number, at in enumerate(times, 1)
    )


def remaining() -> list[int]:
    return list(DeliveryAttempt.objects.order_by("number").values_list("number", flat=True))


def test_delivery_attempt_is_deleted_after_exactly_90_days(delivery: Delivery) -> None:
    create_attempts(delivery, NOW - KEPT - INSTANT, NOW - KEPT, NOW)
    assert attempt_log.delete_old_attempts(now=NOW) == 1
    assert remaining() == [2, 3]


def test_attempt_retention_days_are_a_setting(delivery: Delivery, settings: Settings) -> None:
    create_attempts(delivery, NOW - timedelta(days=2), NOW - timedelta(hours=23))
    settings.WEBHOOK_ATTEMPT_RETENTION_DAYS = 1
    assert attempt_log.delete_old_attempts(now=NOW) == 1
    assert remaining() == [2]


def test_attempt_deletion_keeps_delivery_and_event(shop: Shop, delivery: Delivery) -> None:
    create_attempts(delivery, NOW - 2 * KEPT)
    before = Delivery.objects.values().get(), Event.objects.values().get()
    tasks.delete_old_attempts()
    assert remaining() == []
    assert (Delivery.objects.values().get(), Event.objects.values().get()) == before
    shown = shop.get(f"/v1/webhooks/{delivery.endpoint_id}/deliveries").json()
    assert [each["delivery_id"] for each in shown["deliveries"]] == [delivery.id]


def test_attempt_deletion_continues_over_several_batches(delivery: Delivery) -> None:
    create_attempts(delivery, *[NOW - KEPT - timedelta(hours=hour + 1) for hour in range(10)])
    assert attempt_log.delete_old_attempts(now=NOW, batch=3) == 10


def test_attempt_deletion_stops_at_the_time_limit_and_deletes_oldest_first(delivery: Delivery) -> None:
    create_attempts(delivery, *[NOW - KEPT - timedelta(hours=10 - hour) for hour in range(10)])
    assert attempt_log.delete_old_attempts(now=NOW, batch=3, seconds=0) == 3
    assert remaining() == [4, 5, 6, 7, 8, 9, 10]
    assert attempt_log.delete_old_attempts(now=NOW, batch=3) == 7


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_concurrent_attempt_deletions_delete_different_rows() -> None:
    delivery = create_delivery(open_shop("Race"))
    create_attempts(delivery, *[NOW - KEPT - timedelta(minutes=minute + 1) for minute in range(200)])
    assert sum(run_concurrently(*[lambda: attempt_log.delete_old_attempts(now=NOW, batch=7)] * 4)) == 200


@pytest.mark.django_db(transaction=True)
def test_statements_do_not_wait_for_attempt_deletion() -> None:
    """The delivery can change, get an attempt, and another run skips the locked attempts."""
    delivery = create_delivery(open_shop("Race"))
    create_attempts(delivery, NOW - 2 * KEPT)

    def others() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '10s'")
        Delivery.objects.update(attempt_count=2)
        create_attempts(delivery, NOW)
        return attempt_log.delete_old_attempts(now=NOW)

    with transaction.atomic():
        assert attempt_log.delete_old_attempts(now=NOW) == 1
        assert run_concurrently(others) == [0]
    assert remaining() == [1]


@pytest.mark.slow
def test_attempt_deletion_finds_the_oldest_by_index(delivery: Delivery) -> None:
    create_attempts(delivery, *[NOW - timedelta(minutes=minute) for minute in range(5000)])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE webhooks_deliveryattempt")
    old = DeliveryAttempt.objects.filter(started_at__lt=NOW - KEPT).order_by("started_at")
    assert "Index Scan using webhooks_deliveryattempt_started_at" in old[: attempt_log.DELETE_BATCH].explain()


def test_attempt_deletion_runs_on_the_default_queue() -> None:
    row = app.conf.beat_schedule["delete old delivery attempts"]
    assert app.amqp.router.route(row["options"], row["task"])["queue"].name == "default"
    assert row["task"] == tasks.delete_old_attempts.name
