"""Runs a WSGI application on Granian's RSGI interface.

Granian's own WSGI lets its threads wait for request bodies, so a few hundred clients that send
half a body stop the service. Here the event loop reads the whole body first, against a clock and
a limit, and only complete requests reach a thread.
"""

import asyncio
import io
import logging
import queue
import secrets
import sys
import threading
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Protocol

from granian.rsgi import ProtocolClosed  # type: ignore[attr-defined]

logger = logging.getLogger(__name__)

BODY_LIMIT = 64 * 1024
BODY_SECONDS = 10.0
# What is read and thrown away of a body over the limit, so that its sender hears the answer.
DRAIN_LIMIT = 8 * 1024 * 1024
TOO_LARGE = "qr.body_too_large"
BODILESS = frozenset({204, 304})
# Between the values of a repeated header. A comma is legal in an idempotency key, so two keys are joined by
# what no key may hold, and are refused.
SEPARATORS = {"HTTP_COOKIE": "; ", "HTTP_IDEMPOTENCY_KEY": "\n"}

Headers = list[tuple[str, str]]
Environ = dict[str, Any]
Answer = tuple[int, Headers, bytes]
StartResponse = Callable[..., Callable[[bytes], object]]
WsgiApplication = Callable[[Environ, StartResponse], Iterable[bytes]]

REQUEST_TIMEOUT = (
    b'{"error":{"code":"request_timeout","message":"The request body did not arrive in 10 seconds.",'
    b'"type":"validation_error"}}'
)
INTERNAL_ERROR = (
    b'{"error":{"code":"internal_error","message":"Something went wrong on our side.","type":"api_error"}}'
)


class RequestHeaders(Protocol):
    """The names are lower case; `items` leaves out values that are not ASCII, `keys` does not."""

    def items(self) -> list[tuple[str, str]]: ...
    def keys(self) -> list[str]: ...


class Scope(Protocol):
    """What Granian knows of a request."""

    http_version: str
    server: str
    client: str
    scheme: str
    method: str
    path: str
    query_string: str
    headers: RequestHeaders


class Exchange(Protocol):
    """The request's body and the way to answer."""

    async def __call__(self) -> bytes: ...
    def __aiter__(self) -> Any: ...
    def response_empty(self, status: int, headers: Headers) -> None: ...
    def response_bytes(self, status: int, headers: Headers, body: bytes) -> None: ...


class Bridge:
    """The RSGI application: bodies on the event loop, the WSGI application in `threads` threads."""

    def __init__(self, application: WsgiApplication, threads: int) -> None:
        self.application = application
        self.threads = threads
        self.work: queue.SimpleQueue[tuple[Environ, asyncio.Future[Answer]]] = queue.SimpleQueue()

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        for number in range(self.threads):
            threading.Thread(target=self._run, name=f"web-{number}", daemon=True).start()

    async def __rsgi__(self, scope: Scope, exchange: Exchange) -> None:
        environ = environ_of(scope)
        if "CONTENT_LENGTH" in environ or "HTTP_TRANSFER_ENCODING" in environ:
            try:
                async with asyncio.timeout(BODY_SECONDS):
                    await take_body(environ, exchange)
            except TimeoutError:
                exchange.response_bytes(408, [*_own_headers(), ("connection", "close")], REQUEST_TIMEOUT)
                return
            except ProtocolClosed:
                return
        answered = self.loop.create_future()
        self.work.put((environ, answered))
        status, headers, body = await answered
        if status in BODILESS:
            exchange.response_empty(status, headers)
        else:
            exchange.response_bytes(status, headers, body)

    def _run(self) -> None:
        while True:
            environ, answered = self.work.get()
            answer = answer_of(self.application, environ)
            self.loop.call_soon_threadsafe(_settle, answered, answer)


def _settle(answered: asyncio.Future[Answer], answer: Answer) -> None:
    if not answered.done():
        answered.set_result(answer)


def environ_of(scope: Scope) -> Environ:
    """The WSGI environ of a request, its body still empty (PEP 3333)."""
    host, port = _address(scope.server)
    environ: Environ = {
        "REQUEST_METHOD": scope.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": _native(scope.path),
        "QUERY_STRING": _native(scope.query_string),
        "SERVER_NAME": host,
        "SERVER_PORT": port,
        "SERVER_PROTOCOL": "HTTP/1.0" if scope.http_version == "1" else "HTTP/1.1",
        "REMOTE_ADDR": scope.client.rpartition(":")[0].strip("[]"),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.scheme,
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    _add_headers(environ, scope.headers)
    return environ


def _native(text: str) -> str:
    """WSGI wants the bytes of a text as if they were latin-1."""
    return text if text.isascii() else text.encode().decode("latin-1")


def _add_headers(environ: Environ, headers: RequestHeaders) -> None:
    for name, value in headers.items():
        key = _environ_key(name)
        if key is None:
            continue
        earlier = environ.get(key)
        environ[key] = value if earlier is None else earlier + SEPARATORS.get(key, ",") + value
    # A value that is not ASCII must not pass for an absent header: a key would lose its meaning.
    for name in headers.keys():  # noqa: SIM118 - not a dict
        key = _environ_key(name)
        if key is not None:
            environ.setdefault(key, "\xff")


@lru_cache(maxsize=512)
def _environ_key(name: str) -> str | None:
    """`x-request-id` becomes `HTTP_X_REQUEST_ID`; a name with an underscore could pose as another."""
    if "_" in name:
        return None
    key = name.upper().replace("-", "_")
    return key if key in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{key}"


@lru_cache(maxsize=64)
def _address(server: str) -> tuple[str, str]:
    host, _, port = server.rpartition(":")
    return host.strip("[]"), port


async def take_body(environ: Environ, exchange: Exchange) -> None:
    """Put the body into the environ, or mark it as too large. Raises ProtocolClosed if it breaks off."""
    length = environ.get("CONTENT_LENGTH", "")
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    if length.isdecimal() and int(length) <= BODY_LIMIT:
        body = await exchange()
    else:
        body = await _read_bounded(exchange)
        if len(body) > BODY_LIMIT:
            environ[TOO_LARGE] = True
            body = b""
    environ["wsgi.input"] = io.BytesIO(body)
    environ["CONTENT_LENGTH"] = str(len(body))


async def _read_bounded(exchange: Exchange) -> bytes:
    """The body up to just over the limit; what follows is read and dropped."""
    body, dropped = bytearray(), 0
    async for chunk in exchange:
        if len(body) <= BODY_LIMIT:
            body += chunk
        else:
            dropped += len(chunk)
        if dropped > DRAIN_LIMIT:
            break
    return bytes(body)


def _own_headers() -> Headers:
    """Of an answer that the application did not give."""
    return [("content-type", "application/json"), ("x-request-id", f"req_{secrets.token_hex(12)}")]


def answer_of(application: WsgiApplication, environ: Environ) -> Answer:
    """Run the application; what it fails to answer becomes our 500."""
    try:
        return _call(application, environ)
    except Exception:
        logger.exception("Unhandled error on %s %s", environ["REQUEST_METHOD"], environ["PATH_INFO"])
        return 500, _own_headers(), INTERNAL_ERROR


def _call(application: WsgiApplication, environ: Environ) -> Answer:
    started: list[tuple[str, Headers]] = []

    def start_response(status: str, headers: Headers, _exc_info: object = None) -> Callable[[bytes], object]:
        started[:] = [(status, headers)]
        return written.append

    written: list[bytes] = []
    chunks = application(environ, start_response)
    try:
        body = b"".join((*written, *chunks))
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()
    status, headers = started[0]
    return int(status[:3]), headers, body
