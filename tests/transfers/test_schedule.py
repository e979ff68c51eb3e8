"""When transfers are sent and inquired again, and how staff find overdue ones."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from banks import ResultStatus, TransferResult, parallel
from core import clock
from core.work import due_work
from tests.transfers.builders import FakeHandler, Serving, pass_time, queued, send_due
from transfers import schedule, services

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("stopped_clock")]


@pytest.mark.slow
def test_transfer_inquiry_delays_grow_to_one_hour(handler: FakeHandler, served_by: Serving) -> None:
    served_by(inquiries=[TransferResult("processing")])
    transfer = queued()
    waits = []
    for _ in range(11):
        before = clock.now()
        send_due(handler)
        transfer.refresh_from_db()
        waits.append((transfer.due_at - before).total_seconds())
        pass_time(4000)
    assert waits == [1, 2, 5, 10, 30, 60, 300, 900, 3600, 3600, 3600]
    assert transfer.inquiries == 10


def test_transfer_speedup_divides_the_delays(settings: Any) -> None:
    settings.SPEEDUP = 100
    assert schedule.inquiry_delay(5) == timedelta(seconds=0.6)
    assert schedule.resend_delay(timedelta(0)) == timedelta(seconds=0.05)


@pytest.mark.parametrize(("age", "wait"), [(0, 5), (50, 5), (600, 60), (6_000, 600), (10**6, 600)])
def test_resend_delay_grows_with_the_age_of_the_order(age: int, wait: int) -> None:
    assert schedule.resend_delay(timedelta(seconds=age)) == timedelta(seconds=wait)


def test_resend_delay_of_an_unsent_order_depends_on_the_age(handler: FakeHandler, served_by: Serving) -> None:
    served_by(sends=[TransferResult("not_sent")])
    transfer = queued(at=clock.now() - timedelta(hours=1))
    send_due(handler)
    transfer.refresh_from_db()
    assert (transfer.state, transfer.due_at - clock.now()) == ("queued", timedelta(minutes=6))


def test_held_order_is_tried_again_after_ten_seconds(handler: FakeHandler, served_by: Serving) -> None:
    bank, handler.holds = served_by(), True
    transfer = queued()
    send_due(handler)
    transfer.refresh_from_db()
    assert (transfer.state, transfer.lease_until, bank.sent) == ("queued", None, [])
    assert transfer.due_at - clock.now() == timedelta(seconds=10)


def test_staff_may_complete_a_transfer_from_15_minutes_after_its_submission(
    handler: FakeHandler, served_by: Serving
) -> None:
    served_by(sends=[TransferResult("unknown")])
    transfer = queued()
    send_due(handler)
    overdue_at = clock.now() + timedelta(minutes=15)
    with pytest.raises(services.NotOverdue):
        services.lock_overdue(transfer.id, now=overdue_at - timedelta(milliseconds=1))
    assert services.lock_overdue(transfer.id, now=overdue_at) == transfer


@pytest.mark.slow
def test_hanging_bank_call_times_out_and_leaves_the_transfer_submitted(
    handler: FakeHandler, served_by: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "CALL_SECONDS", 0.1)
    release = threading.Event()
    served_by(sends=[lambda: TransferResult("succeeded" if release.wait(300) else "failed")])
    transfer = queued()
    send_due(handler)
    transfer.refresh_from_db()
    release.set()
    assert (transfer.state, handler.completed) == ("submitted", [])
    monkeypatch.setattr(parallel, "CALL_SECONDS", 60)
    pass_time()
    send_due(handler)
    assert handler.statuses == ["succeeded"]


def test_transfer_run_claims_nothing_after_the_time_limit(
    handler: FakeHandler, served_by: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due_work, "RUN_SECONDS", 0)
    served_by()
    queued()
    assert send_due(handler) == 0


@pytest.mark.slow
def test_transfer_run_claims_at_most_the_limit(handler: FakeHandler, served_by: Serving) -> None:
    bank = served_by()
    for _ in range(12):
        queued()
    assert services.run_due("withdrawal", handler, now=clock.now, limit=10) == 10
    assert len(bank.sent) == 10


@pytest.mark.parametrize("status", ["unknown", "not_sent"])
@pytest.mark.slow
def test_staff_filter_overdue_transfers(
    handler: FakeHandler, served_by: Serving, client: Client, admin_user: User, status: ResultStatus
) -> None:
    served_by(sends=[TransferResult(status)], inquiries=[TransferResult("unknown")])
    long_ago = clock.now() - schedule.OVERDUE_AFTER - timedelta(seconds=1)
    silent, fresh, over = queued(at=long_ago), queued(), queued(at=long_ago)
    services.cancel(over.id, now=clock.now())
    send_due(handler)
    client.force_login(admin_user)
    page = client.get("/admin/transfers/transfer/?result=overdue").content.decode()
    assert silent.id in page
    assert fresh.id not in page
    assert over.id not in page


def test_staff_see_only_the_last_digits_of_an_account(client: Client, admin_user: User) -> None:
    transfer = queued()
    client.force_login(admin_user)
    page = client.get(f"/admin/transfers/transfer/{transfer.id}/change/").content.decode()
    assert "xxxxxx4567" in page
    assert "4051234567" not in page
    assert transfer.account_sealed not in page
