"""The scan finds payments that stay pending, whenever they were committed, at a constant cost."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from core import clock
from merchants.models import Merchant
from payments.models import Payment
from reconciliation.inquiries import scan
from reconciliation.models import BankRateLimit, Inquiry, ScanCursor
from tests.concurrency import run_concurrently
from tests.conftest import Shop
from tests.examples import examples
from tests.reconciliation.inquiries.builders import (
    Answering,
    FakeBank,
    copy_ten_thousand,
    create_payments,
    shared_buffers,
)

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def sandbox(served_by: Answering) -> FakeBank:
    return served_by()


@pytest.fixture
def scanned_until(searched_until_now: None) -> datetime:
    return ScanCursor.objects.get().created_before


def inquired_ids() -> set[str]:
    return set(Inquiry.objects.values_list("pk", flat=True))


@pytest.mark.parametrize(("age", "is_found"), [(2, False), (6, True), (59, True)])
def test_inquiry_scan_finds_payments_pending_for_some_seconds(
    shop: Shop, scanned_until: datetime, age: int, is_found: bool
) -> None:
    create_payments(shop, scanned_until + timedelta(seconds=60 - age))
    assert scan.create_inquiries(now=scanned_until + timedelta(seconds=60)) == is_found


def test_first_inquiry_scan_uses_few_statements(
    shop: Shop, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    ScanCursor.objects.all().delete()
    now = clock.now()
    create_payments(shop, now - timedelta(seconds=6))
    with django_assert_max_num_queries(20):
        assert scan.create_inquiries(now=now) == 1


def test_inquiry_scan_creates_inquiry_and_bank_rate_limit(shop: Shop, scanned_until: datetime) -> None:
    (payment_id,) = create_payments(shop, scanned_until)
    scan.create_inquiries(now=scanned_until + HOUR)
    inquiry = Inquiry.objects.get()
    assert (inquiry.pk, inquiry.bank, inquiry.schedule_index) == (payment_id, "sandbox", 0)
    assert inquiry.due_at == scanned_until + timedelta(seconds=5)
    assert BankRateLimit.objects.get().bank == "sandbox"


def test_inquiry_scan_finds_only_open_qr_payments(shop: Shop, scanned_until: datetime) -> None:
    expired, failed, succeeded = create_payments(shop, scanned_until, 3)
    ended = Payment.objects.filter
    ended(pk=expired).update(status="expired")
    ended(pk=failed).update(status="failed")
    ended(pk=succeeded).update(status="succeeded", completed_at=scanned_until)
    create_payments(shop, scanned_until, qr_code_id=None, expires_at=None)  # by card
    assert (scan.create_inquiries(now=scanned_until + HOUR), inquired_ids()) == (1, {expired})


def test_inquiry_scan_skips_banks_that_are_not_configured(shop: Shop, scanned_until: datetime) -> None:
    Merchant.objects.update(mode="live", bank="branch")
    shop.merchant.refresh_from_db()
    create_payments(shop, scanned_until)
    assert scan.create_inquiries(now=scanned_until + HOUR) == 0


def test_inquiry_scan_finds_payments_committed_late(shop: Shop, scanned_until: datetime) -> None:
    """Their commit came late: the scan had found payments of the same second and of later ones before."""

    def found_after(seconds: int) -> int:
        return scan.create_inquiries(now=scanned_until + timedelta(seconds=seconds))

    create_payments(shop, scanned_until + timedelta(seconds=30), 3)
    assert found_after(60) == 3
    (late,) = create_payments(shop, scanned_until + timedelta(seconds=54))
    assert (found_after(61), late in inquired_ids()) == (1, True)
    (later,) = create_payments(shop, scanned_until + timedelta(seconds=1))
    assert [found_after(seconds) for seconds in (62, 65, 69, 70, 71)] == [0, 0, 0, 1, 0]
    assert later in inquired_ids()


def test_inquiry_scan_reads_the_last_minute_again_every_ten_seconds(
    shop: Shop, scanned_until: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a high rate it would read tens of thousands of payments each second."""
    read: list[int] = []
    create_batch = scan._create_batch

    def note(start: datetime, until: datetime, now: datetime) -> int:
        read.append(round((until - start).total_seconds()))
        return create_batch(start, until, now)

    monkeypatch.setattr(scan, "_create_batch", note)
    for second in range(60, 90):
        scan.create_inquiries(now=scanned_until + timedelta(seconds=second))
    assert sorted(read) == [4] * 27 + [56, 66, 66]


