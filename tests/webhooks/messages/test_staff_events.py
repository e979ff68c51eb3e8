"""Destinations of the operator hear of what waits for staff, in the commit of what they hear of."""

from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction

from approvals import services as approvals
from approvals.models import ApprovalKind
from core import ids
from core.database.archiver import Archiver
from operations.models import NightlyJob
from operations.nightly import runs
from tests.conftest import Shop
from tests.webhooks.builders import FAILED, NOW, claim, make_endpoint, publish, record_result
from tests.webhooks.messages.destinations import MINUTE, drain, make
from tests.webhooks.messages.line_double import Line
from webhooks import events
from webhooks.models import Event, StaffEventType

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback")]
LATE = Archiver(is_on=True, age_seconds=1200.0, is_failing=False)


def make_for_staff(**fields: Any) -> None:
    make(None, **{"events": list(StaffEventType), "language": "en"} | fields)


def told() -> list[tuple[str, str]]:
    return list(Event.objects.filter(merchant=None).order_by("id").values_list("type", "subject_id"))


def go_live(shop: Shop) -> None:
    shop.merchant.mode, shop.merchant.bank = "live", ""
    shop.merchant.save()


@pytest.mark.usefixtures("audit_is_clean")
def test_message_names_what_waits_and_leads_to_the_console(line: Line, settings: Any) -> None:
    settings.BASE_URL = "https://pay.example"
    make_for_staff()
    key = ids.new("apr_", NOW)
    events.tell_staff(StaffEventType.APPROVAL_REQUESTED, key, NOW, amount=6_000_000, detail="Withdrawal")
    assert drain() == 1
    assert line.texts[0].splitlines() == [
        "Thai QR Payments",
        "Waits for your approval ฿60,000.00, Withdrawal, 21 Nov 2026 10:04",
        f"https://pay.example/admin/search/?q={key}",
    ]


def test_nothing_is_stored_without_a_destination_that_asks_for_it() -> None:
    make_for_staff(events=[StaffEventType.JOB_FAILED])
    make(None, events=[StaffEventType.BACKUP_LATE])
    events.tell_staff(StaffEventType.EXCEPTION_OPENED, "btx_1", NOW)
    assert told() == []


def test_test_merchants_tell_staff_nothing(shop: Shop) -> None:
    make_for_staff()
    events.tell_staff(StaffEventType.APPROVAL_REQUESTED, "apr_1", NOW, merchant_id=shop.merchant.id)
    assert told() == []


def test_event_for_staff_is_gone_with_the_commit_that_it_tells_of() -> None:
    make_for_staff()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        events.tell_staff(StaffEventType.APPROVAL_REQUESTED, "apr_1", NOW)
        raise ZeroDivisionError
    assert told() == []


def test_withdrawal_above_the_limit_tells_staff(shop: Shop, settings: Any) -> None:
    make_for_staff()
    settings.APPROVAL_ITEM_LIMIT = 100
    go_live(shop)
    for amount in (100, 101):
        item = approvals.OutgoingMoney(
            ApprovalKind.WITHDRAWAL, ids.new("wd_", NOW), shop.merchant.id, amount, account_digest=uuid4().hex
        )
        approval = approvals.request(item, now=NOW)
    assert told() == [("approval.requested", approval.id)]


def test_paused_webhook_tells_staff_once(shop: Shop) -> None:
    make_for_staff()
    endpoint = make_endpoint(shop, latency_ms=20)
    go_live(shop)
    publish(shop, 12)
    for _ in range(12):
        for lease in claim(now=NOW + timedelta(hours=1)):
            record_result(lease, FAILED)
    assert told() == [("endpoint.paused", endpoint.id)]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("differences", "error"), [(0, None), (3, None), (None, RuntimeError)])
def test_nightly_job_that_fails_or_finds_something_tells_staff(
    differences: int | None, error: type[Exception] | None, line: Line
) -> None:
    make_for_staff()
    with suppress(RuntimeError), runs.by_command(NightlyJob.AUDIT) as run:
        run.differences = differences
        if error:
            raise error
    assert [event_type for event_type, _ in told()] == ["job.failed"] * bool(differences or error)
    if told():
        drain(Event.objects.get().created_at)
        assert ("audit: 3 differences" if differences else "audit: RuntimeError") in line.texts[0]


@pytest.mark.usefixtures("audit_is_clean")
def test_late_archive_tells_staff_once_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    make_for_staff()
    monkeypatch.setattr(Archiver, "read", lambda: LATE)
    for hours in (0, 1, 23, 25):
        runs.tell_of_late_backups(NOW + timedelta(hours=hours))
    assert told() == [("backup.late", "archive")] * 2
    monkeypatch.setattr(Archiver, "read", lambda: LATE._replace(age_seconds=899.0))
    runs.tell_of_late_backups(NOW + timedelta(days=9))
    monkeypatch.setattr(Archiver, "read", lambda: LATE._replace(is_on=False))
    runs.tell_of_late_backups(NOW + timedelta(days=9))
    assert len(told()) == 2


@pytest.mark.usefixtures("audit_is_clean")
def test_old_base_backup_tells_staff_once_a_day_beside_the_archive(
    monkeypatch: pytest.MonkeyPatch, line: Line
) -> None:
    make_for_staff()
    monkeypatch.setattr(Archiver, "read", lambda: LATE)
    age: list[float | None] = [26 * 3600.0]
    monkeypatch.setattr(runs, "base_backup_age_seconds", lambda: age[0])
    for hours in (0, 1, 25):
        runs.tell_of_late_backups(NOW + timedelta(hours=hours))
    assert sorted(told()) == [("backup.late", each) for each in ("archive", "base_backup") for _ in range(2)]
    drain(Event.objects.latest("created_at").created_at)
    assert "no base backup for 1 day" in "".join(line.texts)
    monkeypatch.setattr(Archiver, "read", lambda: LATE._replace(age_seconds=60.0))
    for age[0] in (26 * 3600.0 - 1, None):
        runs.tell_of_late_backups(NOW + timedelta(days=9))
    assert len(told()) == 4


@pytest.mark.usefixtures("audit_is_clean")
def test_old_base_backup_is_not_told_where_nothing_is_archived(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider makes backups in a way of its own, and PostgreSQL knows nothing of them."""
    make_for_staff()
    monkeypatch.setattr(Archiver, "read", lambda: LATE._replace(is_on=False))
    monkeypatch.setattr(runs, "base_backup_age_seconds", lambda: 9e9)
    runs.tell_of_late_backups(NOW)
    assert told() == []


@pytest.mark.usefixtures("audit_is_clean")
def test_events_for_staff_are_in_no_feed_list_or_count_of_merchants(shop: Shop) -> None:
    make_for_staff()
    events.tell_staff(StaffEventType.BACKUP_LATE, "archive", NOW)
    assert shop.get("/Thai/v1/events").json()["total"] == 0
    assert shop.get("/Thai/v1/events?after_sequence=0").json()["total"] == 0
    (event,) = Event.objects.all()
    assert shop.get(f"/Thai/v1/events/{event.id}").status_code == 404


def test_database_refuses_other_events_without_a_merchant() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Event.objects.create(
            id=ids.new("evt_", NOW),
            type="payment.succeeded",
            subject_id="x",
            packed_body=b"{}",
            created_at=NOW,
        )


def test_operator_and_merchant_share_no_posts(shop: Shop, line: Line) -> None:
    make_for_staff()
    make(shop)
    publish(shop)
    events.tell_staff(StaffEventType.BACKUP_LATE, "archive", NOW)
    assert (drain(), drain(NOW + MINUTE), len(line.texts)) == (2, 0, 2)
