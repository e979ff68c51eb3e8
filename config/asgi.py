"""Runs a WSGI application behind an ASGI server.

In threaded WSGI servers a thread waits for the body, so a few hundred clients that send half a body stop the
service. Here the event loop reads the whole body first, within limits of time and size. Only complete
requests reach a thread.
"""

import asyncio
import io
import logging
import queue
import secrets
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import closing, nullcontext
from functools import lru_cache, partial
from typing import IO, Any
from urllib.parse import unquote_to_bytes

from django.db import connections

from config import concurrency
from config.concurrency import OverloadedError, PageConcurrency
from config.upload_authorization import FindUploader, UploadGate, find_claim_link, find_uploader
from core import errors, http, measurements, uploads
from core.http import MAX_BODY
from core.uploads import UploadKind

logger = logging.getLogger(__name__)

BODY_SECONDS = 10.0
# Bytes over the limit that are read and dropped, so that the client can read our refusal.
DRAIN_LIMIT = 8 * 1024 * 1024
BODY_TOO_LARGE = "qr.body_too_large"
# In the scope of a request whose body needs no waiting.
BODY_HAS_ARRIVED = "qr.body_has_arrived"
# How values of a repeated header are joined. Two idempotency keys must not become one with a comma in it.
HEADER_SEPARATORS = {"HTTP_COOKIE": "; ", "HTTP_IDEMPOTENCY_KEY": "\n"}

WITHOUT_BODY = frozenset({204, 304})

Headers = list[tuple[str, str]]
Environ = dict[str, Any]
Response = tuple[int, Headers, bytes]
Respond = Callable[[Response], None]
StartResponse = Callable[..., Callable[[bytes], object]]
WsgiApplication = Callable[[Environ, StartResponse], Iterable[bytes]]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class IncompleteBody(Exception):
    """The connection ended before the body did, or its chunks are malformed."""


class WsgiAdapter:
    """The ASGI application: bodies on the event loop, the WSGI application in `threads` threads.

    Requests that wait for an acquirer have `card_threads` of their own.
    """

    def __init__(
        self,
        application: WsgiApplication,
        threads: int,
        card_threads: int = 0,
        find_uploader: FindUploader = find_uploader,
        find_claim_link: FindUploader = find_claim_link,
    ) -> None:
        self.pools = {
            concurrency.WEB: ThreadPool(concurrency.WEB, application, threads),
            concurrency.CARD_PAYMENTS: ThreadPool(concurrency.CARD_PAYMENTS, application, card_threads),
        }
        self.loop: asyncio.AbstractEventLoop | None = None
        self.upload_gates = {
            UploadKind.STAFF: UploadGate(find_uploader, uploads.MAX_CONCURRENT[UploadKind.STAFF]),
            UploadKind.CLAIM: UploadGate(find_claim_link, uploads.MAX_CONCURRENT[UploadKind.CLAIM]),
        }
        self.page_limit = PageConcurrency(threads)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        loop = self.loop or self._start()
        environ = environ_of(scope)
        response_future: asyncio.Future[Response] = loop.create_future()
        if "CONTENT_LENGTH" in environ or "HTTP_TRANSFER_ENCODING" in environ:
            try:
                await self._read_request_body(
                    environ, receive, response_future, has_arrived=BODY_HAS_ARRIVED in scope
                )
            except TimeoutError:
                await _send(send, error_and_close(errors.RequestTimeout()))
                return
            except OverloadedError:
                await _send(send, _upload_refusal(environ))
                return
            except IncompleteBody:
                await _send(send, error_and_close(errors.InvalidRequest(reason="its body broke off")))
                return
        try:
            await self.page_limit.acquire(environ, response_future)
        except OverloadedError:
            environ["wsgi.input"].close()
            await _send(send, _overloaded_response(environ))
            return
        self._pool_for(environ).work.put((environ, partial(_set_response, response_future)))
        # A cancelled request does not end the work of the thread, and an upload keeps its slot.
        await _send(send, await asyncio.shield(response_future))

    def answer(self, scope: Message, body: bytes, respond: Respond) -> bool:
        """Give a request whose body has arrived to a thread; `respond` is called on the event loop.

        Returns False for a request that may have to wait before, or whose body is too large. A task of the
        event loop, with the messages of ASGI, takes 60 µs more.
        """
        environ = environ_of(scope)
        if len(body) > MAX_BODY or self.page_limit.applies(environ) or uploads.kind_of(environ):
            return False
        if self.loop is None:
            self._start()
        if "CONTENT_LENGTH" in environ or "HTTP_TRANSFER_ENCODING" in environ:
            _set_body(environ, io.BytesIO(body), len(body))
        self._pool_for(environ).work.put((environ, respond))
        return True

    async def _read_request_body(
        self,
        environ: Environ,
        receive: Receive,
        response_future: asyncio.Future[Response],
        *,
        has_arrived: bool,
    ) -> None:
        """Read the body. Raises IncompleteBody, TimeoutError, OverloadedError."""
        gate = self._gate_of(environ)
        uploader = await gate.find_uploader(environ) if gate else None
        if gate is None or uploader is None:
            # A deadline takes 40 µs, and most bodies arrive together with their head.
            async with nullcontext() if has_arrived else asyncio.timeout(BODY_SECONDS):
                await read_body(environ, receive, io.BytesIO(), MAX_BODY)
            return
        try:
            async with asyncio.timeout(uploads.DEADLINE_SECONDS):
                await gate.acquire(uploader, response_future)
                body = tempfile.TemporaryFile()  # noqa: SIM115 (closed when answered)
                await read_body(environ, _with_minimum_rate(receive), body, uploads.limit_of(environ))
        except BaseException:
            response_future.cancel()
            raise

    def _gate_of(self, environ: Environ) -> UploadGate | None:
        kind = uploads.kind_of(environ)
        return self.upload_gates[kind] if kind else None

    def _start(self) -> asyncio.AbstractEventLoop:
        """Start the threads at the first request. The event loop runs it, so no request races with it."""
        self.loop = asyncio.get_running_loop()
        for pool in self.pools.values():
            pool.start(self.loop)
        return self.loop

    def _pool_for(self, environ: Environ) -> "ThreadPool":
        pool = self.pools[concurrency.pool_for(environ)]
        return pool if pool.threads else self.pools[concurrency.WEB]


