"""No night is paid twice: by several workers, a killed one, a changed schedule, or any statement."""

import signal
from collections.abc import Callable, Iterator
from datetime import time, timedelta
from functools import partial
from typing import Any

import pytest
import time_machine
from django.db import DatabaseError, transaction

from core.database import rows
from tests import killed_worker
from tests.approvals.builders import add_payout_account
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop, open_shop
from tests.sqlstates import CHECK_VIOLATION, NOT_ALLOWED, UNIQUE_VIOLATION, sqlstate
from tests.stack import wait_until
from tests.tables import LOCKS
from tests.withdrawals.builders import ACCOUNT, balance, fund, withdrawn
from tests.withdrawals.payout_builders import SATURDAY, bangkok, nights, paid, run_at, schedule
from withdrawals import services
from withdrawals.models import PayoutDays, PayoutNight, PayoutSchedule, Withdrawal

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("audit_is_clean"),
]
NOON, NIGHT = bangkok("12:00"), bangkok("21:00")
DAY = timedelta(days=1)
# Within a transaction, pg_stat_activity stays as it was at the first look.
WAITING = f"SELECT count(*) FROM {LOCKS} WHERE NOT granted AND relation = %s::regclass"
# The steps of a night, by the table that each writes.
STEPS = [
    "approvals_approval",
    "withdrawals_withdrawal",
    "transfers_transfer",
    "webhooks_event",
    "ledger_journal",
    "withdrawals_payoutnight",
    "withdrawals_payoutschedule",
]
RUN = f"""
from datetime import datetime
from withdrawals import payouts
payouts.run_due(now=lambda: datetime.fromisoformat("{NIGHT.isoformat()}"))
"""


@pytest.fixture(autouse=True)
def noon_in_bangkok() -> Iterator[None]:
    with time_machine.travel(NOON, tick=False):
        yield


@pytest.fixture
def shop(bank: SandboxBankClient) -> Shop:
    shop = open_shop("Somtam House")
    fund(shop, bank)
    return shop


@pytest.mark.parametrize("table", STEPS)
def test_worker_that_is_killed_between_two_steps_leaves_all_or_nothing(shop: Shop, table: str) -> None:
    schedule(shop, now=NOON)
    with transaction.atomic():
        rows.run(f"LOCK TABLE {table} IN SHARE MODE", [])
        worker = killed_worker.start(f"exec({RUN!r})")
        with time_machine.travel(NOON):
            wait_until(lambda: rows.run(WAITING, [table]).fetchone() == (1,), 60)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    with time_machine.travel(NOON):
        wait_until(killed_worker.has_left_the_database, 60)
    assert (nights(), paid(), balance(shop)) == ([], [], (150_000, 0))
    run_concurrently(*[partial(run_at, NIGHT)] * 4)
    assert (nights(), paid()) == ([("2026-11-21", 150_000, "")], [("2026-11-21", 150_000)])


def test_worker_that_is_killed_after_the_commit_has_made_the_night(shop: Shop) -> None:
    schedule(shop, now=NOON)
    worker = killed_worker.start(f"exec({RUN!r}); import time; time.sleep(600)")
    with time_machine.travel(NOON):
        wait_until(PayoutNight.objects.exists, 60)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    run_concurrently(*[partial(run_at, NIGHT + timedelta(minutes=1))] * 4)
    assert paid() == [("2026-11-21", 150_000)]


def test_many_workers_make_a_night_once(shop: Shop, bank: SandboxBankClient) -> None:
    schedule(shop, now=NOON)
    for day in range(5):
        run_concurrently(*[partial(run_at, NIGHT + day * DAY)] * 8)
        fund(shop, bank)
    assert paid() == [(f"2026-11-{21 + day}", 150_000) for day in range(5)]


