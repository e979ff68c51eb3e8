"""Attempts go after some days; what was told, and to whom, stays."""

from datetime import datetime, timedelta

import pytest
from django.db import connection, transaction
from pytest_django import Settings

from config.celery import app
from tests.conftest import Shop, open_shop
from tests.threads import at_once
from tests.webhooks.cast import NOW, make_endpoint, only_delivery, publish
from webhooks import retention, tasks
from webhooks.models import Attempt, Delivery, Event

KEPT = timedelta(days=90)
INSTANT = timedelta(microseconds=1)


@pytest.fixture
def delivery(shop: Shop) -> Delivery:
    return told(shop)


def told(shop: Shop) -> Delivery:
    make_endpoint(shop)
    publish(shop)
    return only_delivery()


def attempts(delivery: Delivery, *times: datetime) -> None:
    Attempt.objects.bulk_create(
        Attempt(delivery=delivery, number=number, started_at=at) for number, at in enumerate(times, 1)
    )


def left() -> list[int]:
    return list(Attempt.objects.order_by("number").values_list("number", flat=True))


def test_an_attempt_goes_after_90_days_and_not_an_instant_before(delivery: Delivery) -> None:
    attempts(delivery, NOW - KEPT - INSTANT, NOW - KEPT, NOW)
    assert retention.forget_attempts(now=NOW) == 1
    assert left() == [2, 3]


def test_the_setting_says_how_many_days(delivery: Delivery, settings: Settings) -> None:
    attempts(delivery, NOW - timedelta(days=2), NOW - timedelta(hours=23))
    settings.WEBHOOK_ATTEMPT_DAYS = 1
    assert retention.forget_attempts(now=NOW) == 1
    assert left() == [2]


def test_the_delivery_and_its_event_stay_and_can_be_read(shop: Shop, delivery: Delivery) -> None:
    attempts(delivery, NOW - 2 * KEPT)
    before = Delivery.objects.values().get(), Event.objects.values().get()
    tasks.forget_attempts()
    assert left() == []
    assert (Delivery.objects.values().get(), Event.objects.values().get()) == before
    shown = shop.get(f"/v1/webhooks/{delivery.endpoint_id}/deliveries").json()
    assert [each["delivery_id"] for each in shown["deliveries"]] == [delivery.id]


def test_all_batches_are_deleted(delivery: Delivery) -> None:
    attempts(delivery, *[NOW - KEPT - timedelta(hours=hour + 1) for hour in range(10)])
    assert retention.forget_attempts(now=NOW, batch=3) == 10


def test_a_run_whose_time_is_up_leaves_the_younger_ones_to_the_next(delivery: Delivery) -> None:
    attempts(delivery, *[NOW - KEPT - timedelta(hours=10 - hour) for hour in range(10)])
    assert retention.forget_attempts(now=NOW, batch=3, seconds=0) == 3
    assert left() == [4, 5, 6, 7, 8, 9, 10]
    assert retention.forget_attempts(now=NOW, batch=3) == 7


@pytest.mark.django_db(transaction=True)
def test_runs_at_the_same_moment_share_the_work() -> None:
    delivery = told(open_shop("Race"))
    attempts(delivery, *[NOW - KEPT - timedelta(minutes=minute + 1) for minute in range(200)])
    assert sum(at_once(*[lambda: retention.forget_attempts(now=NOW, batch=7)] * 4)) == 200


@pytest.mark.django_db(transaction=True)
def test_nobody_waits_for_a_run_that_is_under_way() -> None:
    """Its delivery can be changed and told of, and another run passes by what this one holds."""
    delivery = told(open_shop("Race"))
    attempts(delivery, NOW - 2 * KEPT)

    def others() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '10s'")
        Delivery.objects.update(attempts=2)
        attempts(delivery, NOW)
        return retention.forget_attempts(now=NOW)

    with transaction.atomic():
        assert retention.forget_attempts(now=NOW) == 1
        assert at_once(others) == [0]
    assert left() == [1]


def test_the_oldest_are_found_by_the_index(delivery: Delivery) -> None:
    attempts(delivery, *[NOW - timedelta(minutes=minute) for minute in range(5000)])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE webhooks_attempt")
    old = Attempt.objects.filter(started_at__lt=NOW - KEPT).order_by("started_at")
    assert "Index Scan using webhooks_attempt_started_at" in old[: retention.AT_ONCE].explain()


def test_beat_asks_the_sweepers_and_not_those_who_deliver() -> None:
    row = app.conf.beat_schedule["forget attempts"]
    assert app.amqp.router.route(row["options"], row["task"])["queue"].name == "default"
    assert row["task"] == tasks.forget_attempts.name