class ThreadPool:
    """Requests of one kind and the threads that answer them. No pool waits for another."""

    def __init__(self, name: str, application: WsgiApplication, threads: int) -> None:
        self.name = name
        self.application = application
        self.threads = threads
        self.work: queue.SimpleQueue[tuple[Environ, Respond]] = queue.SimpleQueue()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        for number in range(self.threads):
            threading.Thread(target=self._run, name=f"{self.name}-{number}", daemon=True).start()

    def _run(self) -> None:
        while True:
            environ, respond = self._next()
            with closing(environ["wsgi.input"]):
                response = run_application(self.application, environ)
            self._loop.call_soon_threadsafe(respond, response)

    def _next(self) -> tuple[Environ, Respond]:
        """The next request. An idle card thread closes its database connection."""
        if self.name == concurrency.CARD_PAYMENTS:
            try:
                return self.work.get(timeout=concurrency.IDLE_SECONDS)
            except queue.Empty:
                connections.close_all()
        return self.work.get()


def _set_response(response_future: asyncio.Future[Response], response: Response) -> None:
    if not response_future.done():
        response_future.set_result(response)


async def _send(send: Send, response: Response) -> None:
    for message in _messages(response):
        await send(message)


def _messages(response: Response) -> tuple[Message, Message]:
    """The two messages of ASGI for a complete response."""
    status, headers, body = response
    return (
        {"type": "http.response.start", "status": status, "headers": headers_of(status, headers, body)},
        {"type": "http.response.body", "body": body},
    )


def headers_of(status: int, headers: Headers, body: bytes) -> list[tuple[bytes, bytes]]:
    """The headers in lower case, with the length of the body."""
    raw = [(_lower_bytes(name), value.encode("latin-1")) for name, value in headers]
    if status not in WITHOUT_BODY and not any(name == b"content-length" for name, _value in raw):
        raw.append((b"content-length", b"%d" % len(body)))
    return raw


@lru_cache(maxsize=512)
def _lower_bytes(name: str) -> bytes:
    return name.lower().encode("latin-1")


def environ_of(scope: Message) -> Environ:
    """The WSGI environ of a request, without its body (PEP 3333)."""
    host, port = scope["server"]
    environ: Environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": _path(scope["raw_path"]),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": host,
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": scope["client"][0],
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name, value in scope["headers"]:
        _add_header(environ, name, value.decode("latin-1"))
    return environ


