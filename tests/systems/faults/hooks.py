"""A webhook with both sides: its state in the API, and the requests that arrived."""

from collections import Counter
from collections.abc import Set
from dataclasses import dataclass
from typing import Any, Self

import requests

from tests.flows.conftest import SECRET, ShopClient
from tests.stack import wait_for_progress
from tests.webhook_receiver import Receiver

PAGE = 100


@dataclass(frozen=True)
class Hook:
    """A webhook for `payment.pending`. ping: the id of the probe at its registration."""

    client: ShopClient
    receiver: Receiver
    path: str
    id: str
    ping: str

    @classmethod
    def register(cls, client: ShopClient, receiver: Receiver, path: str) -> Self:
        wanted = {"url": receiver.url(path), "events": ["payment.pending"], "secret": SECRET}
        made = client.post("/v1/webhooks", wanted)
        (ping,) = receiver.to(path)
        return cls(client, receiver, path, made["webhook_id"], ping.headers["webhook-id"])

    def delivered(self) -> Counter[str]:
        """How often each event arrived, by event id."""
        ids = Counter(request.headers["webhook-id"] for request in self.receiver.to(self.path))
        del ids[self.ping]
        return ids

    def wait_for(self, event_ids: Set[str], seconds: float) -> None:
        """Return when each of them has arrived. Raises TimeoutError if none arrives for so long."""
        wait_for_progress(lambda: len(event_ids & self.delivered().keys()), len(event_ids), seconds)

    def wait_for_none_waiting(self, seconds: float = 60) -> None:
        """Return when no delivery is waiting or under way. Raises TimeoutError if none ends for so long."""
        wait_for_progress(lambda: -self.count("pending"), 0, seconds)

    def wait_for_success(self, deliveries: int, seconds: float = 60) -> None:
        """Return when so many deliveries have succeeded. Raises TimeoutError if none succeeds for so long."""
        wait_for_progress(lambda: self.count("succeeded"), deliveries, seconds)
        assert self.count("succeeded") == deliveries

    def count(self, state: str) -> int:
        """The number of its deliveries in a state."""
        return int(self.client.get(f"/v1/webhooks/{self.id}/deliveries?state={state}&limit=1")["total"])

    def deliveries(self) -> list[dict[str, Any]]:
        return everything(self.client, f"/v1/webhooks/{self.id}/deliveries", "deliveries")

    def delivery_of(self, event_id: str) -> dict[str, Any]:
        (found,) = [each for each in self.deliveries() if each["event_id"] == event_id]
        return found

    def replay(self, since: str) -> int:
        """Replay its missed events; return their number."""
        return int(self.client.post(f"/v1/webhooks/{self.id}/replay", {"since": since})["replayed"])

    @property
    def status(self) -> str:
        return str(self.client.get(f"/v1/webhooks/{self.id}")["status"])

    def set_status(self, status: str) -> None:
        """Make it `active` or `disabled`."""
        response = requests.patch(
            f"{self.client.base_url}/v1/webhooks/{self.id}",
            json={"status": status},
            headers={"Authorization": f"Bearer {self.client.secret_key}"},
            timeout=60,
        )
        assert response.json()["status"] == status, response.text


def everything(client: ShopClient, path: str, plural: str) -> list[dict[str, Any]]:
    """All rows of a list, the newest first."""
    rows: list[dict[str, Any]] = []
    while True:
        page = client.get(f"{path}?limit={PAGE}&offset={len(rows)}")
        rows += page[plural]
        if len(rows) >= page["total"]:
            return rows


def events_by_payment(client: ShopClient) -> dict[str, str]:
    """The event id of each payment. Asserts that each has one event: nothing is paid or expires here."""
    events = everything(client, "/v1/events", "events")
    ids = {event["data"]["payment_id"]: event["event_id"] for event in events}
    assert len(ids) == len(events)
    return ids
