"""Beat publishes tasks only if they may find work, and each of them from time to time."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
import time_machine
from celery.beat import ScheduleEntry
from django.db import DatabaseError, connection

from config.celery import app
from core import clock
from operations.nightly import beat
from reconciliation.inquiries import scan
from reconciliation.models import BankRateLimit
from tests.conftest import SandboxBankClient, Shop
from tests.console.lists.query_plans import unbounded
from tests.counts.closing import close_all
from tests.reconciliation.inquiries.builders import create_codes, sweep
from tests.webhooks.builders import make_endpoint, publish
from tests.withdrawals.builders import fund, withdrawn
from webhooks import feed

ALWAYS = {entry["task"] for entry in app.conf.beat_schedule.values()} - beat.CHECKS.keys()
# Each new row gives these work.
BOOKKEEPING = {
    "counts.roll_up",
    "ledger.roll_up_due",
    "audit_trail.chain_waiting",
    "webhooks.number_events",
}


class Scheduler(beat.Scheduler):
    """Notes the published tasks in place of sending them."""

    def __init__(self) -> None:
        self.published: list[str] = []
        super().__init__(app)

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        self.published.append(str(entry.task))

    def _record(self) -> None:
        """Closes old connections, but the test still needs its own."""

    def next_round(self) -> set[str]:
        """Tick once with all tasks due, and return what was published."""
        self.published.clear()
        self.due_at.clear()
        self.tick()
        return set(self.published)


@pytest.fixture
def scheduler(db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scheduler]:
    """A scheduler that has published all tasks; both of its clocks stand still."""
    monkeypatch.setattr(beat, "time", SimpleNamespace(monotonic=lambda: 1000.0))
    with time_machine.travel(clock.now(), tick=False):
        made = Scheduler()
        assert made.next_round() == ALWAYS | beat.CHECKS.keys()
        yield made


def test_each_checked_task_is_in_the_schedule() -> None:
    assert beat.CHECKS.keys() <= {entry["task"] for entry in app.conf.beat_schedule.values()}


def test_beat_does_not_publish_tasks_without_due_work(scheduler: Scheduler) -> None:
    assert scheduler.next_round() == ALWAYS


def test_beat_publishes_each_task_every_30_seconds_without_due_work(scheduler: Scheduler) -> None:
    with time_machine.travel(clock.now() + beat.IDLE_INTERVAL, tick=False):
        assert scheduler.next_round() == ALWAYS | beat.CHECKS.keys()
        assert scheduler.next_round() == ALWAYS


def test_beat_waits_until_the_next_task_is_due(scheduler: Scheduler) -> None:
    scheduler.published.clear()
    assert 0 < scheduler.tick() <= 1
    assert scheduler.published == []


def test_beat_asks_banks_in_each_round_for_a_minute_after_a_payment(scheduler: Scheduler, shop: Shop) -> None:
    """A payment that is committed a minute late is found by the same scans."""
    scan.create_inquiries(now=clock.now())
    shop.qr_code()
    created_at = clock.now()
    for seconds in (0, 5, 30, 60):
        with time_machine.travel(created_at + timedelta(seconds=seconds), tick=False):
            assert "reconciliation.inquire_due" in scheduler.next_round()
            sweep(0)
    with time_machine.travel(created_at + timedelta(seconds=75), tick=False):
        sweep(0)
        assert "reconciliation.inquire_due" not in scheduler.next_round()


def test_beat_asks_banks_when_an_inquiry_is_due(scheduler: Scheduler, shop: Shop) -> None:
    scan.create_inquiries(now=clock.now())
    create_codes(shop)
    with time_machine.travel(clock.now() + timedelta(seconds=80), tick=False):
        scan.create_inquiries(now=clock.now())
        assert "reconciliation.inquire_due" in scheduler.next_round()
        BankRateLimit.objects.update(available_at=clock.now() + timedelta(days=1000))
        assert "reconciliation.inquire_due" not in scheduler.next_round()


def test_beat_delivers_webhooks_in_each_round_while_a_delivery_is_pending(
    scheduler: Scheduler, shop: Shop
) -> None:
    make_endpoint(shop)
    publish(shop)
    assert [scheduler.next_round() - ALWAYS - BOOKKEEPING for _ in range(2)] == [{"webhooks.run_due"}] * 2


@pytest.mark.django_db(transaction=True)
def test_beat_rolls_up_counts_in_each_round_until_all_are_rolled_up(scheduler: Scheduler, shop: Shop) -> None:
    shop.qr_code()
    assert all("counts.roll_up" in scheduler.next_round() for _ in range(2))
    close_all()
    assert "counts.roll_up" not in scheduler.next_round()


def test_beat_sends_money_in_each_round_while_a_withdrawal_is_open(
    scheduler: Scheduler, shop: Shop, bank: SandboxBankClient
) -> None:
    fund(shop, bank)
    assert "withdrawals.run_due" not in scheduler.next_round()
    withdrawn(shop)
    assert all("withdrawals.run_due" in scheduler.next_round() for _ in range(2))


def test_beat_publishes_the_expiry_task_when_a_payment_is_overdue(scheduler: Scheduler, shop: Shop) -> None:
    code = shop.qr_code(expiry_minutes=1)
    assert "payments.expire_due" not in scheduler.next_round()
    with time_machine.travel(code["expires_at"], tick=False):
        assert "payments.expire_due" in scheduler.next_round()


@pytest.mark.parametrize("task", beat.CHECKS)
def test_check_for_due_work_does_not_read_history(db: None, task: str) -> None:
    for rows in beat.CHECKS[task](clock.now()):
        sql, values = rows.query.exists().sql_with_params()
        assert not unbounded(sql, params=values)


def test_question_does_not_read_what_left_a_queue(shop: Shop) -> None:
    """Entries of gone rows stay in indexes until vacuum. They cost most while a transaction may see them."""

    def blocks() -> int:
        sql, instants = beat.statement()
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", instants)
            (found,) = cursor.fetchone()
        plan = (found if isinstance(found, list) else json.loads(found))[0]["Plan"]
        return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])

    publish(shop)
    before = blocks()
    publish(shop, 500)
    assert feed.number_all() == 501
    assert blocks() < before + 50


def test_plan_that_is_kept_reads_only_overdue_payments(db: None) -> None:
    """After some rounds PostgreSQL keeps one plan for all values. The newest payment is found by its id."""
    sql, instants = beat.statement()
    numbers = count(1)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("EXPLAIN (GENERIC_PLAN) " + re.sub("%s", lambda _: f"${next(numbers)}", sql))
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert next(numbers) == len(instants) + 1
    indexes = re.findall(r"Scan (?:Backward )?(?:using (\w+) )?on payments_payment", plan)
    assert indexes == ["payments_payment_pkey", "payments_payment_pkey", "payment_next_to_expire"]


def test_all_checks_are_one_statement(scheduler: Scheduler, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        scheduler.next_round()


def test_beat_publishes_all_tasks_while_the_database_fails(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(now: object) -> set[str]:
        raise DatabaseError("no connection")

    monkeypatch.setattr(beat, "tasks_with_work", fail)
    assert scheduler.next_round() == ALWAYS | beat.CHECKS.keys()
