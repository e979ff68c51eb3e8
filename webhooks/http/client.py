"""Post a webhook to a URL that a merchant chose: only to public addresses, in bounded time and size."""

import asyncio
import socket
import ssl
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial

from core.deadlines import Deadline
from core.tls import ca_file
from webhooks.http import url_check
from webhooks.http.connection_pool import ConnectionPool
from webhooks.http.connections import Connection, PeerNotAllowed, Route
from webhooks.http.dns import MAX_LOOKUPS, Resolver
from webhooks.http.public_networks import Address
from webhooks.http.response_reader import ProtocolError, Response
from webhooks.http.url_check import RejectionReason, UrlPolicy, UrlRejected

MAX_EXCERPT_BYTES = 4 * 1024
ERROR_BY_STATUS_CLASS = {2: "", 3: "http_3xx", 4: "http_4xx", 5: "http_5xx"}

# The first matching type gives the error.
CONNECT_ERRORS = (
    (PeerNotAllowed, "blocked"),
    (TimeoutError, "connect_timeout"),
    (ssl.SSLCertVerificationError, "tls_cert"),
    (ssl.SSLError, "tls_handshake"),
    (ConnectionResetError, "tls_handshake"),
    (OSError, "connect_refused"),
)
EXCHANGE_ERRORS = (
    (TimeoutError, "timeout"),
    (ssl.SSLEOFError, "reset"),
    (ssl.SSLError, "tls_handshake"),  # TLS 1.3 reports a failed handshake with the first read
    (OSError, "reset"),
    (ProtocolError, "protocol"),
)


@dataclass(frozen=True)
class Timeouts:
    """Seconds: `connect` for TCP and TLS, `total` from the look-up to the end of the response."""

    connect: float = 3.0
    total: float = 15.0


@dataclass(frozen=True)
class PostResult:
    """The result of a post. `error` is empty exactly if a complete 2xx head arrived in time.

    Otherwise it is one of dns, blocked, connect_refused, connect_timeout, tls_cert, tls_handshake, timeout,
    reset, protocol, http_3xx, http_4xx, http_5xx. `status` is set if a complete head arrived.
    """

    status: int | None
    error: str
    excerpt: str
    duration_ms: int
    peer: str | None
    retry_after: str | None


class PostFailed(Exception):
    """No complete response head arrived; `error` is a value of `PostResult.error`."""

    def __init__(self, error: str, peer: Address | None = None) -> None:
        super().__init__(error)
        self.error, self.peer = error, peer


DEFAULT_TIMEOUTS = Timeouts()
IDLE_CONNECTIONS = ConnectionPool()
# A look-up may wait for a slot of its merchant, which would stop the event loop. Threads start when needed.
_lookups = ThreadPoolExecutor(MAX_LOOKUPS, thread_name_prefix="resolve")


async def post(
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
    """Check the URL and post the bytes once, without following redirects. Never raises for URL or network.

    Runs in the loop of `event_loop`. Look-ups and idle connections count against the limits of `merchant_id`.
    """
    started = time.monotonic()
    try:
        route = await _route(url, policy, timeouts, resolver, tls or tls_context(ca_file()), merchant_id)
        connection, response = await _send(route, body, headers)
    except PostFailed as failure:
        peer = str(failure.peer) if failure.peer else None
        return PostResult(None, failure.error, "", _elapsed_ms(started), peer, retry_after=None)
    assert response.status is not None, "its head is complete"
    return PostResult(
        status=response.status,
        error=ERROR_BY_STATUS_CLASS.get(response.status // 100, "protocol"),
        # PostgreSQL stores no U+0000 in text.
        excerpt=response.body[:MAX_EXCERPT_BYTES].decode(errors="replace").replace("\0", ""),
        duration_ms=_elapsed_ms(started),
        peer=str(connection.peer),
        retry_after=response.retry_after,
    )


@lru_cache(maxsize=8)
def tls_context(authorities: str) -> ssl.SSLContext:
    """The TLS settings that trust the authorities in this file. They take 15 ms to load.

    `ssl.create_default_context` is not used, because it would write session keys to $SSLKEYLOGFILE.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cafile=authorities)
    return context


async def _route(
    url: str, policy: UrlPolicy, timeouts: Timeouts, resolver: Resolver, tls: ssl.SSLContext, merchant_id: str
) -> Route:
    answer_by = Deadline.after(timeouts.total)
    lookup_seconds = min(url_check.LOOKUP_SECONDS, timeouts.total)
    try:
        target = url_check.parse_target(url, policy)
        look_up = partial(
            url_check.resolve, target, policy, resolver, lookup_seconds, merchant_id=merchant_id
        )
        if target.address is not None:
            addresses = look_up()
        else:
            addresses = await asyncio.get_running_loop().run_in_executor(_lookups, look_up)
    except UrlRejected as rejection:
        error = "dns" if rejection.reason is RejectionReason.DNS else "blocked"
        raise PostFailed(error) from rejection
    except RuntimeError as no_thread_is_free:
        raise PostFailed("dns") from no_thread_is_free
    return Route(
        merchant_id=merchant_id,
        target=target,
        policy=policy,
        addresses=tuple(addresses),
        tls=tls,
        connect_by=min(Deadline.after(timeouts.connect), answer_by),
        answer_by=answer_by,
    )


async def _send(route: Route, body: bytes, headers: Mapping[str, str]) -> tuple[Connection, Response]:
    """Post on an idle connection, or on a new one."""
    idle = IDLE_CONNECTIONS.take(route)
    if idle is not None:
        try:
            return idle, await _exchange(idle, route, body, headers)
        except PostFailed as failure:
            # If the receiver closed the idle connection, it did not read this post: send it again.
            if failure.error != "reset" or idle.was_answered:
                raise
    connection = Connection(route)
    try:
        await connection.connect()
    except (OSError, PeerNotAllowed) as error:
        raise PostFailed(_error_name(error, CONNECT_ERRORS), connection.peer) from error
    return connection, await _exchange(connection, route, body, headers)


async def _exchange(
    connection: Connection, route: Route, body: bytes, headers: Mapping[str, str]
) -> Response:
    connection.route, response = route, Response()
    try:
        async with asyncio.timeout(route.answer_by.left()):
            await connection.exchange(body=body, headers=headers, response=response)
    except (OSError, ProtocolError) as error:
        # After a complete head, only the body was late.
        if response.status is None:
            raise PostFailed(_error_name(error, EXCHANGE_ERRORS), connection.peer) from error
    finally:
        if not response.is_reusable:
            connection.close()
    if response.is_reusable:
        IDLE_CONNECTIONS.put(connection)
    return response


def _error_name(error: Exception, names: tuple[tuple[type[Exception], str], ...]) -> str:
    return next(name for error_type, name in names if isinstance(error, error_type))


def _elapsed_ms(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
