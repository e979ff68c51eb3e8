"""Lists of the Python client go over all pages, and fetch each only when it is needed."""

import asyncio
import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest

from tests import webhook_receiver
from tests.clients import openapi
from tests.clients.running import async_client, blocking_client
from tests.webhook_receiver import Receiver, Reply

Read = Callable[[Receiver, Callable[[Any], Any]], list[Any]]


@pytest.fixture
def service() -> Iterator[Receiver]:
    with webhook_receiver.running_receiver() as running:
        yield running


def blocking(service: Receiver, read: Callable[[Any], Any]) -> list[Any]:
    with blocking_client(service.base_url) as client:
        return list(read(client))


def awaiting(service: Receiver, read: Callable[[Any], Any]) -> list[Any]:
    async def run() -> list[Any]:
        async with async_client(service.base_url) as client:
            return [item async for item in read(client)]

    return asyncio.run(run())


both_clients = pytest.mark.parametrize("read", [blocking, awaiting])


def page(plural: str, rows: list[Any], **more: Any) -> Reply:
    return Reply(body=json.dumps({plural: rows, "limit": 2, **more}).encode())


def transaction(number: int) -> dict[str, Any]:
    return {
        "transaction_id": f"txn_{number}",
        "payment_id": "pay_1",
        "type": "payment",
        "status": "succeeded",
        "amount": 100,
        "amount_display": "1.00 THB",
        "currency": "THB",
        "created_at": "2026-11-21T03:04:05.123Z",
    }


def payment(number: int) -> dict[str, Any]:
    schema = openapi.DOCUMENT["paths"]["/v1/payments/{payment_id}"]["get"]["responses"]["200"]
    return {**schema["content"]["application/json"]["example"], "payment_id": f"pay_{number}"}


@both_clients
def test_pages_follow_the_last_id(service: Receiver, read: Read) -> None:
    first = "/v1/transactions?limit=2&status=succeeded"
    service.on(first, page("transactions", [transaction(5), transaction(4)]))
    service.on(f"{first}&after=txn_4", page("transactions", [transaction(3), transaction(2)]))
    service.on(f"{first}&after=txn_2", page("transactions", [transaction(1)]))
    found = read(service, lambda client: client.transactions.list(status="succeeded", page_size=2))
    assert [each.transaction_id for each in found] == ["txn_5", "txn_4", "txn_3", "txn_2", "txn_1"]
    assert len(service.requests) == 3


@both_clients
def test_search_goes_on_where_the_service_stopped_searching(service: Receiver, read: Read) -> None:
    first = "/v1/payments?limit=2&amount=100"
    service.on(first, page("payments", [], searched_to="pay_90"))
    service.on(f"{first}&after=pay_90", page("payments", [payment(8), payment(7)], searched_to="pay_70"))
    service.on(f"{first}&after=pay_7", page("payments", [payment(6)], searched_to="pay_60"))
    service.on(f"{first}&after=pay_60", page("payments", []))
    found = read(service, lambda client: client.payments.list(amount=100, page_size=2))
    assert [each.payment_id for each in found] == ["pay_8", "pay_7", "pay_6"]


@both_clients
def test_list_without_cursor_goes_by_offset(service: Receiver, read: Read) -> None:
    entry = {"at": "2026-11-21T03:04:05.123Z", "type": "bank.notification", "summary": "", "details": {}}
    first = "/v1/payments/pay_1/timeline?limit=2"
    service.on(first, page("timeline", [entry, entry], total=3, offset=0))
    service.on(f"{first}&offset=2", page("timeline", [entry], total=3, offset=2))
    assert len(read(service, lambda client: client.payments.timeline("pay_1", page_size=2))) == 3
    assert len(service.requests) == 2


@both_clients
def test_request_log_says_itself_where_the_next_page_begins(service: Receiver, read: Read) -> None:
    first = "/v1/requests?limit=2&status=5xx"
    service.on(first, page("requests", [], next_after="req_9"))
    service.on(f"{first}&after=req_9", page("requests", [], next_after=None))
    assert read(service, lambda client: client.requests.list(status="5xx", page_size=2)) == []
    assert len(service.requests) == 2


@both_clients
def test_feed_of_events_follows_the_sequence(service: Receiver, read: Read) -> None:
    def event(number: int) -> dict[str, Any]:
        at = "2026-11-21T03:04:05.123Z"
        return {"event": "a.b", "event_id": "evt_1", "timestamp": at, "data": {}, "sequence": number}

    service.on("/v1/events?limit=2&after_sequence=7", page("events", [event(8), event(9)]))
    service.on("/v1/events?limit=2&after_sequence=9", page("events", []))
    found = read(service, lambda client: client.events.follow(after_sequence=7, page_size=2))
    assert [each.sequence for each in found] == [8, 9]


def test_pages_are_fetched_when_they_are_needed(service: Receiver) -> None:
    service.default = page("transactions", [transaction(2), transaction(1)], total=1_000)
    with blocking_client(service.base_url) as client:
        listed = client.transactions.list(page_size=2)
        assert not service.requests
        assert len(list(islice(listed, 3))) == 3
        assert len(service.requests) == 2
        assert listed.first_page().total == 1_000


def test_times_and_metadata_of_a_query_are_encoded(service: Receiver) -> None:
    from datetime import UTC, date, datetime
    from urllib.parse import parse_qs, urlsplit

    service.default = page("payments", [])
    with blocking_client(service.base_url) as client:
        start, end = date(2026, 11, 21), datetime(2026, 11, 22, 1, 2, 3, tzinfo=UTC)
        assert not list(client.payments.list(metadata={"โต๊ะ": "4"}, start_date=start, end_date=end))
        with pytest.raises(ValueError, match="offset"):
            client.payments.list(start_date=datetime(2026, 11, 22))
    assert parse_qs(urlsplit(service.requests[0].path).query) == {
        "limit": ["100"],
        "metadata[โต๊ะ]": ["4"],
        "start_date": ["2026-11-21"],
        "end_date": ["2026-11-22T01:02:03+00:00"],
    }
