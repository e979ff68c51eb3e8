"""Post a webhook to an address that somebody else chose, and come back in time whatever waits there."""

import atexit
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from threading import local

import certifi
import requests

from core.deadlines import Deadline
from webhooks.http import url_check
from webhooks.http.connections import Route
from webhooks.http.dns import Resolver
from webhooks.http.public_networks import Address
from webhooks.http.transport import PostFailed, PostRequest, WebhookAdapter, WebhookSession
from webhooks.http.url_check import RejectionReason, UrlPolicy, UrlRejected

MAX_EXCERPT_BYTES = 4 * 1024
ERROR_BY_STATUS_CLASS = {2: "", 3: "http_3xx", 4: "http_4xx", 5: "http_5xx"}


@dataclass(frozen=True)
class Timeouts:
    """Seconds: `connect` for TCP and TLS, `total` from the look-up to the end of the answer."""

    connect: float = 3.0
    total: float = 15.0


DEFAULT_TIMEOUTS = Timeouts()
ADAPTER = WebhookAdapter()
atexit.register(ADAPTER.close)


@dataclass(frozen=True)
class PostResult:
    """What became of a post. `error` is empty exactly when a whole 2xx head arrived in time.

    Else it is one of dns, blocked, connect_refused, connect_timeout, tls_cert, tls_handshake, timeout,
    reset, protocol, http_3xx, http_4xx, http_5xx. `status` is there whenever a whole head arrived.
    """

    status: int | None
    error: str
    excerpt: str
    duration_ms: int
    peer: str | None
    retry_after: str | None


def post(
    url: str,
    *,
    body: bytes,
    headers: Mapping[str, str],
    policy: UrlPolicy,
    merchant_id: str = "",
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
    resolver: Resolver = socket.getaddrinfo,
    tls: ssl.SSLContext | None = None,
) -> PostResult:
    """Judge the URL, send the bytes once and tell what came back. Faults of URL and network never raise.

    Look-ups and kept connections count against the limits of `merchant_id`.
    """
    started = time.monotonic()
    try:
        route = _route(url, policy, timeouts, resolver, tls or tls_context(), merchant_id)
    except UrlRejected as refusal:
        return _result_of_failure("dns" if refusal.reason is RejectionReason.DNS else "blocked", started)
    request = PostRequest(route, body=body, headers=headers)
    try:
        response = _session().send(request, allow_redirects=False, proxies={})
    except PostFailed as failure:
        return _result_of_failure(failure.error, started, request.peer)
    return _result_of_response(response, started, request.peer)


@lru_cache(maxsize=8)
def tls_context(ca_file: str | None = None) -> ssl.SSLContext:
    """The process's TLS settings (loading a CA bundle takes 15 ms); `ca_file` instead of the public CAs.

    Built bare: `ssl.create_default_context` would write session keys to $SSLKEYLOGFILE.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cafile=ca_file or certifi.where())
    return context


def _route(
    url: str,
    policy: UrlPolicy,
    timeouts: Timeouts,
    resolver: Resolver,
    tls: ssl.SSLContext,
    merchant_id: str,
) -> Route:
    answer_by = Deadline.after(timeouts.total)
    target = url_check.parse_target(url, policy)
    lookup_time = min(url_check.LOOKUP_SECONDS, timeouts.total)
    addresses = url_check.resolve(target, policy, resolver, lookup_time, merchant_id=merchant_id)
    return Route(
        merchant_id=merchant_id,
        target=target,
        addresses=tuple(addresses),
        is_allowed=partial(url_check.is_allowed_for, target=target, policy=policy),
        tls=tls,
        connect_by=min(Deadline.after(timeouts.connect), answer_by),
        answer_by=answer_by,
    )


_thread_local = local()


def _session() -> WebhookSession:
    # A requests session is not made for several threads; the connections behind it are shared.
    if not hasattr(_thread_local, "session"):
        _thread_local.session = WebhookSession(ADAPTER)
    session: WebhookSession = _thread_local.session
    return session


def _result_of_response(response: requests.Response, started: float, peer: Address | None) -> PostResult:
    return PostResult(
        status=response.status_code,
        error=ERROR_BY_STATUS_CLASS.get(response.status_code // 100, "protocol"),
        excerpt=_excerpt(response.content),
        duration_ms=_elapsed_ms(started),
        peer=str(peer),
        retry_after=response.headers.get("Retry-After"),
    )


def _result_of_failure(error: str, started: float, peer: Address | None = None) -> PostResult:
    return PostResult(
        status=None,
        error=error,
        excerpt="",
        duration_ms=_elapsed_ms(started),
        peer=str(peer) if peer else None,
        retry_after=None,
    )


def _excerpt(content: bytes) -> str:
    # PostgreSQL takes no U+0000 in text.
    return content[:MAX_EXCERPT_BYTES].decode(errors="replace").replace("\0", "")


def _elapsed_ms(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
