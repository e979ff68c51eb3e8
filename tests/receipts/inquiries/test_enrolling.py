"""Payments that stay pending are found, whenever they were committed, at a cost that stays."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from core import clock
from merchants.models import Merchant
from payments.models import Payment
from receipts import enrolment
from receipts.models import Enrolment, Inquiry, Turn
from tests.conftest import Shop
from tests.receipts.inquiries.cast import AskedBank, copy_ten_thousand, made, shared_buffers
from tests.threads import at_once

Answering = Callable[..., AskedBank]
pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def sandbox(served_by: Answering) -> AskedBank:
    return served_by()


@pytest.fixture
def begins(searched_until_now: None) -> datetime:
    """How far the search has come."""
    return Enrolment.objects.get().created_before


def enrolled() -> set[str]:
    return set(Inquiry.objects.values_list("pk", flat=True))


@pytest.mark.parametrize(("age", "is_found"), [(2, False), (6, True), (59, True)])
def test_what_is_pending_for_some_seconds_is_found(
    shop: Shop, begins: datetime, age: int, is_found: bool
) -> None:
    made(shop, begins + timedelta(seconds=60 - age))
    assert enrolment.enrol(now=begins + timedelta(seconds=60)) == is_found


def test_a_new_database_is_searched_by_few_statements(
    shop: Shop, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    Enrolment.objects.all().delete()
    now = clock.now()
    made(shop, now - timedelta(seconds=6))
    with django_assert_max_num_queries(20):
        assert enrolment.enrol(now=now) == 1


def test_what_is_found_has_a_first_date_and_its_bank_a_turn(shop: Shop, begins: datetime) -> None:
    (payment_id,) = made(shop, begins)
    enrolment.enrol(now=begins + HOUR)
    inquiry = Inquiry.objects.get()
    assert (inquiry.pk, inquiry.bank, inquiry.step) == (payment_id, "sandbox", 0)
    assert inquiry.due_at == begins + timedelta(seconds=5)
    assert Turn.objects.get().bank == "sandbox"


def test_only_codes_that_wait_for_money_are_found(shop: Shop, begins: datetime) -> None:
    expired, failed, succeeded = made(shop, begins, 3)
    ended = Payment.objects.filter
    ended(pk=expired).update(status="expired")
    ended(pk=failed).update(status="failed")
    ended(pk=succeeded).update(status="succeeded", completed_at=begins)
    made(shop, begins, qr_code_id=None, expires_at=None)  # by card
    assert (enrolment.enrol(now=begins + HOUR), enrolled()) == (1, {expired})


def test_only_banks_that_can_be_asked_are_asked(shop: Shop, begins: datetime) -> None:
    Merchant.objects.update(mode="live", bank="branch")
    made(shop, begins)
    assert enrolment.enrol(now=begins + HOUR) == 0


def test_a_payment_that_becomes_visible_long_after_its_id_is_found(shop: Shop, begins: datetime) -> None:
    """Whoever stored it was slow: others of the same second, and of later ones, were found before."""
    made(shop, begins + timedelta(seconds=30), 3)
    assert enrolment.enrol(now=begins + timedelta(seconds=60)) == 3
    (late,) = made(shop, begins + timedelta(seconds=1))
    assert enrolment.enrol(now=begins + timedelta(seconds=61)) == 1
    assert late in enrolled()


def test_each_is_found_once(shop: Shop, begins: datetime) -> None:
    made(shop, begins + timedelta(seconds=30), 3)
    found = [enrolment.enrol(now=begins + timedelta(seconds=second)) for second in range(30, 120)]
    assert sum(found) == Inquiry.objects.count() == 3


def test_the_first_search_begins_two_days_ago(shop: Shop, begins: datetime) -> None:
    Enrolment.objects.all().delete()
    now = clock.now()
    made(shop, now - timedelta(hours=49))
    recent = made(shop, now - timedelta(hours=47))
    enrolment.enrol(now=now)
    assert enrolled() == set(recent)


def test_hours_without_workers_are_caught_up_in_spans_and_batches(
    shop: Shop, begins: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enrolment, "BATCH", 4)
    for hour in range(5):
        made(shop, begins + hour * HOUR, 9)
    assert enrolment.enrol(now=begins + 5 * HOUR) == 45
    assert Enrolment.objects.get().created_before == begins + 5 * HOUR - enrolment.SETTLED


def test_what_is_not_caught_up_in_time_is_for_the_next_sweep(
    shop: Shop, begins: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter(range(1000))
    monkeypatch.setattr("receipts.enrolment.time.monotonic", lambda: float(next(ticks)))
    monkeypatch.setattr("receipts.enrolment.PATIENCE_SECONDS", 2.0)
    for hour in range(3):
        made(shop, begins + hour * HOUR)
    found = [enrolment.enrol(now=begins + 3 * HOUR) for _ in range(20)]
    assert (sum(found), max(found)) == (3, 1)


@pytest.mark.django_db(transaction=True)
def test_sweeps_at_once_find_each_once(shop: Shop, begins: datetime) -> None:
    made(shop, begins + timedelta(seconds=10), 500)
    found = at_once(*[lambda: enrolment.enrol(now=begins + HOUR)] * 8)
    assert (len(enrolled()), max(found)) == (500, 500)


@pytest.mark.slow
def test_a_search_costs_the_same_however_long_the_history(shop: Shop, begins: datetime) -> None:
    """200,000 payments, all of which nobody paid and nobody asks about any more."""
    day = timedelta(days=1)
    for number in range(20):
        copy_ten_thousand(shop, begins - day - number * day)
    made(shop, begins + timedelta(seconds=10), 100)
    with connection.cursor() as cursor:
        cursor.execute("REINDEX TABLE payments_payment")  # without what other tests left dead in it
        cursor.execute("ANALYZE payments_payment")
    query = enrolment.stayed_pending(begins, begins + timedelta(seconds=60)).order_by("pk")
    plan = query.explain(analyze=True, buffers=True)
    assert "payments_payment_pkey" in plan
    assert shared_buffers(plan) < 1000, plan
    assert enrolment.enrol(now=begins + timedelta(seconds=60)) == 100
