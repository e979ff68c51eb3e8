"""One worker at a time owns a delivery, and no delivery is lost with its worker."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from threading import Event

import pytest
from django.db import connection, transaction
from django.db.models import Model
from django.db.models.functions import Now
from django.utils import timezone
from pytest_django import Settings

from merchants.models import Merchant
from tests.concurrency import SECONDS, run_concurrently
from tests.conftest import Shop
from tests.sqlstates import UNIQUE_VIOLATION, sqlstate
from tests.webhooks.builders import (
    FAILED,
    NOW,
    SUCCEEDED,
    claim,
    make_endpoint,
    only_delivery,
    publish,
    record_result,
)
from webhooks import endpoints, tasks
from webhooks.delivery import queue
from webhooks.delivery.queue import (
    MAX_IN_FLIGHT,
    MAX_IN_FLIGHT_QUICK,
    QUICK_MS,
    SLOW_MS,
    Lease,
    Quota,
    RoundRobinClaimer,
)
from webhooks.models import (
    Delivery,
    DeliveryAttempt,
    DeliveryLease,
    DisabledReason,
    Endpoint,
    EndpointHealth,
    EndpointStatus,
    Event as StoredEvent,
)

pytestmark = pytest.mark.django_db

# Not quick and not slow.
ORDINARY_MS = QUICK_MS + 1


def let_leases_expire() -> None:
    DeliveryLease.objects.update(lease_until=Now())


def deliver_all() -> list[str]:
    """Claim and record until nothing is due. Return the ids of the deliveries."""
    delivered = []
    while leases := claim(3):
        delivered += [lease.delivery_id for lease in leases]
        for lease in leases:
            record_result(lease, SUCCEEDED)
    return delivered


def test_claim_takes_oldest_due_deliveries(shop: Shop) -> None:
    make_endpoint(shop, latency_ms=ORDINARY_MS)
    for minutes in (3, 9, 5, -1):
        publish(shop, at=NOW - timedelta(minutes=minutes))
    ages = [Delivery.objects.get(pk=lease.delivery_id).due_at for lease in claim(3)]
    assert sorted(ages) == [NOW - timedelta(minutes=minutes) for minutes in (9, 5, 3)]
    assert claim() == []


def test_lease_is_longer_than_post_timeout(shop: Shop, settings: Settings) -> None:
    settings.WEBHOOK_TIMEOUT_SECONDS = 40
    make_endpoint(shop)
    publish(shop)
    before = timezone.now()
    claim()
    lease_until = DeliveryLease.objects.get().lease_until
    assert before < lease_until - timedelta(seconds=55) < timezone.now()


def test_leased_delivery_is_not_claimed_again(shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop)
    (lease,) = claim()
    assert claim() == []
    assert queue.reclaim_expired(now=NOW) == 0
    assert record_result(lease, SUCCEEDED)
    assert not DeliveryLease.objects.exists()


def test_expired_lease_is_reclaimed_and_recorded_as_worker_lost(shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop)
    claim()
    let_leases_expire()
    assert queue.reclaim_expired(now=NOW) == 1
    assert (only_delivery().state, only_delivery().due_at) == ("pending", NOW)
    assert DeliveryAttempt.objects.get().error == "worker_lost"
    assert [lease.attempt for lease in claim()] == [2]


@pytest.mark.slow
def test_delivery_that_kills_workers_fails_after_last_attempt(shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop)
    for _ in range(10):
        claim()
        let_leases_expire()
        queue.reclaim_expired(now=NOW)
    assert (only_delivery().state, only_delivery().finished_at) == ("failed", NOW)
    assert DeliveryAttempt.objects.count() == 10


def test_result_after_lease_expiry_stores_only_attempt(shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop)
    (late,) = claim()
    let_leases_expire()
    queue.reclaim_expired(now=NOW)
    (current,) = claim()
    assert not record_result(late, FAILED)
    assert (only_delivery().state, DeliveryLease.objects.get().lease_id) == ("pending", current.lease_id)
    assert record_result(current, SUCCEEDED)
    assert not record_result(late, FAILED)
    assert only_delivery().state == "succeeded"
    errors = DeliveryAttempt.objects.order_by("id").values_list("number", "error")
    assert list(errors) == [(1, "worker_lost"), (1, "http_5xx"), (2, ""), (1, "http_5xx")]


def test_endpoint_with_long_backlog_gets_only_one_share(shop: Shop, other_shop: Shop) -> None:
    make_endpoint(shop, latency_ms=ORDINARY_MS)
    publish(shop, 50, at=NOW - timedelta(hours=1))
    make_endpoint(other_shop)
    publish(other_shop)
    taken = claim(100)
    assert len(taken) == MAX_IN_FLIGHT + 1
    assert claim(100) == []
    assert all(record_result(lease, replace(SUCCEEDED, duration_ms=ORDINARY_MS)) for lease in taken)
    assert len(claim(100)) == MAX_IN_FLIGHT


def test_quick_endpoint_gets_larger_share(shop: Shop) -> None:
    make_endpoint(shop, latency_ms=QUICK_MS)
    publish(shop, 50)
    assert len(claim(100)) == MAX_IN_FLIGHT_QUICK


@pytest.mark.slow
def test_quick_endpoint_uses_unused_quota_beyond_the_share(shop: Shop, other_shop: Shop) -> None:
    for each in (shop, other_shop):
        make_endpoint(each, latency_ms=QUICK_MS)
        publish(each, 50)
    taken = claim(100, extra=5)
    assert Counter(lease.quota for lease in taken) == {Quota.NORMAL: 2 * MAX_IN_FLIGHT, Quota.EXTRA: 5}
    assert claim(100, extra=0) == []


def test_endpoint_that_just_failed_gets_the_small_share(shop: Shop) -> None:
    endpoint = make_endpoint(shop, latency_ms=QUICK_MS)
    EndpointHealth.objects.filter(endpoint=endpoint).update(consecutive_failures=1)
    publish(shop, 50)
    assert len(claim(100)) == MAX_IN_FLIGHT


def test_slow_endpoints_use_only_slow_quota(shop: Shop, other_shop: Shop) -> None:
    slow, quick = make_endpoint(shop, latency_ms=SLOW_MS + 1), make_endpoint(other_shop, latency_ms=SLOW_MS)
    publish(shop, 9)
    publish(other_shop, 9)
    taken = claim(100, slow=2)
    assert Counter(lease.endpoint.id for lease in taken) == {slow.id: 2, quick.id: MAX_IN_FLIGHT}
    assert {lease.endpoint.id for lease in taken if lease.quota is Quota.SLOW} == {slow.id}


@pytest.mark.slow
def test_new_endpoint_gets_one_delivery_before_slow_endpoints(shop: Shop, other_shop: Shop) -> None:
    for _ in range(20):
        make_endpoint(other_shop, latency_ms=SLOW_MS + 1)
    publish(other_shop, at=NOW - timedelta(hours=1))
    new = make_endpoint(shop)
    publish(shop, 9)
    assert claim(100, slow=0) == []
    (lease,) = claim(100, slow=1)
    assert (lease.endpoint.id, lease.quota) == (new.id, Quota.SLOW)
    assert new.id not in {lease.endpoint.id for lease in claim(100)}


@pytest.mark.slow
def test_endpoints_are_claimed_in_random_order(shop: Shop) -> None:
    for _ in range(10):
        make_endpoint(shop, latency_ms=ORDINARY_MS)
    publish(shop, 4)
    assert len({claim()[0].endpoint.id for _ in range(20)}) > 20 / MAX_IN_FLIGHT


def test_repeated_claims_reach_all_endpoints(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "ENDPOINTS_PER_CLAIM", 2)
    endpoints = {make_endpoint(shop).id for _ in range(5)}
    publish(shop)
    claimer, claimed = RoundRobinClaimer(), []
    while taken := claim(2, claimer=claimer):
        claimed.append({lease.endpoint.id for lease in taken})
    assert [len(each) for each in claimed] == [2, 2, 1]
    assert set().union(*claimed) == endpoints


@pytest.mark.slow
def test_claim_finds_one_due_delivery_among_many_pending(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "ENDPOINTS_PER_CLAIM", 2)
    for _ in range(7):
        make_endpoint(shop)
    publish(shop, at=NOW + timedelta(hours=1))
    claimer = RoundRobinClaimer()
    for delivery in Delivery.objects.order_by("-endpoint"):
        Delivery.objects.filter(pk=delivery.pk).update(due_at=NOW)
        assert [lease.delivery_id for lease in claim(9, claimer=claimer)] == [delivery.id]


@pytest.mark.parametrize(
    "analyzed_late", [[], [Endpoint], [Endpoint, EndpointHealth, StoredEvent, Merchant], [Delivery]]
)
@pytest.mark.slow
def test_claim_reads_few_rows_with_outdated_statistics(
    shop: Shop, other_shop: Shop, analyzed_late: list[type[Model]]
) -> None:
    make_endpoint(shop, latency_ms=SLOW_MS + 1)
    make_endpoint(other_shop)
    publish(shop, 200)
    Delivery.objects.update(state="succeeded")
    analyze(Delivery)
    publish(shop, 3_000)
    assert len(claim(100)) == MAX_IN_FLIGHT
    publish(other_shop)
    analyze(*analyzed_late)
    before = deliveries_read()
    assert len(claim(100)) == 1
    assert deliveries_read() - before < 100


def analyze(*models: type[Model]) -> None:
    with connection.cursor() as cursor:
        for model in models:
            cursor.execute(f"ANALYZE {model._meta.db_table}")


def deliveries_read() -> int:
    """Rows of the table that this transaction has read, by an index or not."""
    sql = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = %s"
    with connection.cursor() as cursor:
        cursor.execute(sql, [Delivery._meta.db_table])
        return int(cursor.fetchone()[0])


def test_endpoint_without_due_delivery_is_skipped(shop: Shop, other_shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop, 3, at=NOW + timedelta(seconds=1))
    make_endpoint(other_shop)
    publish(other_shop)
    assert len(claim(100)) == 1


def test_events_of_a_disabled_endpoint_are_held(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop, 2)
    (lease,) = claim()
    endpoints.disable(endpoint_id=endpoint.id, reason=DisabledReason.GONE, now=NOW)
    assert claim() == []
    record_result(lease, FAILED)
    endpoints.sweep_inactive(now=NOW)
    assert list(Delivery.objects.values_list("state", flat=True)) == ["held", "held"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_delivery_that_a_worker_is_claiming_is_not_held(shop: Shop) -> None:
    endpoint = make_endpoint(shop, latency_ms=ORDINARY_MS)
    publish(shop, 2)
    is_claimed, is_disabled = Event(), Event()

    def claim_slowly() -> Lease:
        with transaction.atomic():
            (lease,) = claim()
            is_claimed.set()
            assert is_disabled.wait(SECONDS)
        return lease

    def disable_meanwhile() -> None:
        assert is_claimed.wait(SECONDS)
        endpoints.disable(endpoint_id=endpoint.id, reason=DisabledReason.GONE, now=NOW)
        is_disabled.set()

    lease, _ = run_concurrently(claim_slowly, disable_meanwhile)
    endpoints.sweep_inactive(now=NOW)
    assert lease is not None
    assert dict(Delivery.objects.values_list("state", "pk"))["pending"] == lease.delivery_id
    assert record_result(lease, FAILED)
    endpoints.sweep_inactive(now=NOW)
    assert list(Delivery.objects.values_list("state", flat=True)) == ["held", "held"]


def test_database_allows_one_lease_of_a_delivery(shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop)
    claim()
    another = """INSERT INTO webhooks_deliverylease (endpoint_id, delivery_id, lease_id, lease_until)
        SELECT endpoint_id, delivery_id, gen_random_uuid(), now() FROM webhooks_deliverylease"""
    assert sqlstate(another) == UNIQUE_VIOLATION


def test_pending_deliveries_of_a_deleted_endpoint_fail(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop)
    Endpoint.objects.filter(pk=endpoint.pk).update(status=EndpointStatus.DISABLED)
    publish(shop)
    Endpoint.objects.filter(pk=endpoint.pk).update(status=EndpointStatus.ACTIVE)
    publish(shop)
    (lease,) = claim()
    endpoints.delete(endpoint, now=NOW)
    assert claim() == []
    record_result(lease, FAILED)
    endpoints.sweep_inactive(now=NOW)
    assert set(Delivery.objects.values_list("state", "finished_at")) == {("failed", NOW)}


def test_endpoint_deleted_during_answer_410_leaves_no_delivery(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop)
    (lease,) = claim()
    endpoints.delete(endpoint, now=NOW)
    record_result(lease, replace(FAILED, status=410, error="http_4xx"))
    endpoints.sweep_inactive(now=NOW)
    assert only_delivery().state == "failed"


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_concurrent_claims_never_share_a_delivery(shop: Shop) -> None:
    for _ in range(5):
        make_endpoint(shop)
    publish(shop, 12)
    claimed = [delivery for mine in run_concurrently(*[deliver_all] * 6) for delivery in mine]
    assert len(claimed) == len(set(claimed)) == 60
    assert set(Delivery.objects.values_list("state", "attempt_count")) == {("succeeded", 1)}


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_concurrent_claims_respect_endpoint_share(shop: Shop) -> None:
    make_endpoint(shop, latency_ms=ORDINARY_MS)
    publish(shop, 30)
    taken = run_concurrently(*[claim] * 8)
    assert sum(len(mine) for mine in taken) == MAX_IN_FLIGHT


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("loopback")
@pytest.mark.slow
def test_concurrent_reclaims_record_one_lost_attempt(shop: Shop) -> None:
    endpoint = make_endpoint(shop, latency_ms=ORDINARY_MS)
    publish(shop, 3)
    claim(3)
    let_leases_expire()
    Endpoint.objects.filter(pk=endpoint.pk).update(status=EndpointStatus.DISABLED)
    run_concurrently(*[tasks.run_due] * 4)
    assert list(DeliveryAttempt.objects.values_list("error", flat=True)) == ["worker_lost"] * 3
    assert set(Delivery.objects.values_list("state", flat=True)) == {"held"}
