"""Runs a WSGI application behind an ASGI server.

In threaded WSGI servers a thread waits for the body, so a few hundred clients that send half a body stop the
service. Here the event loop reads the whole body first, within limits of time and size. Only complete
requests reach a thread.
"""

import asyncio
import io
import logging
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import lru_cache
from typing import IO, Any
from urllib.parse import unquote_to_bytes

from django.db import connections

from config import concurrency
from config.concurrency import Limits, OverloadedError
from config.upload_authorization import FindUploader, UploadGate, find_claim_link, find_uploader
from core import errors, http, measurements, request_context, uploads
from core.http import MAX_BODY
from core.uploads import UploadKind

logger = logging.getLogger(__name__)

MAX_HEADERS, MAX_HEAD = 64, 65_536
BODY_SECONDS = 10.0
# Bytes over the limit that are read and dropped, so that the client can read our refusal.
DRAIN_LIMIT = 8 * 1024 * 1024
BODY_TOO_LARGE = "qr.body_too_large"
REQUEST_ID = "HTTP_X_REQUEST_ID"
# How values of a repeated header are joined. Two idempotency keys must not become one with a comma in it.
HEADER_SEPARATORS = {"HTTP_COOKIE": "; ", "HTTP_IDEMPOTENCY_KEY": "\n"}
WITHOUT_BODY = frozenset({204, 304})

Headers = list[tuple[str, str]]
Environ = dict[str, Any]
Response = tuple[int, Headers, bytes]
StartResponse = Callable[..., Callable[[bytes], object]]
WsgiApplication = Callable[[Environ, StartResponse], Iterable[bytes]]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


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
        self._application = application
        self._threads = ThreadPoolExecutor(threads, "web")
        self._card_threads = ThreadPoolExecutor(card_threads, "cards") if card_threads else None
        self._limits = Limits(threads)
        self._gates = {
            UploadKind.STAFF: UploadGate(find_uploader, uploads.MAX_CONCURRENT[UploadKind.STAFF]),
            UploadKind.CLAIM: UploadGate(find_claim_link, uploads.MAX_CONCURRENT[UploadKind.CLAIM]),
        }

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        environ, held = environ_of(scope), ExitStack()
        # Before anything is refused, so that each response and log line of the request has the same id.
        environ[REQUEST_ID] = request_context.request_id_for(environ.get(REQUEST_ID, ""))
        try:
            _check_head(scope, environ)
            response = await self._answer(environ, receive, held)
        except TimeoutError:
            response = _error_response(errors.RequestTimeout(), environ)
        except OverloadedError:
            response = _overloaded_response(environ)
        except errors.ApiError as error:
            response = _error_response(error, environ)
        await _send(send, response, has_body=scope["method"] != "HEAD")

    async def _answer(self, environ: Environ, receive: Receive, held: ExitStack) -> Response:
        """Raises TimeoutError, OverloadedError and ApiError. `held` is released when a thread is done."""
        pool = (concurrency.is_card_payment(environ) and self._card_threads) or self._threads
        try:
            if "CONTENT_LENGTH" in environ or "HTTP_TRANSFER_ENCODING" in environ:
                await self.read_body(environ, receive, held)
            if pool is self._threads:
                await self._limits.acquire(environ, held)
        except BaseException:
            held.close()
            raise
        response = asyncio.get_running_loop().run_in_executor(pool, self._run, environ)
        response.add_done_callback(lambda _: held.close())
        # A cancelled request does not end the work of the thread, and an upload keeps its slot.
        return await asyncio.shield(response)

    async def read_body(self, environ: Environ, receive: Receive, held: ExitStack) -> None:
        """Read the body, of an upload in its slot. Raises TimeoutError, OverloadedError and ApiError."""
        kind = uploads.kind_of(environ)
        gate = self._gates[kind] if kind else None
        uploader = await gate.find_uploader(environ) if gate else None
        async with asyncio.timeout(uploads.DEADLINE_SECONDS if uploader else BODY_SECONDS):
            if gate is None or uploader is None:
                await _read(environ, receive, held.enter_context(io.BytesIO()), MAX_BODY)
            else:
                await gate.acquire(uploader, held)
                body = held.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 (a context)
                await _read(environ, _with_minimum_rate(receive), body, uploads.limit_of(environ))

    def _run(self, environ: Environ) -> Response:
        """Run the application in a thread. Card payments are rare, so they keep no database connection."""
        try:
            return run_application(self._application, environ)
        finally:
            if self._card_threads and concurrency.is_card_payment(environ):
                connections.close_all()


