"""The values of the metrics, and the cost of reading them."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.db.models.functions import Now
from pytest_django import Settings

from core.observing import measurements
from core.observing.measurements import Key
from core.work import redis
from core.work.redis_urls import Broker
from core.work.wakeup import WakeupSender
from counts import counting
from operations.metrics import process_reports
from operations.metrics.families import PREFIX
from operations.metrics.view import REGISTRY
from operations.models import Measurement
from payments import cards
from payments.models import CardCharge, ChargeState
from reconciliation.models import Inquiry
from settlements import questions
from settlements.models import ARRIVES_WITHIN, AcquirerTransfer, QuestionKind
from tests.concurrency import run_concurrently, without_database
from tests.conftest import SandboxBankClient, Shop
from tests.counts.closing import close_future
from tests.operations.metrics.scraping import families, store_measurements, value
from tests.stack import wait_until
from tests.transfers.builders import queued
from tests.webhooks.builders import NOW, claim, failed_wakeups, make_endpoint, publish, set_health
from tests.webhooks.misbehaving_receivers import unused_port
from transfers import circuit_breakers
from transfers.circuit_breakers import Counterparty
from transfers.models import Transfer
from transfers.schedule import OVERDUE_AFTER
from webhooks import endpoints
from webhooks.delivery import attempt_log, metrics as deliveries, queue
from webhooks.delivery.attempt_log import DeliveryResult
from webhooks.http.client import PostResult
from webhooks.models import Delivery, DeliveryAttempt, DeliveryLease, Endpoint
from webhooks.wakeup import QUEUE, TASK

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)
OPERATIONS_PAGE = Path(__file__).parents[3] / "docs" / "operations.md"


@pytest.fixture(autouse=True)
def frozen() -> Iterator[None]:
    """Freeze the clock at NOW, without measurements of other tests."""
    measurements.OF_PROCESS.take()
    with time_machine.travel(NOW, tick=False):
        yield


def buckets() -> dict[str, float]:
    family = families()["webhook_delivery_attempt_seconds"]
    return {each.labels["le"]: each.value for each in family.samples if each.name.endswith("_bucket")}


def answered(error: str = "", ms: int = 20) -> PostResult:
    return PostResult(status=None, error=error, excerpt="", duration_ms=ms, peer=None, retry_after=None)


def note(*responses: PostResult) -> None:
    """Claim one delivery for each response, and record the results in one batch."""
    claimed = claim(len(responses))
    pairs = zip(claimed, responses, strict=True)
    attempt_log.record(
        [DeliveryResult(lease, response, started_at=NOW, ended_at=NOW) for lease, response in pairs]
    )
    store_measurements()


def paused(shop: Shop) -> Endpoint:
    endpoint = make_endpoint(shop)
    set_health(endpoint, paused_at=NOW, paused_until=NOW + MINUTE, pause_seconds=60)
    return endpoint


@pytest.mark.slow
def test_every_metric_has_help_text_and_type(db: None) -> None:
    shown = families()
    assert {name: family.type for name, family in shown.items()} == {
        "database_up": "gauge",
        "metrics_complete": "gauge",
        "redis_up": "gauge",
        "queue_length": "gauge",
        "database_connections": "gauge",
        "database_connections_limit": "gauge",
        "processes": "gauge",
        "process_memory_bytes": "gauge",
        "process_open_files": "gauge",
        "process_max_files": "gauge",
        "process_start_time_seconds": "gauge",
        "process_cpu_seconds": "counter",
        "heartbeat_silent": "gauge",
        "http_requests": "counter",
        "http_request_seconds": "histogram",
        "bank_calls": "counter",
        "bank_call_seconds": "histogram",
        "tasks": "counter",
        "task_seconds": "histogram",
        "payments": "gauge",
        "exceptions_oldest_seconds": "gauge",
        "settlements_late": "gauge",
        "settlement_questions_open": "gauge",
        "settlement_questions_oldest_seconds": "gauge",
        "merchants_at_standby": "gauge",
        "statement_age_seconds": "gauge",
        "job_enabled": "gauge",
        "job_last_success_timestamp_seconds": "gauge",
        "job_failed": "gauge",
        "job_differences": "gauge",
        "job_seconds": "gauge",
        "clock_difference_seconds": "gauge",
        "counts_open_age_seconds": "gauge",
        "safe_mode": "gauge",
        "transfer_contradictions": "gauge",
        "payments_pending": "gauge",
        "payments_overdue": "gauge",
        "card_charges_pending": "gauge",
        "card_charges_oldest_pending_seconds": "gauge",
        "transfers_overdue": "gauge",
        "circuit_breakers_open": "gauge",
        "inquiries_due": "gauge",
        "inquiries_overdue": "gauge",
        "confirmation_inquiries_due": "gauge",
        "notifications_unconfirmed": "gauge",
        "replica_up": "gauge",
        "replica_lag_bytes": "gauge",
        "wal_archive_age_seconds": "gauge",
        "bank_transactions_not_matched": "gauge",
        "bank_transactions_unconfirmed": "gauge",
        "bank_transaction_exceptions": "gauge",
        "notification_exceptions": "gauge",
        "refunds_returned_open": "gauge",
        "approvals_waiting": "gauge",
        "approvals_oldest_waiting_seconds": "gauge",
        "audit_records_unchained": "gauge",
        "audit_records_oldest_unchained_seconds": "gauge",
        "merchants_in_debt": "gauge",
        "merchant_debt_satang": "gauge",
        "withdrawals_held": "gauge",
        "withdrawals_held_satang": "gauge",
        "webhook_deliveries_due": "gauge",
        "webhook_deliveries_oldest_due_seconds": "gauge",
        "webhook_endpoints": "gauge",
        "request_log_dropped": "counter",
        "webhook_delivery_attempts": "counter",
        "webhook_wakeup_failures": "counter",
        "webhook_delivery_attempt_seconds": "histogram",
    }
    assert all(family.documentation.endswith(".") for family in shown.values())
    assert all(family.name.startswith(PREFIX) for family in shown.values())


def test_no_metric_has_a_label_that_prometheus_sets() -> None:
    """It would rename ours to `exported_job`, and no alert would find them."""
    for family in REGISTRY.collect():
        assert not {"job", "instance"} & set(vars(family)["_labelnames"]), family.name


def documented_metrics() -> set[str]:
    rows = [row for row in OPERATIONS_PAGE.read_text().splitlines() if row.startswith(f"| `{PREFIX}")]
    names = {name for row in rows for name in re.findall(rf"`{PREFIX}(\w+)", row.split("|")[1])}
    return {name.removesuffix("_total") for name in names}


@pytest.mark.slow
def test_documented_metrics_are_those_that_exist(db: None) -> None:
    assert documented_metrics() == set(families())


@pytest.mark.slow
def test_metrics_count_pending_payments_and_exceptions(shop: Shop, bank: SandboxBankClient) -> None:
    shop.qr_code()
    bank.notify(shop.qr_code(), satang=1)
    bank.post(b"garbage")
    assert value("payments_pending") == 2
    assert value("bank_transaction_exceptions", money="sandbox") == 1
    assert value("notification_exceptions", money="sandbox") == 1
    assert (
        value("bank_transaction_exceptions", money="live")
        == value("notification_exceptions", money="live")
        == 0
    )


@pytest.mark.slow
def test_metrics_count_due_inquiries(shop: Shop) -> None:
    for due_at in (NOW, NOW - MINUTE, NOW + MINUTE, None):
        payment_id = shop.qr_code()["payment_id"]
        Inquiry.objects.create(payment_id=payment_id, bank="sandbox", due_at=due_at, created_at=NOW)
    assert value("inquiries_due") == 2
    assert value("inquiries_overdue") == 1


@pytest.mark.slow
def test_metrics_count_due_and_paused_deliveries(shop: Shop, other_shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop, 3, at=NOW - MINUTE)
    publish(shop, 5, at=NOW + MINUTE)
    paused(other_shop)
    publish(other_shop, 2, at=NOW - 60 * MINUTE)
    assert value("webhook_deliveries_due", state="due") == 3
    assert value("webhook_deliveries_due", state="paused") == 2
    assert value("webhook_deliveries_oldest_due_seconds") == 60


def test_delivery_of_an_unverified_endpoint_does_not_count_as_late(shop: Shop) -> None:
    make_endpoint(shop, is_verified=False)
    publish(shop, 3, at=NOW - MINUTE)
    assert deliveries.backlog(NOW) == deliveries.Backlog(due=0, paused=3)
    assert deliveries.oldest_due_seconds(NOW) == 0


def test_delivery_that_waits_for_the_merchant_share_does_not_count_as_late(
    shop: Shop, other_shop: Shop
) -> None:
    for _ in range(2):
        make_endpoint(shop)
    publish(shop, at=NOW - MINUTE)
    claim(1)
    assert deliveries.oldest_due_seconds(NOW) == 0
    make_endpoint(other_shop)
    publish(other_shop, at=NOW - MINUTE)
    assert deliveries.oldest_due_seconds(NOW) == 60


def test_deliveries_of_disabled_endpoints_are_not_counted(shop: Shop) -> None:
    for fields in ({"status": "disabled"}, {"deleted_at": NOW}):
        endpoint = make_endpoint(shop)
        publish(shop)
        Endpoint.objects.filter(pk=endpoint.pk).update(**fields)
    assert set(Delivery.objects.values_list("state", flat=True)) == {"pending"}
    assert deliveries.backlog(NOW) == deliveries.Backlog(due=0, paused=0)
    assert deliveries.oldest_due_seconds(NOW) == 0


def test_deliveries_behind_slow_endpoint_are_not_late(shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop, 9, at=NOW - MINUTE)
    assert deliveries.oldest_due_seconds(NOW) == 60
    claim(1)
    assert deliveries.oldest_due_seconds(NOW) == 0


def test_delivery_count_stops_at_limit(shop: Shop, other_shop: Shop) -> None:
    for each in (shop, other_shop):
        make_endpoint(each)
        publish(each, 3)
    assert deliveries.backlog(NOW, limit=4) == deliveries.Backlog(due=4, paused=0)


def rows_read(plan: dict[str, Any]) -> float:
    """Return the number of rows that a query plan reads in all its nodes."""
    own = plan["Actual Loops"] * (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0))
    return float(own) + sum(rows_read(part) for part in plan.get("Plans", []))


@pytest.mark.slow
def test_metrics_do_not_read_the_whole_delivery_backlog(shop: Shop) -> None:
    """The query for the oldest due delivery reads below 50 rows of 20,000 due ones."""
    endpoint = make_endpoint(shop)
    publish(shop)
    event = Delivery.objects.get().event
    for first in range(1, 20_001, 5000):
        Delivery.objects.bulk_create(
            Delivery(
                id=f"dlv_{number:027}",
                event=event,
                event_type=event.type,
                endpoint=endpoint,
                manual_number=number,
                due_at=NOW,
                created_at=NOW,
            )
            for number in range(first, first + 5000)
        )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE webhooks_delivery")
        cursor.execute(
            f"EXPLAIN (ANALYZE, FORMAT JSON) {deliveries.OLDEST_DUE}", deliveries.ALL_ENDPOINTS | {"now": NOW}
        )
        ((explained,),) = cursor.fetchall()
    assert rows_read(explained[0]["Plan"]) < 50


@pytest.mark.slow
def test_webhook_attempts_are_counted_by_outcome_and_duration(shop: Shop) -> None:
    make_endpoint(shop, latency_ms=500)
    publish(shop, 4)
    note(answered(ms=10), answered(ms=11), answered("timeout", ms=15_000), answered("timeout", ms=60_000))
    assert value("webhook_delivery_attempts_total", outcome="succeeded") == 2
    assert value("webhook_delivery_attempts_total", outcome="timeout") == 2
    assert value("webhook_delivery_attempts_total", outcome="worker_lost") == 0
    counts = buckets()
    assert list(counts) == [
        "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0", "20.0", "+Inf",
    ]  # fmt: skip
    assert list(counts.values()) == [0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 4]
    assert value("webhook_delivery_attempt_seconds_count") == 4
    assert value("webhook_delivery_attempt_seconds_sum") == pytest.approx(75.021)


@pytest.mark.slow
def test_attempt_counters_do_not_drop_after_attempts_are_deleted(shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop, 2)
    note(answered())
    DeliveryAttempt.objects.all().delete()
    note(answered())
    assert value("webhook_delivery_attempts_total", outcome="succeeded") == 2


@pytest.mark.slow
def test_lost_webhook_worker_is_counted_without_duration(shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop)
    claim(1)
    DeliveryLease.objects.update(lease_until=Now())
    queue.reclaim_expired(now=NOW)
    store_measurements()
    assert value("webhook_delivery_attempts_total", outcome="worker_lost") == 1
    assert value("webhook_delivery_attempt_seconds_count") == 0


@pytest.mark.slow
def test_endpoints_are_counted_by_state(shop: Shop) -> None:
    make_endpoint(shop)
    set_health(make_endpoint(shop), consecutive_failures=3)
    make_endpoint(shop, is_verified=False)
    paused(shop)
    disabled = paused(shop)
    Endpoint.objects.filter(pk=disabled.pk).update(status="disabled")
    endpoints.delete(make_endpoint(shop), now=NOW)
    expected = {"active": 2, "unverified": 1, "paused": 1, "disabled": 1}
    assert {state: value("webhook_endpoints", state=state) for state in expected} == expected


@pytest.mark.slow
def test_failed_wakeup_is_counted() -> None:
    with unused_port() as port:
        WakeupSender(TASK, QUEUE, Broker.of(f"redis://127.0.0.1:{port}/0")).wake()
        wait_until(lambda: failed_wakeups() == 1, 60)
    store_measurements()
    assert value("webhook_wakeup_failures_total") == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_numbers_that_processes_add_at_once_are_all_counted() -> None:
    outcomes = ["succeeded", "timeout", "dns", "reset"]
    keys = [Key(measurements.DELIVERY, (each,), bucket) for each in outcomes for bucket in (0, 5)]

    def count(**_: Any) -> None:
        for shift in range(20):
            process_reports.add(dict.fromkeys(keys[shift % 8 :] + keys[: shift % 8], (1, 0.5)))

    run_concurrently(*[count] * 4)
    assert list(Measurement.objects.values_list("count", flat=True)) == [80] * 8


def test_metrics_without_database_show_database_up_0() -> None:
    found = without_database(families)
    assert set(found) == {"database_up", "metrics_complete", "redis_up", "queue_length"}
    assert found["database_up"].samples[0].value == found["metrics_complete"].samples[0].value == 0


@pytest.mark.slow
def test_pending_card_charges_are_counted_with_the_age_of_the_oldest(shop: Shop, settings: Settings) -> None:
    settings.SANDBOX_ACQUIRER_URL = "http://127.0.0.1:1"
    assert (value("card_charges_pending"), value("card_charges_oldest_pending_seconds")) == (0, 0)
    for minutes in (5, 1):
        at = NOW - minutes * MINUTE
        cards.store(cards.draft(merchant=shop.merchant, token_id="tok_test_visa", amount=100, now=at))
    assert (value("card_charges_pending"), value("card_charges_oldest_pending_seconds")) == (2, 300)
    CardCharge.objects.order_by("created_at")[0].transition(ChargeState.COMPLETED, completed_at=NOW)
    assert (value("card_charges_pending"), value("card_charges_oldest_pending_seconds")) == (1, 60)


@pytest.mark.slow
def test_overdue_transfers_are_counted() -> None:
    queued(at=NOW - OVERDUE_AFTER)
    assert value("transfers_overdue") == 0
    queued(at=NOW - OVERDUE_AFTER - timedelta(seconds=1))
    assert value("transfers_overdue") == 1


@pytest.mark.slow
def test_open_circuit_breakers_are_counted() -> None:
    for route, merchant_id in (("acquirer:omise", ""), ("bank:scb", "mch_1"), ("bank:scb", "mch_2")):
        circuit_breakers.record_calls(
            [(Counterparty(route, merchant_id), True)] * circuit_breakers.FAILURES_TO_OPEN, now=NOW
        )
    assert value("circuit_breakers_open", route="acquirer:omise") == 1
    assert value("circuit_breakers_open", route="bank:scb") == 2


def test_metrics_of_charges_and_transfers_use_partial_indexes(db: None) -> None:
    """The queries use partial indexes, so only open charges and transfers cost time."""
    charges = CardCharge.objects.filter(state__in=["submitted", "pending"]).order_by("created_at")
    overdue = Transfer.objects.open_since(NOW)
    with connection.cursor() as cursor:
        for table in ("payments_cardcharge", "transfers_transfer"):  # without dead entries of other tests
            cursor.execute(f"REINDEX TABLE {table}")
            cursor.execute(f"ANALYZE {table}")
        cursor.execute("SET LOCAL enable_seqscan = off")
        assert "cardcharge_oldest_open" in charges[:1].explain()
        assert "transfer_open_oldest" in overdue.explain()


@pytest.mark.slow
def test_payments_are_shown_by_status(shop: Shop) -> None:
    close_future()
    shop.qr_code()
    counting.roll_up()
    assert value("payments", mode="test", status="pending") == 1
    assert value("payments", mode="live", status="succeeded") == 0


@pytest.mark.slow
def test_waiting_tasks_are_counted_by_queue(db: None) -> None:
    redis.client().delete("cards")
    redis.client().rpush("cards", "a", "b")
    try:
        assert value("queue_length", queue="cards") == 2
        assert value("redis_up") == 1
    finally:
        redis.client().delete("cards")


def test_open_questions_and_late_settlements_are_counted_with_the_age_of_the_oldest() -> None:
    at = NOW - ARRIVES_WITHIN - timedelta(hours=1)
    for acquirer, number in (("omise", 1), ("omise", 2), ("sandbox", 1)):
        made = AcquirerTransfer.objects.create(
            id=AcquirerTransfer.new_id(NOW),
            acquirer=acquirer,
            transfer_id=f"trsf_{number}",
            amount=100,
            fee=0,
            fee_vat=0,
            net_amount=100,
            state="sent",
            created_at=at,
        )
        questions.ask(QuestionKind.LATE, made, made.transfer_id, difference=-100, now=at)
    assert value("settlements_late", money="live") == 2
    assert value("settlements_late", money="sandbox") == 1
    assert value("settlement_questions_open", money="live") == 2
    assert value("settlement_questions_oldest_seconds", money="live") == (NOW - at).total_seconds()
