"""Is anybody there? One signed `webhook.ping`, before a URL is accepted."""

import sys
from datetime import datetime

from django.conf import settings

from core import ids, rate_limits
from core.bulkhead import Bulkhead, BulkheadFull
from core.errors import ServiceUnavailable
from core.rate_limits import RateLimit
from merchants.errors import RateLimitExceeded
from webhooks import sending, shapes
from webhooks.errors import InvalidUrl
from webhooks.http import client, url_check
from webhooks.models import PING, Endpoint
from webhooks.sending import url_policy

TIMEOUTS = client.Timeouts(connect=2.0, total=5.0)
# Of the four threads of a web process two stay free, however slowly endpoints answer.
MAX_CONCURRENT_PROBES = 2
WAIT_SECONDS = 0.5
# Per merchant. More than anybody needs, and far too slow to look for open ports.
RATE_PER_MERCHANT = RateLimit(per_second=0.5, burst=10)
_slots, _merchants = Bulkhead(), Bulkhead()


def probe(endpoint: Endpoint, *, now: datetime) -> int | None:
    """The HTTP status with which the endpoint answers, None where WEBHOOK_PROBE is off.

    Raises InvalidUrl when it may not or cannot be reached, RateLimitExceeded when its merchant asks for too
    many, ServiceUnavailable when all merchants together do.
    """
    try:
        with _merchants.hold(endpoint.merchant_id, total=sys.maxsize, share=1):
            _check_rate(endpoint.merchant_id)
            return _probe_in_free_slot(endpoint, now)
    except BulkheadFull:
        raise _too_many(retry_after=1) from None


def _probe_in_free_slot(endpoint: Endpoint, now: datetime) -> int | None:
    limit = MAX_CONCURRENT_PROBES
    try:
        with _slots.hold("", total=limit, share=limit, wait_seconds=WAIT_SECONDS):
            return _probe(endpoint, now)
    except BulkheadFull:
        raise ServiceUnavailable(retry_after=round(TIMEOUTS.total)) from None


def _probe(endpoint: Endpoint, now: datetime) -> int | None:
    if settings.WEBHOOK_PROBE == "off":
        _check_url(endpoint)
        return None
    answer = _ping(endpoint, now)
    if answer.status is None or (settings.WEBHOOK_PROBE == "2xx" and answer.error):
        raise InvalidUrl(param="url")
    return answer.status


def _ping(endpoint: Endpoint, now: datetime) -> client.PostResult:
    event_id = ids.new("evt_", now)
    body = shapes.event_body(type=PING, event_id=event_id, data={"webhook_id": endpoint.id}, at=now)
    return sending.send(
        endpoint,
        message_id=event_id,
        body=body,
        merchant_mode=endpoint.merchant.mode,
        now=now,
        timeouts=TIMEOUTS,
    )


def _check_url(endpoint: Endpoint) -> None:
    """Without a probe a name that cannot be looked up passes: every delivery judges again."""
    policy = url_policy(endpoint.merchant.mode)
    try:
        target = url_check.parse_target(endpoint.url, policy)
        url_check.resolve(target, policy, merchant_id=endpoint.merchant_id)
    except url_check.UrlRejected as refusal:
        if refusal.reason is not url_check.RejectionReason.DNS:
            raise InvalidUrl(param="url") from None


def _check_rate(merchant_id: str) -> None:
    if settings.RATE_LIMIT == 0:
        return
    room = rate_limits.consume(f"probes:{merchant_id}", RATE_PER_MERCHANT)
    if room is not None and not room.allowed:
        raise _too_many(room.retry_after)


def _too_many(retry_after: int) -> RateLimitExceeded:
    message = f"Too many webhook URLs were given to try. Try again in {retry_after} s."
    return RateLimitExceeded(message, retry_after=retry_after)
