"""The list of withdrawals."""

from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine

from tests.conftest import Shop
from tests.withdrawals.builders import PATH, withdrawn

pytestmark = pytest.mark.django_db


@pytest.fixture
def three(shop: Shop, noon: datetime) -> list[str]:
    """Of three days, the oldest first; the second is canceled, the third has a reference."""
    made = []
    for day, fields in enumerate([{}, {}, {"reference": "PAYOUT-3"}]):
        with time_machine.travel(noon + timedelta(days=day), tick=False):
            made.append(str(withdrawn(shop, amount=100, **fields)["withdrawal_id"]))
    assert shop.post(f"{PATH}/{made[1]}/cancel").status_code == 200
    return made


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [2, 1, 0]),
        ("?limit=1", [2]),
        ("?limit=1&offset=1", [1]),
        ("?offset=3", []),
        ("?status=pending", [2, 0]),
        ("?status=canceled", [1]),
        ("?status=succeeded", []),
        ("?reference=PAYOUT-3", [2]),
        ("?reference=PAYOUT", []),
        ("?start_date=2026-11-22", [2, 1]),
        ("?end_date=2026-11-22", [1, 0]),
        ("?start_date=2026-11-22&end_date=2026-11-22", [1]),
        ("?start_date=2026-11-22T05:00:00.001Z", [2]),
        ("?status=pending&end_date=2026-11-22", [0]),
    ],
)
def test_withdrawals_are_filtered_and_paged(
    shop: Shop, three: list[str], query: str, found: list[int]
) -> None:
    answer: dict[str, Any] = shop.get(PATH + query).json()
    assert [each["withdrawal_id"] for each in answer["withdrawals"]] == [three[number] for number in found]
    assert answer["total"] == (len(found) if "limit" not in query and "offset" not in query else 3)


@pytest.mark.parametrize(
    "query",
    [
        "status=done",
        "status=",
        "status=PENDING",
        "reference=",
        "reference=" + "x" * 36,
        "start_date=yesterday",
        "start_date=2026-11-22&end_date=2026-11-21",
        "limit=0",
        "offset=-1",
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(shop: Shop, query: str) -> None:
    answer = shop.get(f"{PATH}?{query}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_parameters")
    assert answer.json()["error"]["param"] == query.partition("=")[0]


@pytest.mark.parametrize(
    "given", ["wd_x", "pay_000000000000000000000000000", "wd_000000000000000000000000000"]
)
def test_unknown_withdrawal_is_not_found(shop: Shop, given: str) -> None:
    for answer in (shop.get(f"{PATH}/{given}"), shop.post(f"{PATH}/{given}/cancel")):
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "withdrawal_not_found")
