"""Records the statements of the hot path: create a code, poll, a bank's notification, a webhook."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from core import clock
from tests.test_hot_path import Caller
from webhooks import endpoints, signing
from webhooks.delivery import attempt_log, dispatcher, queue
from webhooks.delivery.queue import ClaimLimits
from webhooks.http import event_loop
from webhooks.models import EventType

LIMITS = ClaimLimits(posts=8, slow=4, extra=2, per_merchant=8, slow_per_merchant=2)
CREATE, POLL, NOTIFICATION, WEBHOOK = "create", "poll", "notification", "webhook"


def record(caller: Caller, url: str) -> dict[str, list[str]]:
    """The SQL of each part of the life of a payment, for a shop with a webhook at the URL."""
    now, merchant = clock.now(), caller.shop.merchant
    endpoints.store(
        endpoints.prepare(
            merchant=merchant,
            url=url,
            events=[str(EventType.PAYMENT_SUCCEEDED)],
            now=now,
            secret=signing.new_secret(),
        )
    )
    found: dict[str, list[str]] = {}
    with recorded() as found[CREATE]:
        code = caller.create()
    with recorded() as found[NOTIFICATION]:
        caller.notify(code)
    with recorded() as found[WEBHOOK]:
        assert deliver() == 1
    with recorded() as found[POLL]:
        assert caller.poll(code["payment_id"])["status"] == "succeeded"
    return found


def deliver() -> int:
    """As a worker: claim, post, record. Returns the number of messages."""
    leases, _ = queue.claim_in_window("", clock.now(), LIMITS)
    attempt_log.record([event_loop.run(dispatcher.post_delivery(lease, clock.now)) for lease in leases])
    return len(leases)


@contextmanager
def recorded() -> Iterator[list[str]]:
    seen: list[str] = []

    def note(execute: Callable[..., Any], sql: str, *more: Any) -> Any:
        seen.append(sql)
        return execute(sql, *more)

    with connection.execute_wrapper(note):
        yield seen
