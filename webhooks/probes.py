"""Is anybody there? One signed `webhook.ping`, before a URL is accepted."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.conf import settings

from core import ids, rates
from core.errors import ServiceUnavailable
from core.rates import Rate
from merchants.errors import RateLimitExceeded
from webhooks import client, posting, shapes, targets
from webhooks.errors import InvalidUrl
from webhooks.event_types import PING
from webhooks.models import Endpoint
from webhooks.policy import policy_for

TIMEOUTS = client.Timeouts(connect=2.0, total=5.0)
# Of the four threads of a web process two stay free, however slowly endpoints answer.
AT_ONCE = 2
PATIENCE_SECONDS = 0.5
# Per merchant. More than anybody needs, and far too slow to look for open ports.
RATE = Rate(per_second=0.5, burst=10)
_places = threading.BoundedSemaphore(AT_ONCE)
_merchants: set[str] = set()
_lock = threading.Lock()


def probe(endpoint: Endpoint, *, now: datetime) -> int | None:
    """The HTTP status with which the endpoint answers, None where WEBHOOK_PROBE is off.

    Raises InvalidUrl when it may not or cannot be reached, RateLimitExceeded when its merchant asks for too
    many, ServiceUnavailable when all merchants together do.
    """
    with _one_of(endpoint.merchant_id):
        _count(endpoint.merchant_id)
        with _place():
            return _probe(endpoint, now)


def _probe(endpoint: Endpoint, now: datetime) -> int | None:
    if settings.WEBHOOK_PROBE == "off":
        _judge(endpoint)
        return None
    answer = _ping(endpoint, now)
    if answer.status is None or (settings.WEBHOOK_PROBE == "2xx" and answer.error):
        raise InvalidUrl(param="url")
    return answer.status


def _ping(endpoint: Endpoint, now: datetime) -> client.Answer:
    event_id = ids.new("evt_", now)
    body = shapes.message(type=PING, event_id=event_id, data={"webhook_id": endpoint.id}, at=now)
    return posting.post(
        endpoint,
        message_id=event_id,
        body=body,
        merchant_mode=endpoint.merchant.mode,
        now=now,
        timeouts=TIMEOUTS,
    )


def _judge(endpoint: Endpoint) -> None:
    """Without a probe a name that cannot be looked up passes: every delivery judges again."""
    policy = policy_for(endpoint.merchant.mode)
    try:
        target = targets.parse_target(endpoint.url, policy)
        targets.resolve(target, policy, merchant_id=endpoint.merchant_id)
    except targets.BadTarget as refusal:
        if refusal.reason is not targets.Reason.DNS:
            raise InvalidUrl(param="url") from None


@contextmanager
def _one_of(merchant_id: str) -> Iterator[None]:
    """The one place that a merchant has: it cannot keep the others from theirs. Nobody waits for it."""
    with _lock:
        if merchant_id in _merchants:
            raise _too_many(retry_after=1)
        _merchants.add(merchant_id)
    try:
        yield
    finally:
        with _lock:
            _merchants.remove(merchant_id)


def _count(merchant_id: str) -> None:
    if settings.RATE_LIMIT == 0:
        return
    room = rates.take(f"probes:{merchant_id}", RATE)
    if room is not None and not room.allowed:
        raise _too_many(room.retry_after)


def _too_many(retry_after: int) -> RateLimitExceeded:
    message = f"Too many webhook URLs were given to try. Try again in {retry_after} s."
    return RateLimitExceeded(message, retry_after=retry_after)


@contextmanager
def _place() -> Iterator[None]:
    if not _places.acquire(timeout=PATIENCE_SECONDS):
        raise ServiceUnavailable(retry_after=round(TIMEOUTS.total))
    try:
        yield
    finally:
        _places.release()
