"""Probe a URL with one signed `webhook.ping` before a webhook accepts it."""

import sys
from contextlib import ExitStack
from datetime import datetime

from django.conf import settings

from core import rate_limits
from core.bulkhead import Bulkhead, BulkheadFull
from core.errors import ServiceUnavailable
from core.rate_limits import RateLimit
from merchants.models import Mode
from webhooks import events, sending
from webhooks.errors import InvalidUrl, TooManyProbes
from webhooks.http import client, event_loop, url_check
from webhooks.models import Endpoint
from webhooks.sending import url_policy

TIMEOUTS = client.Timeouts(connect=2.0, total=5.0)
# Two of the four threads of a web process stay free if endpoints answer slowly.
MAX_CONCURRENT_PROBES = 2
WAIT_SECONDS = 0.5
# Enough for registering webhooks, and too slow for a port scan.
RATE_PER_MERCHANT = RateLimit(per_second=0.5, burst=10)
BLOCKED = "blocked"
# Why a URL is refused: by errors of `webhooks.http.client`, and by the check of the URL.
REASONS = {
    "dns": "the host name has no address in DNS",
    "connect_refused": "the connection was refused",
    "connect_timeout": f"the connection timed out after {TIMEOUTS.connect:g} s",
    "tls_cert": "the TLS certificate is not valid for this host",
    "tls_handshake": "the TLS handshake failed",
    "timeout": f"the endpoint did not answer within {TIMEOUTS.total:g} s",
    "reset": "the connection was closed before an answer",
    "protocol": "the answer is not HTTP",
}
REJECTIONS = {
    url_check.RejectionReason.MALFORMED: "the URL is malformed or has a fragment",
    url_check.RejectionReason.SCHEME: "the scheme is not https",
    url_check.RejectionReason.CREDENTIALS: "the URL has credentials",
    url_check.RejectionReason.AT_SIGN: "the query has an @ and follows the host: write a / before the ?",
    url_check.RejectionReason.HOST_CHARACTER: "the host name has another character than letters, digits, "
    "hyphens and dots",
    url_check.RejectionReason.HOST: "the host is not a public name or address",
    url_check.RejectionReason.PORT: "the port is not one of those that are allowed: {ports}",
    url_check.RejectionReason.ADDRESS: "the address is not public",
    url_check.RejectionReason.DNS: "the host name has no address in DNS",
}
_slots, _merchants = Bulkhead(), Bulkhead()


def probe(endpoint: Endpoint, *, now: datetime) -> int | None:
    """Probe the URL of an endpoint. Return the HTTP status, or None if WEBHOOK_PROBE is off.

    Raises InvalidUrl for a forbidden or unreachable URL, RateLimitExceeded for too many probes of its
    merchant and ServiceUnavailable for too many probes of all merchants. A URL that is refused by itself
    asks the network nothing, and counts towards no limit.
    """
    policy, limit = url_policy(endpoint.merchant.mode), MAX_CONCURRENT_PROBES
    try:
        target = url_check.parse_target(endpoint.url, policy)
    except url_check.UrlRejected as rejection:
        raise _rejected(endpoint, rejection.reason) from None
    with ExitStack() as held:
        try:
            held.enter_context(_merchants.hold(endpoint.merchant_id, total=sys.maxsize, share=1))
        except BulkheadFull:
            raise TooManyProbes(retry_after=1) from None
        if settings.RATE_LIMIT:
            decision = rate_limits.consume(f"probes:{endpoint.merchant_id}", RATE_PER_MERCHANT)
            if decision is not None and not decision.allowed:
                raise TooManyProbes(retry_after=decision.retry_after)
        try:
            held.enter_context(_slots.hold("", total=limit, share=limit, wait_seconds=WAIT_SECONDS))
        except BulkheadFull:
            raise ServiceUnavailable(retry_after=round(TIMEOUTS.total)) from None
        return _probe(endpoint, target, policy, now)


def _probe(
    endpoint: Endpoint, target: url_check.Target, policy: url_check.UrlPolicy, now: datetime
) -> int | None:
    if settings.WEBHOOK_PROBE == "off":
        try:
            url_check.resolve(target, policy, merchant_id=endpoint.merchant_id)
        except url_check.UrlRejected as rejection:
            # A name without an address passes, because each delivery checks again.
            if rejection.reason is not url_check.RejectionReason.DNS:
                raise _rejected(endpoint, rejection.reason) from None
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
        if result.error == BLOCKED:
            blocked = target.needs_allowed_network(policy) or url_check.RejectionReason.ADDRESS
            raise _rejected(endpoint, blocked)
        answered = f"the endpoint answered {result.status}"
        raise _unreachable(endpoint, answered if result.status else REASONS[result.error])
    return result.status


def _rejected(endpoint: Endpoint, reason: url_check.RejectionReason) -> InvalidUrl:
    ports = sorted(url_policy(endpoint.merchant.mode).ports)
    detail = REJECTIONS[reason].format(ports=", ".join(map(str, ports)))
    if reason in url_check.NETWORK_REASONS:
        return _unreachable(endpoint, detail)
    return InvalidUrl(param="url", detail=detail)


def _unreachable(endpoint: Endpoint, detail: str) -> InvalidUrl:
    """The error for what a look-up or a connection tells. Only a test merchant reads it."""
    return InvalidUrl(param="url", detail=detail if endpoint.merchant.mode == Mode.TEST else None)
