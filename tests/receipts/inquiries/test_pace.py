"""What a bank limits are calls, and a question about several days takes one for each."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import time_machine

import banks
from banks import Question
from banks.sandbox import SandboxBank
from banks.scb import Scb
from core.clock import BANGKOK
from receipts.pace import LINES, Pace
from tests.banks import scb_stand_in
from tests.banks.scb_stand_in import ScbStandIn, success
from tests.conftest import Shop
from tests.receipts.inquiries.cast import drawn, one_round

MIDNIGHT = datetime(2026, 11, 22, tzinfo=BANGKOK)
NOON = datetime(2026, 11, 21, 5, 0, tzinfo=UTC)


def asking(*days: int) -> list[Question]:
    """Questions of noon about codes of so many days."""
    return [Question("b", "r", 1, NOON - timedelta(days=day - 1), NOON) for day in days]


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
        (Fast, [1] * 40, [1] * LINES),
    ],
)
def test_as_many_questions_as_their_calls_fit_and_always_one(
    bank: type[banks.Bank], days: list[int], fitting: list[int]
) -> None:
    pace = Pace(bank)
    assert pace.fitting(asking(*days), pace.room) == fitting


@pytest.mark.parametrize(("left", "fitting"), [(0, []), (1, [1]), (2, [1]), (3, [1, 2]), (5, [1, 2, 1])])
def test_what_is_left_of_a_round_is_filled(left: int, fitting: list[int]) -> None:
    assert Pace(Scb).fitting(asking(1, 2, 1), left) == fitting


@pytest.mark.parametrize(
    ("bank", "days", "seconds"),
    [(Scb, [1] * 5, 1.0), (Scb, [2, 2], 0.8), (Scb, [6], 1.2), (Scb, [], 0.0), (Slow, [1], 10.0)],
)
def test_a_bank_is_left_alone_for_all_the_calls_it_had(
    bank: type[banks.Bank], days: list[int], seconds: float
) -> None:
    assert Pace(bank).pause(asking(*days)) == timedelta(seconds=seconds)


def test_a_time_of_which_no_bank_is_asked_takes_no_more_than_one_call() -> None:
    assert Scb.calls_for(asking(400)[0]) == 1


@pytest.fixture
def bank() -> Iterator[ScbStandIn]:
    with scb_stand_in.opened() as stand_in:
        yield stand_in


@pytest.fixture
def shop(db: None, bank: ScbStandIn) -> Shop:
    return scb_stand_in.shop_at(bank)


def test_a_round_makes_no_more_calls_than_the_bank_takes_in_a_second(shop: Shop, bank: ScbStandIn) -> None:
    """Three codes of before midnight take two calls each, and two of after it one."""
    with time_machine.travel(MIDNIGHT - timedelta(minutes=20)):
        before = drawn(shop, 3)
    with time_machine.travel(MIDNIGHT + timedelta(minutes=30)):
        after = drawn(shop, 2)
        for reference in before + after:
            for day in ("2026-11-21", "2026-11-22"):
                bank.knows(day, success([]), reference=str(reference))
        rounds = [(*one_round(), len(bank.inquiries)) for _ in range(3)]
    assert rounds == [(2, 0.8, 4), (3, 0.8, 8), (0, 0.0, 8)]
