"""Refunds are read one by one and listed."""

from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine

from tests.conftest import Shop
from tests.refunds.builders import REFUNDS, RefundShop, error_of


@pytest.fixture
def three(counter: RefundShop, noon: datetime) -> list[dict[str, Any]]:
    """Of two payments, an hour after each other, the second one canceled; the oldest first."""
    with time_machine.travel(noon, tick=False) as clock:
        first, other = counter.paid(), counter.paid()
        made = []
        for number, payment_id in enumerate([first, first, other]):
            clock.move_to(noon + timedelta(hours=number))
            made.append(counter.refund(payment_id, amount=100 + number))
        made[1] = counter.act(made[1], "cancel").json()
    return made


def found(counter: RefundShop, query: str = "") -> list[int]:
    return [refund["amount"] for refund in counter.shop.get(f"{REFUNDS}?{query}").json()["refunds"]]


@pytest.mark.slow
def test_they_are_listed_newest_first(counter: RefundShop, three: list[dict[str, Any]]) -> None:
    listed = counter.shop.get(REFUNDS).json()
    assert listed == {"refunds": three[::-1], "total": 3, "limit": 20, "offset": 0}
    assert counter.shop.get("/Thai/v1/refunds").json() == listed
    assert found(counter, "limit=1&offset=1") == [101]


@pytest.mark.slow
def test_filters_narrow_the_list(counter: RefundShop, three: list[dict[str, Any]]) -> None:
    for query, amounts in {
        "status=pending": [102, 100],
        "status=canceled": [101],
        "status=completed": [],
        f"payment_id={three[0]['payment_id']}": [101, 100],
        f"payment_id={three[0]['payment_id']}&status=pending": [100],
        "payment_id=pay_x": [],
        "start_date=2026-11-21T06:00:00Z": [102, 101],
        "end_date=2026-11-21T06:00:00Z": [101, 100],
        "start_date=2026-11-21&end_date=2026-11-21": [102, 101, 100],
        "start_date=2026-11-22": [],
    }.items():
        assert found(counter, query) == amounts, query


@pytest.mark.parametrize(
    "query",
    [
        "status=refunded",
        "status=",
        "payment_id=",
        "start_date=x",
        "start_date=2026-11-22&end_date=2026-11-21",
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(shop: Shop, query: str) -> None:
    answer = shop.get(f"{REFUNDS}?{query}")
    assert error_of(answer) == (400, "invalid_parameters", query.partition("=")[0])


@pytest.mark.parametrize("refund_id", ["ref_x", "pay_" + "0" * 27, "ref_" + "0" * 27])
def test_a_refund_that_is_not_there_is_not_found(shop: Shop, refund_id: str) -> None:
    for answer in (
        shop.get(f"{REFUNDS}/{refund_id}"),
        shop.post(f"{REFUNDS}/{refund_id}/cancel"),
    ):
        assert error_of(answer) == (404, "refund_not_found", None)


def test_anothers_refund_is_not_there(counter: RefundShop, other_shop: Shop) -> None:
    refund = counter.refund(counter.paid())
    assert error_of(other_shop.get(f"{REFUNDS}/{refund['refund_id']}"))[1] == "refund_not_found"
    assert error_of(other_shop.post(f"{REFUNDS}/{refund['refund_id']}/cancel"))[1] == "refund_not_found"
    assert other_shop.get(f"{REFUNDS}?payment_id={refund['payment_id']}").json()["total"] == 0
    assert counter.read(refund) == refund
