"""Probe a URL with one signed `webhook.ping` before a webhook accepts it."""

import sys
from contextlib import ExitStack
from datetime import datetime

from django.conf import settings

from core.errors import ServiceUnavailable
from core.http import rate_limits
from core.http.rate_limits import RateLimit
from core.work.bulkhead import Bulkhead, BulkheadFull
from merchants.models import Merchant, Mode
from webhooks import events, sending
from webhooks.errors import InvalidUrl, TooManyProbes
from webhooks.http import client, event_loop, url_check
from webhooks.http.url_check import RejectionReason, UrlRejected
from webhooks.models import Endpoint
from webhooks.sending import url_policy

TIMEOUTS = client.Timeouts(connect=2.0, total=5.0)
# Two of the four threads of a web process stay free if endpoints answer slowly.
MAX_CONCURRENT_PROBES = 2
WAIT_SECONDS = 0.5
# Enough for registering webhooks, and too slow for a port scan.
RATE_PER_MERCHANT = RateLimit(per_second=0.5, burst=10)
# Why a URL is refused, by errors of `webhooks.http.client`.
REASONS = {
    "dns": RejectionReason.DNS.label,
    "connect_refused": "the connection was refused",
    "connect_timeout": f"the connection timed out after {TIMEOUTS.connect:g} s",
    "tls_cert": "the TLS certificate is not valid for this host",
    "tls_handshake": "the TLS handshake failed",
    "timeout": f"the endpoint did not answer within {TIMEOUTS.total:g} s",
    "reset": "the connection was closed before an answer",
    "protocol": "the answer is not HTTP",
}
_slots, _merchants = Bulkhead(), Bulkhead()


def probe(endpoint: Endpoint, *, now: datetime) -> int | None:
    """Probe the URL of an endpoint. Return the HTTP status, or None if WEBHOOK_PROBE is off.

    Raises InvalidUrl for a forbidden or unreachable URL, RateLimitExceeded for too many probes of its
    merchant and ServiceUnavailable for too many probes of all merchants. A URL that is refused by itself
    asks the network nothing, and counts towards no limit.
    """
    merchant = _merchant(endpoint)
    policy, limit = url_policy(merchant.mode), MAX_CONCURRENT_PROBES
    try:
        target = url_check.parse_target(endpoint.url, policy)
        with ExitStack() as held:
            try:
                held.enter_context(_merchants.hold(merchant.id, total=sys.maxsize, share=1))
            except BulkheadFull:
                raise TooManyProbes(retry_after=1) from None
            if settings.RATE_LIMIT:
                rate_limits.check(f"probes:{merchant.id}", RATE_PER_MERCHANT, TooManyProbes)
            try:
                held.enter_context(_slots.hold("", total=limit, share=limit, wait_seconds=WAIT_SECONDS))
            except BulkheadFull:
                raise ServiceUnavailable(retry_after=round(TIMEOUTS.total)) from None
            return _probe(endpoint, target, policy, now)
    except UrlRejected as rejection:
        detail = rejection.reason.label.format(ports=", ".join(map(str, sorted(policy.ports))))
        raise _refused(endpoint, detail, by_network=rejection.reason in url_check.NETWORK_REASONS) from None


def _probe(
    endpoint: Endpoint, target: url_check.Target, policy: url_check.UrlPolicy, now: datetime
) -> int | None:
    """Raises UrlRejected and InvalidUrl."""
    if settings.WEBHOOK_PROBE == "off":
        try:
            event_loop.run(url_check.resolve(target, policy, merchant_id=_merchant(endpoint).id))
        except UrlRejected as rejection:
            # A name without an address passes, because each delivery checks again.
            if rejection.reason is not RejectionReason.DNS:
                raise
        return None
    ping = events.build_ping(endpoint, now)
    work = sending.send(
        endpoint,
        message_id=ping.id,
        body=ping.body,
        merchant_mode=_merchant(endpoint).mode,
        now=now,
        timeouts=TIMEOUTS,
    )
    result = event_loop.run(work)
    if result.status is None or (settings.WEBHOOK_PROBE == "2xx" and result.error):
        if result.error == "blocked":
            raise UrlRejected(target.needs_allowed_network(policy) or RejectionReason.ADDRESS)
        answered = f"the endpoint answered {result.status}"
        detail = answered if result.status else REASONS[result.error]
        raise _refused(endpoint, detail, by_network=True)
    return result.status


def _refused(endpoint: Endpoint, detail: str, *, by_network: bool) -> InvalidUrl:
    """by_network: a look-up or a connection tells it. Then only a test merchant reads it."""
    is_told = not by_network or _merchant(endpoint).mode == Mode.TEST
    return InvalidUrl(param="url", detail=detail if is_told else None)


def _merchant(endpoint: Endpoint) -> Merchant:
    """Each webhook has one."""
    assert endpoint.merchant is not None
    return endpoint.merchant
