"""Lists are read from a row on, with `after` and `before`."""

from random import Random

import pytest

from core import clock
from counts import counting
from tests.conftest import Shop
from tests.counts import builders
from tests.counts.builders import ListBuilder

pytestmark = pytest.mark.django_db
UNKNOWN = "pay_000000000000000000000000000"


def ids_of(listed: ListBuilder, shop: Shop) -> list[str]:
    return [row.pk for row in listed.rows(shop.merchant, {})]


def walk(listed: ListBuilder, shop: Shop, query: str) -> list[str]:
    """All ids from the newest on, by `after`."""
    found, _ = listed.page(shop, query)
    while ids := listed.page(shop, f"{query}&after={found[-1]}")[0]:
        found += ids
    return found


@pytest.mark.parametrize("limit", [1, 7])
@pytest.mark.slow
def test_after_and_before_list_every_row_once(listed: ListBuilder, shop: Shop, limit: int) -> None:
    listed.write(shop.merchant, Random(limit), 25)
    everything = ids_of(listed, shop)
    assert walk(listed, shop, f"limit={limit}") == everything
    newer, oldest = [everything[-1]], everything[-1]
    while ids := listed.page(shop, f"limit={limit}&before={newer[0]}")[0]:
        newer = ids + newer
    assert newer == everything
    assert listed.page(shop, f"limit={limit}&after={oldest}")[0] == []


@pytest.mark.slow
def test_page_next_to_a_row_has_total_and_no_offset(listed: ListBuilder, shop: Shop) -> None:
    listed.write(shop.merchant, Random(3), 9)
    everything = ids_of(listed, shop)
    for cursor, expected in (("after", everything[5:8]), ("before", everything[1:4])):
        ids, page = listed.page(shop, f"limit=3&{cursor}={everything[4]}")
        assert (ids, page["total"], page["limit"], "offset" in page) == (expected, 9, 3, False)


@pytest.mark.slow
def test_pages_by_cursor_are_stable_while_rows_arrive(
    listed: ListBuilder, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed.write(shop.merchant, Random(1), 20)
    everything = ids_of(listed, shop)
    monkeypatch.setattr(builders, "moment", lambda chance: clock.now())
    found, _ = listed.page(shop, "limit=3")
    while True:
        listed.write(shop.merchant, Random(2), 2)
        counting.roll_up()
        ids, page = listed.page(shop, f"limit=3&after={found[-1]}")
        assert page["total"] == len(ids_of(listed, shop))
        if not ids:
            break
        found += ids
    assert found == everything


@pytest.mark.slow
def test_cursor_lists_rows_of_its_filter_and_period(listed: ListBuilder, shop: Shop) -> None:
    listed.write(shop.merchant, Random(4), 40)
    dates = "start_date=2025-12-31&end_date=2026-11-20"
    found = walk(listed, shop, f"limit=2&{dates}")
    page, total = listed.page(shop, f"limit=100&{dates}")
    assert found == page
    assert len(found) == total["total"]
    first, last = listed.page(shop, "limit=1")[0][0], ids_of(listed, shop)[-1]
    assert listed.page(shop, f"limit=100&{dates}&after={first}")[0] == found
    assert listed.page(shop, f"limit=100&{dates}&before={last}")[0] == found


def test_cursor_row_may_leave_the_filter_between_two_pages(shop: Shop) -> None:
    first, second = (shop.qr_code() for _ in range(2))
    shop.post(f"/Thai/v1/qr-codes/{second['qr_code_id']}/expire")
    path = f"/Thai/v1/payments?status=pending&after={second['payment_id']}"
    found = shop.get(path).json()
    assert [row["payment_id"] for row in found["payments"]] == [first["payment_id"]]


@pytest.mark.parametrize("filtered", ["", "&status=pending", "&reference=A-1", "&qr_code_id=x"])
@pytest.mark.parametrize("cursor", ["after", "before"])
def test_id_that_is_not_in_the_list_is_refused(
    shop: Shop, other_shop: Shop, cursor: str, filtered: str
) -> None:
    code = other_shop.qr_code(reference="A-1")
    for unknown in (code["payment_id"], UNKNOWN, "x"):
        response = shop.get(f"/Thai/v1/payments?{cursor}={unknown}{filtered}")
        error = response.json()["error"]
        assert (response.status_code, error["code"], error["param"]) == (400, "invalid_parameters", cursor)
        assert error["message"].startswith(f"{cursor} must be an id of this list. ")


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("after={id}&offset=0", "offset"),
        ("before={id}&offset=3", "offset"),
        ("after={id}&before={id}", "before"),
        ("after=", "after"),
        ("after={id}&after={id}", "after"),
    ],
)
def test_cursor_beside_an_offset_or_another_cursor_is_refused(shop: Shop, query: str, param: str) -> None:
    payment_id = shop.qr_code()["payment_id"]
    response = shop.get(f"/Thai/v1/payments?{query.format(id=payment_id)}")
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == (400, "invalid_parameters", param)
    assert param in error["message"]


def test_payments_of_a_reference_are_read_from_a_row_on(shop: Shop) -> None:
    made = [shop.qr_code(reference="A-1")["payment_id"] for _ in range(3)]
    newest_first = [row["payment_id"] for row in shop.get("/v1/payments").json()["payments"]]
    assert set(made) == set(newest_first)
    for cursor, expected in (("after", newest_first[2:]), ("before", newest_first[:1])):
        found = shop.get(f"/Thai/v1/payments?reference=A-1&{cursor}={newest_first[1]}").json()
        assert ([row["payment_id"] for row in found["payments"]], found["total"]) == (expected, 3)
