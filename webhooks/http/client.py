"""Post a webhook to a URL that a merchant chose: only to public addresses, in bounded time and size."""

import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from core.deadlines import Deadline
from core.tls import ca_file
from webhooks.http import connections, url_check
from webhooks.http.connections import Connection, PeerNotAllowed, ProtocolError, Response, Route
from webhooks.http.dns import Resolver
from webhooks.http.url_check import RejectionReason, Target, UrlPolicy, UrlRejected

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
    """Seconds."""

    connect: float = 3.0  # for TCP and TLS
    total: float = 15.0  # from the look-up to the end of the response


@dataclass(frozen=True)
class PostResult:
    """The result of a post."""

    status: int | None  # set if a complete head arrived
    # Empty exactly if a complete 2xx head arrived in time; else a value of ERROR_BY_STATUS_CLASS,
    # CONNECT_ERRORS or EXCHANGE_ERRORS, or dns.
    error: str
    excerpt: str
    duration_ms: int
    peer: str | None
    retry_after: str | None


DEFAULT_TIMEOUTS = Timeouts()


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

    Raises OSError if the file of our certificate authorities cannot be read. Runs in the loop of
    `event_loop`. Look-ups and idle connections count against the limits of `merchant_id`.
    """
    tls = tls or tls_context(ca_file())  # outside of `try`: its error is no failure of the merchant
    started, answer_by = time.monotonic(), Deadline.after(timeouts.total)
    connection, response = None, Response()
    try:
        target = url_check.parse_target(url, policy)
        message = _request_head(target, len(body), headers) + body
        lookup_seconds = min(url_check.LOOKUP_SECONDS, timeouts.total)
        addresses = await url_check.resolve(target, policy, resolver, lookup_seconds, merchant_id=merchant_id)
        connect_by = min(Deadline.after(timeouts.connect), answer_by)
        route = Route(merchant_id, target.origin, tls)
        connection = connections.IDLE_CONNECTIONS.take(route, addresses)
        if connection is not None:
            response = await connection.exchange(message, answer_by)
        error = _error_name(response.failure, EXCHANGE_ERRORS)
        # If the receiver closed the idle connection, it did not read this post: send it again.
        if connection is None or (error == "reset" and not response.is_begun):
            connection = Connection(route)
            await connection.connect(addresses, target, policy, connect_by)
            response = await connection.exchange(message, answer_by)
            error = _error_name(response.failure, EXCHANGE_ERRORS)
    except UrlRejected as rejection:
        error = "dns" if rejection.reason is RejectionReason.DNS else "blocked"
    except (OSError, PeerNotAllowed) as failure:
        error = _error_name(failure, CONNECT_ERRORS)
    if response.status is not None:
        error = ERROR_BY_STATUS_CLASS.get(response.status // 100, "protocol")
    return PostResult(
        status=response.status,
        error=error,
        # PostgreSQL stores no U+0000 in text.
        excerpt=response.body[:MAX_EXCERPT_BYTES].decode(errors="replace").replace("\0", ""),
        duration_ms=round((time.monotonic() - started) * 1000),
        peer=str(connection.peer) if connection is not None and connection.peer else None,
        retry_after=response.retry_after if response.status else None,
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


def _request_head(target: Target, length: int, headers: Mapping[str, str]) -> bytes:
    lines = [
        f"POST {target.path_and_query} HTTP/1.1",
        f"Host: {target.host_and_port}",
        "Accept-Encoding: identity",
        f"Content-Length: {length}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    # A line break would begin another header or another request. The check of the URL refuses it, too.
    if not all(map(str.isprintable, lines)) or " " in target.path_and_query:
        raise ValueError("The head of a post has a character that is not allowed.")
    return "\r\n".join([*lines, "", ""]).encode("ascii")


def _error_name(error: Exception | None, names: tuple[tuple[type[Exception], str], ...]) -> str:
    return next((name for error_type, name in names if isinstance(error, error_type)), "")