async def _send(send: Send, response: Response, *, has_body: bool) -> None:
    """The two messages of ASGI for a complete response."""
    status, headers, body = response
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    if status not in WITHOUT_BODY and not any(name == b"content-length" for name, _value in raw):
        raw.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": raw})
    sent = body if has_body and status not in WITHOUT_BODY else b""
    await send({"type": "http.response.body", "body": sent})


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
        if (key := _environ_key(name)) is not None:
            joined = [environ[key]] if key in environ else []
            environ[key] = HEADER_SEPARATORS.get(key, ",").join([*joined, value.decode("latin-1")])
    return environ


def _path(raw: bytes) -> str:
    """The bytes of the path decoded as latin-1, as WSGI requires. A proxy may be sent a whole URL."""
    path = raw if raw.startswith(b"/") else b"/" + b"".join(raw.split(b"/", 3)[3:])
    return (unquote_to_bytes(path) if b"%" in path else path).decode("latin-1")


@lru_cache(maxsize=512)
def _environ_key(name: bytes) -> str | None:
    """`x-request-id` becomes `HTTP_X_REQUEST_ID`. Names with an underscore could imitate others: None."""
    if b"_" in name:
        return None
    key = name.decode("latin-1").upper().replace("-", "_")
    return key if key in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{key}"


def _check_head(scope: Message, environ: Environ) -> None:
    """What the server accepts and RFC 9112 does not, or we do not. Raises ApiError."""
    if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEAD:
        raise errors.InvalidRequest(reason="its head is larger than 64 kB")
    needs_host = environ["SERVER_PROTOCOL"] != "HTTP/1.0"
    coding = environ.get("HTTP_TRANSFER_ENCODING", "chunked")
    if coding.lower() != "chunked" or (needs_host and "HTTP_HOST" not in environ):
        raise errors.MalformedRequest


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


async def _read(environ: Environ, receive: Receive, body: IO[bytes], limit: int) -> None:
    """Read the body into `body` for the environ, or mark it as too large. Raises ApiError."""
    length = await _read_up_to(receive, body, limit)
    if length > limit:
        environ[BODY_TOO_LARGE] = True
        length = 0
        body.truncate(0)
    body.seek(0)
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    environ["wsgi.input"] = body
    environ["CONTENT_LENGTH"] = str(length)


async def _read_up_to(receive: Receive, body: IO[bytes], limit: int) -> int:
    """Read the body to just over the limit, and drop what follows. Returns its length."""
    length, dropped, has_more = 0, 0, True
    while has_more and dropped <= DRAIN_LIMIT:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise errors.InvalidRequest(reason="its body broke off")
        has_more = message.get("more_body", False)
        if length <= limit:
            length += body.write(message["body"])
        else:
            dropped += len(message["body"])
    return length


def _error_response(error: errors.ApiError, environ: Environ) -> Response:
    """The response to a request that does not reach the application.

    The server closes the connection if the body has not ended: its rest would look like the next request.
    """
    request_id = environ.get(REQUEST_ID, "")
    response = http.error_response(error, request_id)
    measurements.add_refused_request(response.status)
    own = {"Content-Type": http.JSON, "X-Request-Id": request_id}
    return response.status, [*own.items(), *response.headers.items()], response.body


def _overloaded_response(environ: Environ) -> Response:
    """The page for a request to the console, or to a claim page, that gets no thread."""
    # Only here, because Django is set up after this module is imported.
    from console import page_limits
    from reconciliation.claims import page as claim_page

    measurements.add_refused_request(503)
    is_claim = uploads.kind_of(environ) is UploadKind.CLAIM
    page = claim_page.overloaded_page(environ) if is_claim else page_limits.overloaded_page(environ)
    headers = {"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "Retry-After": "2"}
    return 503, [*headers.items(), ("X-Request-Id", environ[REQUEST_ID])], page


def run_application(application: WsgiApplication, environ: Environ) -> Response:
    """Run the application. An exception that it does not handle becomes 500."""
    try:
        return _call(application, environ)
    except Exception:
        method, path, known = environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get(REQUEST_ID)
        logger.exception("Unhandled error on %s %s", method, path, extra={"request_id": known})
        return _error_response(errors.InternalError(), environ)


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
        getattr(chunks, "close", lambda: None)()
    ((status, headers),) = started
    return int(status[:3]), headers, body
