"""The numbers that the service shows of itself: right, cheap, and the same whoever is asked."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from payments import cards
from payments.models import CardCharge, ChargeState
from receipts.models import Inquiry
from tests.conftest import BankCaller, Shop
from tests.database_away import without_database
from tests.stack import wait_until
from tests.threads import at_once
from tests.transfers.cast import queued
from tests.webhooks.cast import NOW, claim, make_endpoint, publish, set_health
from tests.webhooks.receivers import unused_port
from transfers import breakers
from transfers.breakers import Party
from transfers.models import Transfer
from transfers.schedule import OVERDUE
from webhooks import backlog, endpoints, leases, notes, tallies
from webhooks.client import Answer
from webhooks.doorbell import Bell
from webhooks.models import Attempt, Delivery, Endpoint, Tally
from webhooks.notes import Result

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def frozen() -> Iterator[None]:
    """It is NOW."""
    with time_machine.travel(NOW, tick=False):
        yield


def families() -> dict[str, Metric]:
    answer = Client().get("/metrics")
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return {family.name: family for family in text_string_to_metric_families(answer.content.decode())}


def value(name: str, **labels: str) -> float:
    """The value of the one sample of this name with exactly these labels."""
    samples = [sample for family in families().values() for sample in family.samples]
    (found,) = [each.value for each in samples if (each.name, each.labels) == (name, labels)]
    return found


def buckets() -> dict[str, float]:
    family = families()["webhook_attempt_seconds"]
    return {each.labels["le"]: each.value for each in family.samples if each.name.endswith("_bucket")}


def answered(error: str = "", ms: int = 20) -> Answer:
    return Answer(status=None, error=error, excerpt="", duration_ms=ms, peer=None, retry_after=None)


def note(*answers: Answer) -> None:
    """As many deliveries are claimed and come back so, in one batch."""
    claimed = claim(len(answers))
    pairs = zip(claimed, answers, strict=True)
    notes.note([Result(lease, answer, began=NOW, ended=NOW) for lease, answer in pairs])


def paused(shop: Shop) -> Endpoint:
    endpoint = make_endpoint(shop)
    set_health(endpoint, paused_at=NOW, paused_until=NOW + MINUTE, pause_seconds=60)
    return endpoint


def test_every_metric_has_a_help_text_and_the_type_its_name_promises(db: None) -> None:
    shown = families()
    assert {name: family.type for name, family in shown.items()} == {
        "database_up": "gauge",
        "clock_difference_seconds": "gauge",
        "contradictions_for_staff": "gauge",
        "payments_pending": "gauge",
        "payments_overdue": "gauge",
        "card_charges_pending": "gauge",
        "card_charges_oldest_pending_seconds": "gauge",
        "transfers_overdue": "gauge",
        "circuit_breakers_open": "gauge",
        "inquiries_due": "gauge",
        "inquiries_overdue": "gauge",
        "confirmations_due": "gauge",
        "notifications_unconfirmed": "gauge",
        "receipts_not_applied": "gauge",
        "receipts_unconfirmed": "gauge",
        "receipts_for_staff": "gauge",
        "notices_for_staff": "gauge",
        "refunds_returned": "gauge",
        "approvals_waiting": "gauge",
        "approvals_oldest_waiting_seconds": "gauge",
        "merchants_in_debt": "gauge",
        "merchant_debt_satang": "gauge",
        "withdrawals_held": "gauge",
        "withdrawals_held_satang": "gauge",
        "webhook_deliveries_due": "gauge",
        "webhook_oldest_due_seconds": "gauge",
        "webhook_endpoints": "gauge",
        "webhook_attempts": "counter",
        "webhook_doorbell_failures": "counter",
        "webhook_attempt_seconds": "histogram",
    }
    assert all(family.documentation.endswith(".") for family in shown.values())


def test_what_waits_for_banks_and_people_is_counted(shop: Shop, bank: BankCaller) -> None:
    shop.qr_code()
    bank.tell(shop.qr_code(), satang=1)
    bank.post(b"garbage")
    assert value("payments_pending") == 2
    assert value("receipts_for_staff", money="sandbox") == 1
    assert value("notices_for_staff", money="sandbox") == 1
    assert value("receipts_for_staff", money="live") == value("notices_for_staff", money="live") == 0


def test_what_banks_are_to_be_asked_about_is_counted(shop: Shop) -> None:
    for due_at in (NOW, NOW - MINUTE, NOW + MINUTE, None):
        payment_id = shop.qr_code()["payment_id"]
        Inquiry.objects.create(payment_id=payment_id, bank="sandbox", due_at=due_at, created_at=NOW)
    assert value("inquiries_due") == 2
    assert value("inquiries_overdue") == 1


def test_what_waits_for_a_worker_and_for_a_pause_is_told_apart(shop: Shop, rival: Shop) -> None:
    make_endpoint(shop)
    publish(shop, 3, at=NOW - MINUTE)
    publish(shop, 5, at=NOW + MINUTE)
    paused(rival)
    publish(rival, 2, at=NOW - 60 * MINUTE)
    assert value("webhook_deliveries_due", state="due") == 3
    assert value("webhook_deliveries_due", state="paused") == 2
    assert value("webhook_oldest_due_seconds") == 60


def test_delivery_of_an_unverified_endpoint_does_not_count_as_late(shop: Shop) -> None:
    make_endpoint(shop, is_verified=False)
    publish(shop, 3, at=NOW - MINUTE)
    assert backlog.count(NOW) == backlog.Backlog(due=0, paused=3)
    assert backlog.oldest_due_seconds(NOW) == 0


def test_delivery_that_waits_for_the_share_of_its_merchant_does_not_count_as_late(
    shop: Shop, rival: Shop
) -> None:
    for _ in range(2):
        make_endpoint(shop)
    publish(shop, at=NOW - MINUTE)
    claim(1)
    assert backlog.oldest_due_seconds(NOW) == 0
    make_endpoint(rival)
    publish(rival, at=NOW - MINUTE)
    assert backlog.oldest_due_seconds(NOW) == 60


def test_what_is_told_to_nobody_waits_for_nobody(shop: Shop) -> None:
    for fields in ({"status": "disabled"}, {"deleted_at": NOW}):
        endpoint = make_endpoint(shop)
        publish(shop)
        Endpoint.objects.filter(pk=endpoint.pk).update(**fields)
    assert set(Delivery.objects.values_list("state", flat=True)) == {"pending"}
    assert backlog.count(NOW) == backlog.Backlog(due=0, paused=0)
    assert backlog.oldest_due_seconds(NOW) == 0


def test_a_slow_endpoint_does_not_make_the_service_late(shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop, 9, at=NOW - MINUTE)
    assert backlog.oldest_due_seconds(NOW) == 60
    claim(1)
    assert backlog.oldest_due_seconds(NOW) == 0


def test_counting_ends_at_a_limit(shop: Shop, rival: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "COUNTED", 4)
    for each in (shop, rival):
        make_endpoint(each)
        publish(each, 3)
    assert backlog.count(NOW) == backlog.Backlog(due=4, paused=0)


def rows_read(plan: dict[str, Any]) -> float:
    """All rows that the parts of a plan touched."""
    own = plan["Actual Loops"] * (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0))
    return float(own) + sum(rows_read(part) for part in plan.get("Plans", []))


def test_a_long_backlog_is_not_read(shop: Shop) -> None:
    """Whatever the age of the oldest reads, of twenty thousand deliveries due for one endpoint."""
    endpoint = make_endpoint(shop)
    publish(shop)
    event = Delivery.objects.get().event
    for first in range(1, 20_001, 5000):
        Delivery.objects.bulk_create(
            Delivery(
                id=f"dlv_{number:027}",
                event=event,
                endpoint=endpoint,
                resend=number,
                due_at=NOW,
                created_at=NOW,
            )
            for number in range(first, first + 5000)
        )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE webhooks_delivery")
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {backlog._ASKED} {backlog._OLDEST}", [NOW])
        ((explained,),) = cursor.fetchall()
    assert rows_read(explained[0]["Plan"]) < 50


def test_attempts_are_counted_by_outcome_and_by_how_long_they_took(shop: Shop) -> None:
    make_endpoint(shop, latency_ms=500)
    publish(shop, 4)
    note(answered(ms=10), answered(ms=11), answered("timeout", ms=15_000), answered("timeout", ms=60_000))
    assert value("webhook_attempts_total", outcome="succeeded") == 2
    assert value("webhook_attempts_total", outcome="timeout") == 2
    assert value("webhook_attempts_total", outcome="worker_lost") == 0
    counts = buckets()
    assert list(counts) == [
        "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0", "20.0", "+Inf",
    ]  # fmt: skip
    assert list(counts.values()) == [1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 4]
    assert value("webhook_attempt_seconds_count") == 4
    assert value("webhook_attempt_seconds_sum") == pytest.approx(75.021)


def test_a_counter_only_grows_also_when_history_is_forgotten(shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop, 2)
    note(answered())
    Attempt.objects.all().delete()
    note(answered())
    assert value("webhook_attempts_total", outcome="succeeded") == 2


def test_a_lost_worker_is_counted_and_has_no_duration(shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop)
    claim(1)
    Delivery.objects.update(lease_until=Now())
    leases.reclaim(now=NOW)
    assert value("webhook_attempts_total", outcome="worker_lost") == 1
    assert value("webhook_attempt_seconds_count") == 0


def test_endpoints_are_counted_by_state(shop: Shop) -> None:
    make_endpoint(shop)
    set_health(make_endpoint(shop), failures=3)
    make_endpoint(shop, is_verified=False)
    paused(shop)
    disabled = paused(shop)
    Endpoint.objects.filter(pk=disabled.pk).update(status="disabled")
    endpoints.delete(merchant=shop.merchant, webhook_id=make_endpoint(shop).id, now=NOW)
    expected = {"active": 2, "unverified": 1, "paused": 1, "disabled": 1}
    assert {state: value("webhook_endpoints", state=state) for state in expected} == expected


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_bell_that_redis_does_not_take_is_counted() -> None:
    with unused_port() as port:
        bell = Bell(f"redis://127.0.0.1:{port}/0", on_failure=tallies.count_lost_bell)
        bell.ring()
        wait_until(Tally.objects.exists, 60)
    assert value("webhook_doorbell_failures_total") == 1


@pytest.mark.django_db(transaction=True)
def test_workers_that_count_at_once_lose_nothing() -> None:
    errors = ["", "timeout", "dns", "reset"]
    attempts = [Attempt(error=error, duration_ms=ms) for error in errors for ms in (5, 500)]

    def count(**_: Any) -> None:
        for shift in range(20):
            tallies.count(attempts[shift % 8 :] + attempts[: shift % 8])

    at_once(*[count] * 4)
    assert set(Tally.objects.values_list("count", flat=True)) == {80}
    assert Tally.objects.count() == 8


def test_metrics_without_the_database_say_that_it_is_away() -> None:
    found = without_database(families)
    assert {name: family.samples[0].value for name, family in found.items()} == {"database_up": 0}


def test_pending_card_charges_are_counted_with_the_age_of_the_oldest(shop: Shop, settings: Settings) -> None:
    settings.SANDBOX_ACQUIRER_URL = "http://127.0.0.1:1"
    assert (value("card_charges_pending"), value("card_charges_oldest_pending_seconds")) == (0, 0)
    for minutes in (5, 1):
        at = NOW - minutes * MINUTE
        cards.store(cards.draft(merchant=shop.merchant, token_id="tok_test_visa", amount=100, now=at))
    assert (value("card_charges_pending"), value("card_charges_oldest_pending_seconds")) == (2, 300)
    CardCharge.objects.order_by("created_at")[0].end(ChargeState.ENDED, NOW)
    assert (value("card_charges_pending"), value("card_charges_oldest_pending_seconds")) == (1, 60)


def test_transfers_without_a_last_word_are_counted_when_they_are_overdue() -> None:
    queued(at=NOW - OVERDUE)
    assert value("transfers_overdue") == 0
    queued(at=NOW - OVERDUE - timedelta(seconds=1))
    assert value("transfers_overdue") == 1


def test_silent_acquirers_and_banks_are_counted_while_they_rest() -> None:
    for route, merchant_id in (("acquirer:omise", ""), ("bank:scb", "mch_1"), ("bank:scb", "mch_2")):
        breakers.record([(Party(route, merchant_id), True)] * breakers.SILENCES_TO_OPEN, now=NOW)
    assert value("circuit_breakers_open", route="acquirer:omise") == 1
    assert value("circuit_breakers_open", route="bank:scb") == 2


def test_metrics_of_charges_and_transfers_read_indexes_of_what_is_open(db: None) -> None:
    """Their cost grows with what is open, not with what has ended."""
    charges = CardCharge.objects.filter(state__in=["asked", "waiting"]).order_by("created_at")
    overdue = Transfer.objects.open_since(NOW)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        assert "cardcharge_oldest_open" in charges[:1].explain()
        assert "transfer_open_oldest" in overdue.explain()