def test_schedule_that_is_changed_in_the_same_minute_does_not_pay_twice(
    shop: Shop, bank: SandboxBankClient
) -> None:
    schedule(shop, now=NOON)
    for day in range(6):
        now = NIGHT + day * DAY
        changes: list[Callable[[], Any]] = [
            partial(schedule, shop, now=now, time=time(21, minute), days=days)
            for minute, days in enumerate((*PayoutDays, *PayoutDays))
        ]
        run_concurrently(*[partial(run_at, now)] * 4, *changes)
        fund(shop, bank)
        for minute in range(6):
            run_concurrently(*[partial(run_at, now + timedelta(minutes=minute))] * 2)
        schedule(shop, now=now + timedelta(minutes=10))
    days = [night for night, _ in paid()]
    assert len(days) == len(set(days)) == Withdrawal.objects.count()
    assert len(nights()) == 6


def test_night_that_is_written_by_hand_is_paid_once(shop: Shop, bank: SandboxBankClient) -> None:
    """Whatever writes it: not only the task."""
    fund(shop, bank, 1_000_000)
    fields: dict[str, Any] = {
        "bank_code": "014",
        "bank_account": ACCOUNT,
        "account_name": "Somchai",
        "payout_night": SATURDAY,
    }

    def pay(*, has_row: bool) -> bool:
        try:
            with transaction.atomic():
                services.create(merchant=shop.merchant, amount=1_000, now=NIGHT, **fields)
                if has_row:
                    PayoutNight.objects.create(
                        merchant=shop.merchant, day=SATURDAY, amount=1_000, created_at=NIGHT
                    )
        except DatabaseError:
            return False
        return True

    with_row, without = partial(pay, has_row=True), partial(pay, has_row=False)
    for _ in range(5):
        run_concurrently(*[without] * 4)
    assert paid() == []
    assert sum(run_concurrently(*[with_row] * 6, *[without] * 6)) == 1
    assert not any(run_concurrently(*[with_row] * 4, *[without] * 4))
    assert paid() == [("2026-11-21", 1_000)]


NIGHT_AGAIN = """INSERT INTO withdrawals_payoutnight (merchant_id, day, amount, skip_reason, created_at)
    SELECT merchant_id, {}, created_at FROM withdrawals_payoutnight"""
REFUSED = {
    UNIQUE_VIOLATION: [NIGHT_AGAIN.format("day, 0, 'missed'")],
    CHECK_VIOLATION: [
        NIGHT_AGAIN.format("day + 1, amount, ''"),  # not on its day
        NIGHT_AGAIN.format("day + 1, 0, ''"),
        NIGHT_AGAIN.format("day + 1, 0, 'other'"),
        NIGHT_AGAIN.format("day + 1, 100, 'missed'"),
        "UPDATE withdrawals_withdrawal SET payout_night = NULL WHERE payout_night IS NOT NULL",
        "UPDATE withdrawals_withdrawal SET payout_night = '2026-11-21' WHERE payout_night IS NULL",
        """UPDATE withdrawals_payoutschedule AS ours
            SET merchant_id = (SELECT id FROM merchants_merchant WHERE id <> ours.merchant_id LIMIT 1)""",
        """UPDATE withdrawals_payoutschedule AS ours SET account_id = (
            SELECT id FROM approvals_payoutaccount WHERE merchant_id <> ours.merchant_id)""",
        "UPDATE withdrawals_payoutschedule SET float_amount = -1",
        "UPDATE withdrawals_payoutschedule SET time = '23:31'",
        "UPDATE withdrawals_payoutschedule SET changed_by = ''",
    ],
    NOT_ALLOWED: [
        "UPDATE withdrawals_payoutnight SET day = day + 1",
        "DELETE FROM withdrawals_payoutnight",
        "TRUNCATE withdrawals_payoutnight",
        "DELETE FROM withdrawals_payoutschedule",
    ],
}


@pytest.mark.parametrize("state", REFUSED)
def test_database_refuses_a_second_payout_of_a_night(
    shop: Shop, other_shop: Shop, bank: SandboxBankClient, subtests: pytest.Subtests, state: str
) -> None:
    fund(shop, bank)
    withdrawn(shop)
    add_payout_account(other_shop)
    schedule(shop, now=NOON)
    run_at(NIGHT)
    assert len(paid()) == PayoutSchedule.objects.count() == 1
    for sql in REFUSED[state]:
        with subtests.test(sql):
            assert sqlstate(sql) == state