@pytest.mark.slow
def test_inquiry_scan_creates_one_inquiry_for_each_payment(shop: Shop, scanned_until: datetime) -> None:
    create_payments(shop, scanned_until + timedelta(seconds=30), 3)
    found = [
        scan.create_inquiries(now=scanned_until + timedelta(seconds=second)) for second in range(30, 120)
    ]
    assert sum(found) == Inquiry.objects.count() == 3


@pytest.mark.slow
def test_first_inquiry_scan_starts_two_days_ago(shop: Shop, scanned_until: datetime) -> None:
    ScanCursor.objects.all().delete()
    now = clock.now()
    create_payments(shop, now - timedelta(hours=49))
    recent = create_payments(shop, now - timedelta(hours=47))
    scan.create_inquiries(now=now)
    assert inquired_ids() == set(recent)


@pytest.mark.slow
def test_inquiry_scan_catches_up_in_windows_and_batches(
    shop: Shop, scanned_until: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "BATCH_SIZE", 4)
    for hour in range(5):
        create_payments(shop, scanned_until + hour * HOUR, 9)
    assert scan.create_inquiries(now=scanned_until + 5 * HOUR) == 45
    assert ScanCursor.objects.get().created_before == scanned_until + 5 * HOUR - scan.COMMIT_DELAY


@pytest.mark.slow
def test_inquiry_scan_stops_after_the_time_limit(
    shop: Shop, scanned_until: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter(range(1000))
    monkeypatch.setattr("core.deadlines.time.monotonic", lambda: float(next(ticks)))
    monkeypatch.setattr("reconciliation.inquiries.scan.PATIENCE_SECONDS", 2.0)
    for hour in range(3):
        create_payments(shop, scanned_until + hour * HOUR)
    found = [scan.create_inquiries(now=scanned_until + 3 * HOUR) for _ in range(20)]
    assert (sum(found), max(found)) == (3, 1)


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_concurrent_inquiry_scans_find_each_payment_once(shop: Shop, scanned_until: datetime) -> None:
    create_payments(shop, scanned_until + timedelta(seconds=10), 500)
    found = run_concurrently(*[lambda: scan.create_inquiries(now=scanned_until + HOUR)] * 8)
    assert (len(inquired_ids()), max(found)) == (500, 500)


@pytest.mark.slow
def test_inquiry_scan_cost_does_not_depend_on_history(shop: Shop, scanned_until: datetime) -> None:
    """Ten thousand unpaid payments a day whose inquiries have ended."""
    day = timedelta(days=1)
    for number in range(examples(20)):
        copy_ten_thousand(shop, scanned_until - day - number * day)
    create_payments(shop, scanned_until + timedelta(seconds=10), 100)
    with connection.cursor() as cursor:
        cursor.execute("REINDEX TABLE payments_payment")  # removes dead entries of other tests
        cursor.execute("ANALYZE payments_payment")
    query = scan.unconfirmed_payments(scanned_until, scanned_until + timedelta(seconds=60)).order_by("pk")
    plan = query.explain(analyze=True, buffers=True)
    assert "payments_payment_pkey" in plan
    assert shared_buffers(plan) < 500, plan
    assert scan.create_inquiries(now=scanned_until + timedelta(seconds=60)) == 100
