"""A delivery is in one worker's hands at a time, and never lost with the worker."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import Model
from django.db.models.functions import Now
from django.utils import timezone
from pytest_django import Settings

from merchants.models import Merchant
from tests.conftest import Shop
from tests.threads import at_once
from tests.webhooks.cast import NOW, claim, make_endpoint, only_delivery, publish
from webhooks import endpoints, leases, notes, settling, tasks
from webhooks.client import Answer
from webhooks.leases import IN_FLIGHT, IN_FLIGHT_QUICK, QUICK_MS, SLOW_MS, Lane, Lease, Rounds
from webhooks.models import Attempt, Delivery, DisabledReason, Endpoint, EndpointStatus, Event, Health
from webhooks.notes import Result

pytestmark = pytest.mark.django_db

# Neither quick nor slow.
ORDINARY_MS = QUICK_MS + 1

OK = Answer(status=200, error="", excerpt="", duration_ms=3, peer="192.0.2.1", retry_after=None)
FAILED = Answer(status=500, error="http_5xx", excerpt="", duration_ms=3, peer="192.0.2.1", retry_after=None)


def note(lease: Lease, answer: Answer = OK) -> bool:
    return notes.note([Result(lease, answer, began=NOW, ended=NOW)]) == {lease.delivery_id}


def let_leases_expire() -> None:
    Delivery.objects.filter(state="leased").update(lease_until=Now())


def claimed_to_the_end() -> list[str]:
    """Claim and note until nothing is found."""
    mine = []
    while taken := claim(3):
        mine += [lease.delivery_id for lease in taken]
        for lease in taken:
            note(lease)
    return mine


def test_a_claim_takes_what_is_due_longest(shop: Shop) -> None:
    make_endpoint(shop, latency_ms=ORDINARY_MS)
    for minutes in (3, 9, 5, -1):
        publish(shop, at=NOW - timedelta(minutes=minutes))
    ages = [Delivery.objects.get(pk=lease.delivery_id).due_at for lease in claim(3)]
    assert sorted(ages) == [NOW - timedelta(minutes=minutes) for minutes in (9, 5, 3)]
    assert claim() == []


def test_a_lease_outlasts_the_post_by_the_clock_of_the_database(shop: Shop, settings: Settings) -> None:
    settings.WEBHOOK_SECONDS = 40
    make_endpoint(shop)
    publish(shop)
    before = timezone.now()
    claim()
    lease_until = only_delivery().lease_until
    assert lease_until is not None
    assert before < lease_until - timedelta(seconds=55) < timezone.now()


def test_what_is_leased_is_not_claimed_again(shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop)
    (lease,) = claim()
    assert claim() == []
    assert leases.reclaim(now=NOW) == 0
    assert note(lease)
    assert only_delivery().lease_id is None


def test_a_lost_worker_delays_a_delivery_and_is_written_down(shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop)
    claim()
    let_leases_expire()
    assert leases.reclaim(now=NOW) == 1
    assert (only_delivery().state, only_delivery().due_at) == ("pending", NOW)
    assert Attempt.objects.get().error == "worker_lost"
    assert [lease.attempt for lease in claim()] == [2]


def test_a_delivery_that_kills_its_workers_ends(shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop)
    for _ in range(10):
        claim()
        let_leases_expire()
        leases.reclaim(now=NOW)
    assert (only_delivery().state, only_delivery().finished_at) == ("failed", NOW)
    assert Attempt.objects.count() == 10


def test_a_worker_that_wakes_up_late_changes_nothing_but_its_attempt_is_kept(shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop)
    (late,) = claim()
    let_leases_expire()
    leases.reclaim(now=NOW)
    (current,) = claim()
    assert not note(late, FAILED)
    assert (only_delivery().state, only_delivery().lease_id) == ("leased", current.lease_id)
    assert note(current)
    assert not note(late, FAILED)
    assert only_delivery().state == "succeeded"
    errors = Attempt.objects.order_by("id").values_list("number", "error")
    assert list(errors) == [(1, "worker_lost"), (1, "http_5xx"), (2, ""), (1, "http_5xx")]


def test_one_endpoint_gets_only_its_share_however_long_its_backlog(shop: Shop, rival: Shop) -> None:
    make_endpoint(shop, latency_ms=ORDINARY_MS)
    publish(shop, 50, at=NOW - timedelta(hours=1))
    make_endpoint(rival)
    publish(rival)
    taken = claim(100)
    assert len(taken) == IN_FLIGHT + 1
    assert claim(100) == []
    assert all(note(lease, replace(OK, duration_ms=ORDINARY_MS)) for lease in taken)
    assert len(claim(100)) == IN_FLIGHT


def test_an_endpoint_that_answers_quickly_gets_a_large_share(shop: Shop) -> None:
    make_endpoint(shop, latency_ms=QUICK_MS)
    publish(shop, 50)
    assert len(claim(100)) == IN_FLIGHT_QUICK


def test_beyond_its_share_a_quick_endpoint_gets_what_is_left_of_the_extra_lane(
    shop: Shop, rival: Shop
) -> None:
    for each in (shop, rival):
        make_endpoint(each, latency_ms=QUICK_MS)
        publish(each, 50)
    taken = claim(100, extra=5)
    assert Counter(lease.lane for lease in taken) == {Lane.STEADY: 2 * IN_FLIGHT, Lane.EXTRA: 5}
    assert claim(100, extra=0) == []


def test_an_endpoint_that_just_failed_gets_the_small_share(shop: Shop) -> None:
    endpoint = make_endpoint(shop, latency_ms=QUICK_MS)
    Health.objects.filter(endpoint=endpoint).update(failures=1)
    publish(shop, 50)
    assert len(claim(100)) == IN_FLIGHT


def test_slow_endpoints_share_a_part_of_the_threads(shop: Shop, rival: Shop) -> None:
    slow, quick = make_endpoint(shop, latency_ms=SLOW_MS + 1), make_endpoint(rival, latency_ms=SLOW_MS)
    publish(shop, 9)
    publish(rival, 9)
    taken = claim(100, slow=2)
    assert Counter(lease.endpoint.id for lease in taken) == {slow.id: 2, quick.id: IN_FLIGHT}
    assert {lease.endpoint.id for lease in taken if lease.lane is Lane.SLOW} == {slow.id}


def test_an_endpoint_never_asked_is_tried_with_one_before_the_slow_ones(shop: Shop, rival: Shop) -> None:
    for _ in range(20):
        make_endpoint(rival, latency_ms=SLOW_MS + 1)
    publish(rival, at=NOW - timedelta(hours=1))
    new = make_endpoint(shop)
    publish(shop, 9)
    assert claim(100, slow=0) == []
    (lease,) = claim(100, slow=1)
    assert (lease.endpoint.id, lease.lane) == (new.id, Lane.SLOW)
    assert new.id not in {lease.endpoint.id for lease in claim(100)}


def test_no_order_among_endpoints_is_favoured(shop: Shop) -> None:
    for _ in range(10):
        make_endpoint(shop, latency_ms=ORDINARY_MS)
    publish(shop, 4)
    assert len({claim()[0].endpoint.id for _ in range(20)}) > 20 / IN_FLIGHT


def test_claims_go_round_however_many_endpoints_wait(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "WINDOW", 2)
    endpoints = {make_endpoint(shop).id for _ in range(5)}
    publish(shop)
    rounds, told = Rounds(), []
    while taken := claim(2, rounds=rounds):
        told.append({lease.endpoint.id for lease in taken})
    assert [len(each) for each in told] == [2, 2, 1]
    assert set().union(*told) == endpoints


def test_a_claim_finds_the_one_that_is_due_among_many_that_wait(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "WINDOW", 2)
    for _ in range(7):
        make_endpoint(shop)
    publish(shop, at=NOW + timedelta(hours=1))
    rounds = Rounds()
    for delivery in Delivery.objects.order_by("-endpoint"):
        Delivery.objects.filter(pk=delivery.pk).update(due_at=NOW)
        assert [lease.delivery_id for lease in claim(9, rounds=rounds)] == [delivery.id]


@pytest.mark.parametrize("known_late", [[], [Endpoint], [Endpoint, Health, Event, Merchant], [Delivery]])
def test_a_claim_does_not_walk_a_backlog_whatever_the_statistics_know(
    shop: Shop, rival: Shop, known_late: list[type[Model]]
) -> None:
    make_endpoint(shop, latency_ms=SLOW_MS + 1)
    make_endpoint(rival)
    publish(shop, 200)
    Delivery.objects.update(state="succeeded")
    learn(Delivery)
    publish(shop, 3_000)
    assert len(claim(100)) == IN_FLIGHT
    publish(rival)
    learn(*known_late)
    before = deliveries_read()
    assert len(claim(100)) == 1
    assert deliveries_read() - before < 100


def learn(*models: type[Model]) -> None:
    with connection.cursor() as cursor:
        for model in models:
            cursor.execute(f"ANALYZE {model._meta.db_table}")


def deliveries_read() -> int:
    """Rows of the table that this transaction has read, by an index or not."""
    sql = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = %s"
    with connection.cursor() as cursor:
        cursor.execute(sql, [Delivery._meta.db_table])
        return int(cursor.fetchone()[0])


def test_an_endpoint_with_nothing_due_is_passed_over(shop: Shop, rival: Shop) -> None:
    make_endpoint(shop)
    publish(shop, 3, at=NOW + timedelta(seconds=1))
    make_endpoint(rival)
    publish(rival)
    assert len(claim(100)) == 1


def test_events_of_a_disabled_endpoint_are_held(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop, 2)
    (lease,) = claim()
    endpoints.disable(endpoint_id=endpoint.id, reason=DisabledReason.GONE, now=NOW)
    assert claim() == []
    note(lease, FAILED)
    settling.settle_left(now=NOW)
    assert list(Delivery.objects.values_list("state", flat=True)) == ["held", "held"]


def test_deliveries_of_a_deleted_endpoint_end(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop)
    Endpoint.objects.filter(pk=endpoint.pk).update(status=EndpointStatus.DISABLED)
    publish(shop)
    Endpoint.objects.filter(pk=endpoint.pk).update(status=EndpointStatus.ACTIVE)
    publish(shop)
    (lease,) = claim()
    endpoints.delete(merchant=shop.merchant, webhook_id=endpoint.id, now=NOW)
    assert claim() == []
    note(lease, FAILED)
    settling.settle_left(now=NOW)
    assert set(Delivery.objects.values_list("state", "finished_at")) == {("failed", NOW)}


def test_an_endpoint_deleted_while_it_answers_410_leaves_nothing_behind(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop)
    (lease,) = claim()
    endpoints.delete(merchant=shop.merchant, webhook_id=endpoint.id, now=NOW)
    note(lease, replace(FAILED, status=410, error="http_4xx"))
    settling.settle_left(now=NOW)
    assert only_delivery().state == "failed"


@pytest.mark.django_db(transaction=True)
def test_two_workers_never_get_the_same_delivery(shop: Shop) -> None:
    for _ in range(5):
        make_endpoint(shop)
    publish(shop, 12)
    claimed = [delivery for mine in at_once(*[claimed_to_the_end] * 6) for delivery in mine]
    assert len(claimed) == len(set(claimed)) == 60
    assert set(Delivery.objects.values_list("state", "attempts")) == {("succeeded", 1)}


@pytest.mark.django_db(transaction=True)
def test_claims_at_the_same_time_keep_to_the_share_of_an_endpoint(shop: Shop) -> None:
    make_endpoint(shop, latency_ms=ORDINARY_MS)
    publish(shop, 30)
    taken = at_once(*[claim] * 8)
    assert sum(len(mine) for mine in taken) == IN_FLIGHT


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("loopback")
def test_a_lost_worker_is_reclaimed_once_by_two_beats(shop: Shop) -> None:
    endpoint = make_endpoint(shop, latency_ms=ORDINARY_MS)
    publish(shop, 3)
    claim(3)
    let_leases_expire()
    Endpoint.objects.filter(pk=endpoint.pk).update(status=EndpointStatus.DISABLED)
    at_once(*[tasks.ring] * 4)
    assert list(Attempt.objects.values_list("error", flat=True)) == ["worker_lost"] * 3
    assert set(Delivery.objects.values_list("state", flat=True)) == {"held"}
