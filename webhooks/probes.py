"""Probe a URL with one signed `webhook.ping` before a webhook accepts it."""

import sys
from datetime import datetime

from django.conf import settings

from core import rate_limits
from core.bulkhead import Bulkhead, BulkheadFull
from core.errors import ServiceUnavailable
from core.rate_limits import RateLimit
from merchants.errors import RateLimitExceeded
from webhooks import events, sending
from webhooks.errors import InvalidUrl
from webhooks.http import client, event_loop, url_check
from webhooks.models import Endpoint
from webhooks.sending import url_policy

TIMEOUTS = client.Timeouts(connect=2.0, total=5.0)
# Two of the four threads of a web process stay free if endpoints answer slowly.
MAX_CONCURRENT_PROBES = 2
WAIT_SECONDS = 0.5
# Enough for registering webhooks, and too slow for a port scan.
RATE_PER_MERCHANT = RateLimit(per_second=0.5, burst=10)
_slots, _merchants = Bulkhead(), Bulkhead()


def probe(endpoint: Endpoint, *, now: datetime) -> int | None:
    """Probe the URL of an endpoint. Return the HTTP status, or None if WEBHOOK_PROBE is off.

    Raises InvalidUrl for a forbidden or unreachable URL, RateLimitExceeded for too many probes of its
    merchant and ServiceUnavailable for too many probes of all merchants.
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
    ping = events.build_ping(endpoint, now)
    work = sending.send(
        endpoint,
        message_id=ping.id,
        body=bytes(ping.body),
        merchant_mode=endpoint.merchant.mode,
        now=now,
        timeouts=TIMEOUTS,
    )
    result = event_loop.run(work)
    if result.status is None or (settings.WEBHOOK_PROBE == "2xx" and result.error):
        raise InvalidUrl(param="url")
    return result.status


def _check_url(endpoint: Endpoint) -> None:
    """Check the URL without a probe. A name without an address passes, because each delivery checks again."""
    policy = url_policy(endpoint.merchant.mode)
    try:
        target = url_check.parse_target(endpoint.url, policy)
        url_check.resolve(target, policy, merchant_id=endpoint.merchant_id)
    except url_check.UrlRejected as rejection:
        if rejection.reason is not url_check.RejectionReason.DNS:
            raise InvalidUrl(param="url") from None


def _check_rate(merchant_id: str) -> None:
    if settings.RATE_LIMIT == 0:
        return
    decision = rate_limits.consume(f"probes:{merchant_id}", RATE_PER_MERCHANT)
    if decision is not None and not decision.allowed:
        raise _too_many(decision.retry_after)


def _too_many(retry_after: int) -> RateLimitExceeded:
    message = f"Too many checks of webhook URLs. Try again in {retry_after} s."
    return RateLimitExceeded(message, retry_after=retry_after)
