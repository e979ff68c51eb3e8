"""Lists of the TypeScript client go over all pages, and fetch each only when it is needed."""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.clients import typescript_package as package
from tests.clients.typescript_package import Case, Outcome
from tests.webhook_receiver import Reply

pytestmark = pytest.mark.slow


def page(plural: str, rows: list[Any], **more: Any) -> Reply:
    return Reply(body=json.dumps({plural: rows, "limit": 2, **more}).encode())


def rows(field: str, *numbers: int) -> list[dict[str, int]]:
    return [{field: number} for number in numbers]


FULL = page("transactions", rows("transaction_id", 9, 8), total=1_000)
CASES = {
    "cursor": Case(
        "transactions.list",
        [{"status": "succeeded", "page_size": 2}],
        [
            page("transactions", rows("transaction_id", 5, 4)),
            page("transactions", rows("transaction_id", 3, 2)),
            page("transactions", rows("transaction_id", 1)),
        ],
    ),
    "search": Case(
        "payments.list",
        [{"amount": 100, "page_size": 2}],
        [
            page("payments", [], searched_to="pay_90"),
            page("payments", rows("payment_id", 8, 7), searched_to="pay_70"),
            page("payments", rows("payment_id", 6), searched_to="pay_60"),
            page("payments", []),
        ],
    ),
    "offset": Case(
        "payments.timeline",
        ["pay_1", {"page_size": 2}],
        [
            page("timeline", rows("at", 5, 4)),
            page("timeline", rows("at", 3, 2)),
            page("timeline", rows("at", 1)),
        ],
    ),
    "next-after": Case(
        "requests.list",
        [{"page_size": 2}],
        [page("requests", [], next_after="rlg_9"), page("requests", [], next_after=None)],
    ),
    "sequence": Case(
        "events.follow",
        [{"after_sequence": 7, "page_size": 2}],
        [page("events", rows("sequence", 8, 9)), page("events", [])],
    ),
    "untouched": Case("transactions.list", [], [FULL], take=0),
    "three": Case("transactions.list", [{"page_size": 2}], [FULL], take=3),
    "encoded": Case(
        "payments.list",
        [
            {
                "metadata": {"โต๊ะ": "4"},
                "start_date": "2026-11-21",
                "end_date": "Date:2026-11-22T01:02:03Z",
            }
        ],
        [page("payments", [])],
    ),
}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return package.carry_out(CASES)


def queries(outcome: Outcome) -> list[str]:
    return [urlsplit(request.path).query for request in outcome.requests]


def test_pages_follow_the_last_id(outcomes: dict[str, Outcome]) -> None:
    found = outcomes["cursor"]
    assert found.value == rows("transaction_id", 5, 4, 3, 2, 1)
    first = "limit=2&status=succeeded"
    assert queries(found) == [first, f"{first}&after=4", f"{first}&after=2"]


def test_search_goes_on_where_the_service_stopped_searching(outcomes: dict[str, Outcome]) -> None:
    found = outcomes["search"]
    assert found.value == rows("payment_id", 8, 7, 6)
    first = "limit=2&amount=100"
    assert queries(found) == [first, f"{first}&after=pay_90", f"{first}&after=7", f"{first}&after=pay_60"]


def test_list_without_cursor_goes_by_offset(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["offset"].value == rows("at", 5, 4, 3, 2, 1)
    assert queries(outcomes["offset"]) == ["limit=2", "limit=2&offset=2", "limit=2&offset=4"]


def test_request_log_says_itself_where_the_next_page_begins(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["next-after"].value == []
    assert queries(outcomes["next-after"]) == ["limit=2", "limit=2&after=rlg_9"]


def test_feed_of_events_follows_the_sequence(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["sequence"].value == rows("sequence", 8, 9)
    assert [parse_qs(query)["after_sequence"] for query in queries(outcomes["sequence"])] == [["7"], ["9"]]


def test_pages_are_fetched_when_they_are_needed(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["untouched"].requests == []
    assert len(outcomes["three"].value) == 3
    assert len(outcomes["three"].requests) == 2


def test_times_and_metadata_of_a_query_are_encoded(outcomes: dict[str, Outcome]) -> None:
    assert parse_qs(queries(outcomes["encoded"])[0]) == {
        "limit": ["100"],
        "metadata[โต๊ะ]": ["4"],
        "start_date": ["2026-11-21"],
        "end_date": ["2026-11-22T01:02:03.000Z"],
    }
