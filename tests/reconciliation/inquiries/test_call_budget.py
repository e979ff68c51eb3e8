"""What a bank limits are calls, and a question about several days takes one for each."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import time_machine

import banks
from banks import InquiryRequest
from banks.sandbox import SandboxBank
from banks.scb import Scb
from core.clock import BANGKOK
from reconciliation.inquiries.rate_limit import MAX_PARALLEL_CALLS, CallBudget
from tests.banks import fake_scb
from tests.banks.fake_scb import FakeScb, success
from tests.conftest import Shop
from tests.reconciliation.inquiries.builders import create_codes, run_batch

MIDNIGHT = datetime(2026, 11, 22, tzinfo=BANGKOK)
NOON = datetime(2026, 11, 21, 5, 0, tzinfo=UTC)


def asking(*days: int) -> list[InquiryRequest]:
    """Questions of noon about codes of so many days."""
    return [InquiryRequest("b", "r", 1, NOON - timedelta(days=day - 1), NOON) for day in days]


class Slow(SandboxBank):
    calls_per_second = 0.1


class Fast(SandboxBank):
    calls_per_second = 1000.0


@pytest.mark.parametrize(
    ("bank", "days", "fitting"),
    [
        (Scb, [1] * 9, [1] * 5),
        (Scb, [2, 2, 2], [2, 2]),
        (Scb, [1, 4, 1], [1, 4]),
        (Scb, [2, 4, 1], [2]),
        (Scb, [4], [4]),
        (Scb, [6, 1], [5]),
        (Scb, [], []),
        (Slow, [1, 1], [1]),
        (Fast, [1] * 40, [1] * MAX_PARALLEL_CALLS),
    ],
)
def test_batch_fits_the_call_budget_with_at_least_one_inquiry(
    bank: type[banks.Bank], days: list[int], fitting: list[int]
) -> None:
    pace = CallBudget(bank)
    assert pace.fit(asking(*days), pace.max_calls) == fitting


@pytest.mark.parametrize(("left", "fitting"), [(0, []), (1, [1]), (2, [1]), (3, [1, 2]), (5, [1, 2, 1])])
def test_remaining_call_budget_is_filled(left: int, fitting: list[int]) -> None:
    assert CallBudget(Scb).fit(asking(1, 2, 1), left) == fitting


@pytest.mark.parametrize(
    ("bank", "days", "seconds"),
    [(Scb, [1] * 5, 1.0), (Scb, [2, 2], 0.8), (Scb, [6], 1.2), (Scb, [], 0.0), (Slow, [1], 10.0)],
)
def test_pause_counts_all_calls_of_a_batch(bank: type[banks.Bank], days: list[int], seconds: float) -> None:
    assert CallBudget(bank).pause(asking(*days)) == timedelta(seconds=seconds)


def test_short_time_range_needs_one_call() -> None:
    assert Scb.calls_needed(asking(400)[0]) == 1


@pytest.fixture
def bank() -> Iterator[FakeScb]:
    with FakeScb.running() as bank:
        yield bank


@pytest.fixture
def shop(db: None, bank: FakeScb) -> Shop:
    return fake_scb.shop_at(bank)


@pytest.mark.slow
def test_batch_makes_at_most_one_second_of_calls(shop: Shop, bank: FakeScb) -> None:
    """Three codes of before midnight take two calls each, and two of after it one."""
    with time_machine.travel(MIDNIGHT - timedelta(minutes=20)):
        before = create_codes(shop, 3)
    with time_machine.travel(MIDNIGHT + timedelta(minutes=30)):
        after = create_codes(shop, 2)
        for reference in before + after:
            for day in ("2026-11-21", "2026-11-22"):
                bank.on_inquiry(day, success([]), reference=str(reference))
        rounds = [(*run_batch(), len(bank.inquiries)) for _ in range(3)]
    assert rounds == [(2, 0.8, 4), (3, 0.8, 8), (0, 0.0, 8)]
