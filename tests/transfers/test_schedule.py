"""How often a bank is asked."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from banks import Fate, Word, calling
from core import clock
from tests.transfers.cast import Bank, Recorder, pass_time, queued, work
from transfers import schedule, services

Serving = Callable[..., Bank]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("stopped_clock")]


def test_the_waits_grow_to_an_hour_and_stay(owner: Recorder, served_by: Serving) -> None:
    served_by(inquiries=[Word("processing")])
    transfer = queued()
    waits = []
    for _ in range(11):
        before = clock.now()
        work(owner)
        transfer.refresh_from_db()
        waits.append((transfer.due_at - before).total_seconds())
        pass_time(4000)
    assert waits == [1, 2, 5, 10, 30, 60, 300, 900, 3600, 3600, 3600]
    assert transfer.inquiries == 10


def test_tests_may_go_faster(settings: Any) -> None:
    settings.TRANSFER_PACE = 100
    assert schedule.next_inquiry(5) == timedelta(seconds=0.6)
    assert schedule.next_sending(timedelta(0)) == timedelta(seconds=0.05)


@pytest.mark.parametrize(("age", "wait"), [(0, 5), (50, 5), (600, 60), (6_000, 600), (10**6, 600)])
def test_a_bank_that_cannot_be_reached_is_told_less_and_less_often(age: int, wait: int) -> None:
    assert schedule.next_sending(timedelta(seconds=age)) == timedelta(seconds=wait)


def test_an_order_that_never_arrived_waits_by_its_age(owner: Recorder, served_by: Serving) -> None:
    served_by(sends=[Word("not_sent")])
    transfer = queued(at=clock.now() - timedelta(hours=1))
    work(owner)
    transfer.refresh_from_db()
    assert (transfer.state, transfer.due_at - clock.now()) == ("queued", timedelta(minutes=6))


def test_a_bank_that_hangs_is_left_after_its_time_and_its_order_is_unknown(
    owner: Recorder, served_by: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "CALL_SECONDS", 0.1)
    release = threading.Event()
    served_by(sends=[lambda: Word("succeeded") if release.wait(300) else Word("failed")])
    transfer = queued()
    work(owner)
    transfer.refresh_from_db()
    release.set()
    assert (transfer.state, owner.settled) == ("told", [])
    monkeypatch.setattr(calling, "CALL_SECONDS", 60)
    pass_time()
    work(owner)
    assert owner.fates == ["succeeded"]


def test_no_new_round_begins_when_patience_is_out(
    owner: Recorder, served_by: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "PATIENCE_SECONDS", 0)
    served_by()
    queued()
    assert work(owner) == 0


def test_a_round_takes_no_more_than_it_may(owner: Recorder, served_by: Serving) -> None:
    bank = served_by()
    for _ in range(12):
        queued()
    assert services.work("withdrawal", owner, now=clock.now, limit=10) == 10
    assert len(bank.sent) == 10


@pytest.mark.parametrize("word", ["unknown", "not_sent"])
def test_staff_find_those_that_do_not_end(
    owner: Recorder, served_by: Serving, client: Client, admin_user: User, word: Fate
) -> None:
    served_by(sends=[Word(word)], inquiries=[Word("unknown")])
    long_ago = clock.now() - schedule.OVERDUE - timedelta(seconds=1)
    silent, fresh, over = queued(at=long_ago), queued(), queued(at=long_ago)
    services.cancel(over.id, now=clock.now())
    work(owner)
    client.force_login(admin_user)
    page = client.get("/admin/transfers/transfer/?end=overdue").content.decode()
    assert silent.id in page
    assert fresh.id not in page
    assert over.id not in page


def test_staff_see_the_end_of_an_account_only(client: Client, admin_user: User) -> None:
    transfer = queued()
    client.force_login(admin_user)
    page = client.get(f"/admin/transfers/transfer/{transfer.id}/change/").content.decode()
    assert "xxxxxx4567" in page
    assert "4051234567" not in page
    assert transfer.account_sealed not in page