def _path(raw: bytes) -> str:
    """The bytes of the path decoded as latin-1, as WSGI requires."""
    return (unquote_to_bytes(raw) if b"%" in raw else raw).decode("latin-1")


def _add_header(environ: Environ, name: bytes, value: str) -> None:
    key = _environ_key(name)
    if key is None:
        return
    if key in environ:
        value = environ[key] + HEADER_SEPARATORS.get(key, ",") + value
    environ[key] = value


@lru_cache(maxsize=512)
def _environ_key(name: bytes) -> str | None:
    """`x-request-id` becomes `HTTP_X_REQUEST_ID`. Names with an underscore could imitate others: None."""
    if b"_" in name:
        return None
    key = name.decode("latin-1").upper().replace("-", "_")
    return key if key in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{key}"


def _with_minimum_rate(receive: Receive) -> Receive:
    """`receive` that raises TimeoutError when the body is slower than the minimum rate of uploads."""
    began, received = asyncio.get_running_loop().time(), 0

    async def receive_in_time() -> Message:
        nonlocal received
        slowest = began + uploads.GRACE_SECONDS + received / uploads.MIN_BYTES_PER_SECOND
        async with asyncio.timeout_at(slowest):
            message = await receive()
        received += len(message.get("body", b""))
        return message

    return receive_in_time


async def read_body(environ: Environ, receive: Receive, body: IO[bytes], limit: int) -> None:
    """Read the body into `body` for the environ, or mark it as too large. Raises IncompleteBody."""
    try:
        length = await _read_up_to(receive, body, limit)
    except BaseException:
        body.close()
        raise
    if length > limit:
        environ[BODY_TOO_LARGE] = True
        length = 0
        body.truncate(0)
    body.seek(0)
    _set_body(environ, body, length)


def _set_body(environ: Environ, body: IO[bytes], length: int) -> None:
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    environ["wsgi.input"] = body
    environ["CONTENT_LENGTH"] = str(length)


async def _read_up_to(receive: Receive, body: IO[bytes], limit: int) -> int:
    """Read the body to just over the limit, and drop what follows. Returns its length."""
    length, dropped, has_more = 0, 0, True
    while has_more and dropped <= DRAIN_LIMIT:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise IncompleteBody
        has_more = message.get("more_body", False)
        if length <= limit:
            length += body.write(message["body"])
        else:
            dropped += len(message["body"])
    return length


def error_and_close(error: errors.ApiError) -> Response:
    """An error that closes the connection: the rest of the body would look like the next request."""
    status, headers, body = _error_response(error)
    return status, [*headers, ("Content-Length", str(len(body))), ("Connection", "close")], body


def _error_response(error: errors.ApiError) -> Response:
    """The response to a request that does not reach the application."""
    request_id = f"req_{secrets.token_hex(12)}"
    response = http.error_response(error, request_id)
    measurements.add_refused_request(response.status)
    own = {"Content-Type": http.JSON, "X-Request-Id": request_id}
    return response.status, [*own.items(), *response.headers.items()], response.body


def _upload_refusal(environ: Environ) -> Response:
    """The response to an upload that is not read."""
    if uploads.kind_of(environ) is not UploadKind.CLAIM:
        return error_and_close(errors.ServiceUnavailable(retry_after=2))
    status, headers, body = _overloaded_response(environ)
    return status, [*headers, ("Connection", "close")], body


def _overloaded_response(environ: Environ) -> Response:
    """The page for a request to the console, or to a claim page, that gets no thread."""
    # Only here, because Django is set up after this module is imported.
    from console import page_limits
    from reconciliation.claims import page as claim_page

    measurements.add_refused_request(503)
    headers = [
        ("Content-Type", "text/html; charset=utf-8"),
        ("Cache-Control", "no-store"),
        ("Retry-After", "2"),
    ]
    if uploads.kind_of(environ) is UploadKind.CLAIM:
        return 503, headers, claim_page.overloaded_page(environ)
    return 503, headers, page_limits.overloaded_page(environ)


def run_application(application: WsgiApplication, environ: Environ) -> Response:
    """Run the application. An exception that it does not handle becomes 500."""
    try:
        return _call(application, environ)
    except Exception:
        logger.exception("Unhandled error on %s %s", environ["REQUEST_METHOD"], environ["PATH_INFO"])
        return _error_response(errors.InternalError())


def _call(application: WsgiApplication, environ: Environ) -> Response:
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
