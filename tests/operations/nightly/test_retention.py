"""What the nightly job `retention` deletes, and what stays."""

from datetime import datetime, timedelta
from threading import Event as Signal
from typing import Any

import pytest
import time_machine
from django.db import transaction
from pytest_django import Settings

from core import clock
from core.database import partitions
from core.http import middleware
from operations.models import NightlyJob
from operations.nightly import jobs, retention
from reconciliation.models import InquiryAnswer, InquiryOutcome, SlipCheck
from reconciliation.slips import checking
from request_log.models import RequestRecord
from tests.concurrency import SECONDS, run_concurrently
from tests.conftest import SandboxBankClient, Shop
from tests.months import end_oldest, month_in, sql
from tests.reconciliation.builders import Seller
from tests.request_log.builders import make_records
from tests.sqlstates import NOT_ALLOWED, sqlstate
from tests.webhooks.builders import PAYMENT_SUCCEEDED, make_endpoint, publish
from webhooks import redelivery
from webhooks.delivery import old_deliveries
from webhooks.models import Delivery, DeliveryAttempt, DeliveryState, Event

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
OLD, LIMIT = 400, 365
# Whether another connection waits for this one.
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"


@pytest.fixture(autouse=True)
def days(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "LISTENERS", [])
    settings.REQUEST_LOG_RETENTION_DAYS = settings.WEBHOOK_ATTEMPT_RETENTION_DAYS = LIMIT
    settings.WEBHOOK_DELIVERY_RETENTION_DAYS = settings.INQUIRY_ANSWER_RETENTION_DAYS = LIMIT


def apply() -> list[str]:
    """As after a commit: no check of a foreign key waits any more."""
    sql("SET CONSTRAINTS ALL IMMEDIATE")
    return list(retention.apply(clock.now()))


def ago(days: int) -> datetime:
    return clock.now() - timedelta(days=days)


@pytest.fixture
def aged() -> None:
    """The oldest partition of each table ended 13 months ago."""
    for model in retention.days_kept():
        end_oldest(model, month_in(-13))


def make_delivery(shop: Shop, at: datetime, state: str = DeliveryState.SUCCEEDED) -> Delivery:
    """A delivery with one attempt, both of this time."""
    publish(shop, at=at)
    delivery = (
        Delivery.objects.order_by("id").last() if at > ago(1) else Delivery.objects.order_by("id").first()
    )
    assert delivery is not None
    Delivery.objects.filter(pk=delivery.pk).update(state=state, finished_at=at)
    DeliveryAttempt.objects.create(delivery=delivery, number=1, started_at=at)
    return delivery


def make_answer(shop: Shop, at: datetime) -> InquiryAnswer:
    with time_machine.travel(at, tick=False):
        code = shop.qr_code()
    return InquiryAnswer.objects.create(
        payment_id=code["payment_id"], outcome=InquiryOutcome.NOTHING, duration_ms=1, answered_at=at
    )


@pytest.mark.usefixtures("aged")
def test_each_kind_goes_after_its_days(shop: Shop) -> None:
    make_endpoint(shop)
    make_records(shop, 2, created_at=ago(OLD))
    records = make_records(shop, 1)
    delivery, _ = make_delivery(shop, clock.now()), make_delivery(shop, ago(OLD))
    answer, _ = make_answer(shop, clock.now()), make_answer(shop, ago(OLD))
    changes = apply()
    assert [each.pk for each in RequestRecord.objects.all()] == records
    assert [each.delivery_id for each in DeliveryAttempt.objects.all()] == [delivery.pk]
    assert [each.pk for each in Delivery.objects.all()] == [delivery.pk]
    assert [each.pk for each in InquiryAnswer.objects.all()] == [answer.pk]
    assert Event.objects.filter(type=PAYMENT_SUCCEEDED).count() == 2
    assert len([each for each in changes if each.startswith("dropped ")]) == 3
    assert changes[-1] == "deleted 1 deliveries"


@pytest.mark.usefixtures("aged")
def test_zero_days_keep_deliveries_and_answers_for_ever(shop: Shop, settings: Settings) -> None:
    settings.WEBHOOK_DELIVERY_RETENTION_DAYS = settings.INQUIRY_ANSWER_RETENTION_DAYS = 0
    make_endpoint(shop)
    make_delivery(shop, ago(OLD))
    make_answer(shop, ago(OLD))
    apply()
    assert (DeliveryAttempt.objects.count(), Delivery.objects.count(), InquiryAnswer.objects.count()) == (
        0,
        1,
        1,
    )


@pytest.mark.usefixtures("aged")
def test_log_that_is_switched_off_loses_its_old_months(shop: Shop, settings: Settings) -> None:
    settings.REQUEST_LOG_RETENTION_DAYS = 0
    make_records(shop, 2, created_at=ago(OLD))
    apply()
    assert not RequestRecord.objects.exists()


def test_old_slip_checks_go_and_a_slip_that_was_valid_stays_used(shop: Shop, bank: SandboxBankClient) -> None:
    money = Seller(shop, bank).sale()
    first = {"verdict": "valid", "bank_transaction": money, "payment": money.payment, "is_first": True}

    def check(at: datetime, **fields: Any) -> SlipCheck:
        return checking.record("014", "A" * 20, merchant=shop.merchant, now=at, **fields)

    kept = [check(ago(OLD), **first), check(ago(1), verdict="unknown")]
    for _ in range(5):
        check(ago(OLD), verdict="unknown")
    assert checking.delete_old(ago(LIMIT), batch=2) == 5
    assert {*SlipCheck.objects.all()} == {*kept}
    assert "deleted 0 slip checks" in apply()
    for each in kept:
        assert sqlstate("DELETE FROM reconciliation_slipcheck WHERE id = %s", each.pk) == NOT_ALLOWED


@pytest.mark.parametrize("state", [DeliveryState.PENDING, DeliveryState.HELD])
@pytest.mark.usefixtures("aged")
def test_delivery_that_has_not_ended_stays(shop: Shop, state: str) -> None:
    make_endpoint(shop)
    make_delivery(shop, ago(OLD), state)
    assert apply()[-1] == "deleted 0 deliveries"


def test_delivery_stays_as_long_as_its_attempts(shop: Shop, settings: Settings) -> None:
    settings.WEBHOOK_ATTEMPT_RETENTION_DAYS = 2 * OLD
    make_endpoint(shop)
    make_delivery(shop, ago(OLD))
    assert apply()[-1] == "deleted 0 deliveries"


def test_old_deliveries_go_in_batches_and_leave_the_totals_right(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop, 7, at=ago(OLD))
    publish(shop, 2, at=clock.now())
    waiting = Delivery.objects.order_by("id")[3]
    Delivery.objects.exclude(pk=waiting.pk).update(state=DeliveryState.FAILED, finished_at=clock.now())
    assert old_deliveries.delete(ago(LIMIT), batch=2) == 6
    shown = shop.get(f"/v1/webhooks/{endpoint.id}/deliveries").json()
    assert (shown["total"], len(shown["deliveries"])) == (3, 3)


@pytest.mark.django_db(transaction=True)
def test_delivery_that_is_replayed_meanwhile_stays(shop: Shop) -> None:
    endpoint, at = make_endpoint(shop), ago(LIMIT) + timedelta(minutes=1)
    publish(shop, at=at)
    Delivery.objects.update(state=DeliveryState.FAILED, finished_at=at)
    replayed, ended = Signal(), Signal()

    def replay() -> None:
        with transaction.atomic():
            redelivery.replay(endpoint, since=ago(OLD), now=clock.now())
            replayed.set()
            while sql(WAITING) == [(0,)] and not ended.wait(0.01):
                pass

    def delete() -> int:
        assert replayed.wait(SECONDS)
        try:
            return old_deliveries.delete(at + timedelta(minutes=1))
        finally:
            ended.set()

    assert run_concurrently(replay, delete) == [None, 0]
    assert Delivery.objects.get().state == DeliveryState.PENDING


def test_first_run_makes_the_months_that_are_missing() -> None:
    far = clock.now() + timedelta(days=200)
    with time_machine.travel(far, tick=False):
        assert jobs.run(NightlyJob.RETENTION, far) == 0
        assert partitions.make_ahead(RequestRecord, far) == []
