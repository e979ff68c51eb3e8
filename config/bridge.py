"""Runs a WSGI application behind an ASGI server.

Granian's own WSGI lets its threads wait for request bodies, so a few hundred clients that send
half a body stop the service. Here the event loop reads the whole body first, against a clock and
a limit, and only complete requests reach a thread. ASGI and not Granian's RSGI, because RSGI hides
header values that are not ASCII.
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
from contextlib import closing
from functools import lru_cache, partial
from typing import IO, Any
from urllib.parse import unquote_to_bytes
from weakref import WeakValueDictionary

from django.db import connections

from config import lanes
from config.places import ConsolePlaces, NoPlaceError
from config.upload_gate import UploaderOf, UploadGate, uploader_of
from core import errors, http, uploads
from core.http import MAX_BODY

logger = logging.getLogger(__name__)

BODY_SECONDS = 10.0
# What is read and thrown away of a body over the limit, so that its sender hears the answer.
DRAIN_LIMIT = 8 * 1024 * 1024
TOO_LARGE = "qr.body_too_large"
# How a repeated header becomes one: two idempotency keys must not pass for one with a comma in it.
JOINTS = {"HTTP_COOKIE": "; ", "HTTP_IDEMPOTENCY_KEY": "\n"}

Headers = list[tuple[str, str]]
Environ = dict[str, Any]
Answer = tuple[int, Headers, bytes]
StartResponse = Callable[..., Callable[[bytes], object]]
WsgiApplication = Callable[[Environ, StartResponse], Iterable[bytes]]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class BrokenBody(Exception):
    """The connection ended before the body did, or its chunks make no sense."""


class Bridge:
    """The ASGI application: bodies on the event loop, the WSGI application in `threads` threads.

    Requests that wait for an acquirer have `card_threads` of their own.
    """

    def __init__(
        self,
        application: WsgiApplication,
        threads: int,
        card_threads: int = 0,
        uploader_of: UploaderOf = uploader_of,
    ) -> None:
        self.lanes = {
            lanes.WEB: Lane(lanes.WEB, application, threads),
            lanes.CARDS: Lane(lanes.CARDS, application, card_threads),
        }
        self.loop: asyncio.AbstractEventLoop | None = None
        self.gate = UploadGate(uploader_of)
        self.uploads = asyncio.Semaphore(uploads.AT_ONCE)
        self.uploads_of_one: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self.console = ConsolePlaces(threads)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        loop = self.loop or self._start()
        environ = environ_of(scope)
        answered: asyncio.Future[Answer] = loop.create_future()
        if "CONTENT_LENGTH" in environ or "HTTP_TRANSFER_ENCODING" in environ:
            try:
                await self._take(environ, receive, answered)
            except TimeoutError:
                await _send(send, _refused(errors.RequestTimeout()))
                return
            except NoPlaceError:
                await _send(send, _refused(errors.ServiceUnavailable(retry_after=2)))
                return
            except BrokenBody:
                await _send(send, _refused(errors.InvalidRequest("The request body broke off.")))
                return
        try:
            await self.console.take(environ, answered)
        except NoPlaceError:
            environ["wsgi.input"].close()
            await _send(send, _own_answer(errors.ServiceUnavailable(retry_after=2)))
            return
        self._lane_of(environ).work.put((environ, answered))
        # Whoever hangs up does not end what a thread is doing: an upload keeps its place until then.
        await _send(send, await asyncio.shield(answered))

    async def _take(self, environ: Environ, receive: Receive, answered: asyncio.Future[Answer]) -> None:
        """Read the body. Raises BrokenBody, TimeoutError, NoPlaceError."""
        uploader = await self.gate.uploader_of(environ)
        if uploader is None:
            async with asyncio.timeout(BODY_SECONDS):
                await take_body(environ, receive, io.BytesIO(), MAX_BODY)
            return
        try:
            async with asyncio.timeout(uploads.SECONDS):
                await self._take_places(uploader, answered)
                body = tempfile.TemporaryFile()  # noqa: SIM115 (closed when answered)
                await take_body(environ, _not_too_slow(receive), body, MAX_BODY + uploads.MAX_FILE)
        except BaseException:
            answered.cancel()
            raise

    async def _take_places(self, uploader: str, answered: asyncio.Future[Answer]) -> None:
        """Wait for a place of the user and for one of the process; both are held until the answer."""
        own = self.uploads_of_one.setdefault(uploader, asyncio.Semaphore(uploads.AT_ONCE_OF_ONE))
        for places in (own, self.uploads):
            await places.acquire()
            answered.add_done_callback(partial(_release, places))

    def _start(self) -> asyncio.AbstractEventLoop:
        """At the first request, on the event loop: nothing can race with it."""
        self.loop = asyncio.get_running_loop()
        for lane in self.lanes.values():
            lane.start()
        return self.loop

    def _lane_of(self, environ: Environ) -> "Lane":
        lane = self.lanes[lanes.of(environ)]
        return lane if lane.threads else self.lanes[lanes.WEB]


class Lane:
    """Requests of one kind and the threads that answer them. One lane never waits for another."""

    def __init__(self, name: str, application: WsgiApplication, threads: int) -> None:
        self.name = name
        self.application = application
        self.threads = threads
        self.work: queue.SimpleQueue[tuple[Environ, asyncio.Future[Answer]]] = queue.SimpleQueue()

    def start(self) -> None:
        for number in range(self.threads):
            threading.Thread(target=self._run, name=f"{self.name}-{number}", daemon=True).start()

    def _run(self) -> None:
        while True:
            environ, answered = self._next()
            with closing(environ["wsgi.input"]):
                answer = answer_of(self.application, environ)
            answered.get_loop().call_soon_threadsafe(_settle, answered, answer)

    def _next(self) -> "tuple[Environ, asyncio.Future[Answer]]":
        """Threads for peaks give their database connection back when the peak is over."""
        if self.name == lanes.CARDS:
            try:
                return self.work.get(timeout=lanes.IDLE_SECONDS)
            except queue.Empty:
                connections.close_all()
        return self.work.get()


def _release(places: asyncio.Semaphore, _answered: "asyncio.Future[Answer]") -> None:
    places.release()


def _settle(answered: asyncio.Future[Answer], answer: Answer) -> None:
    if not answered.done():
        answered.set_result(answer)


async def _send(send: Send, answer: Answer) -> None:
    status, headers, body = answer
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


def environ_of(scope: Message) -> Environ:
    """The WSGI environ of a request, its body still empty (PEP 3333)."""
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
    """The bytes of the path as if they were latin-1, which is what WSGI wants."""
    return (unquote_to_bytes(raw) if b"%" in raw else raw).decode("latin-1")


def _add_header(environ: Environ, name: bytes, value: str) -> None:
    key = _environ_key(name)
    if key is None:
        return
    if key in environ:
        value = environ[key] + JOINTS.get(key, ",") + value
    environ[key] = value


@lru_cache(maxsize=512)
def _environ_key(name: bytes) -> str | None:
    """`x-request-id` becomes `HTTP_X_REQUEST_ID`; a name with an underscore could pose as another."""
    if b"_" in name:
        return None
    key = name.decode("latin-1").upper().replace("-", "_")
    return key if key in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{key}"


def _not_too_slow(receive: Receive) -> Receive:
    """`receive`, which raises TimeoutError once the body is slower than an upload may be."""
    began, received = asyncio.get_running_loop().time(), 0

    async def receive_in_time() -> Message:
        nonlocal received
        slowest = began + uploads.GRACE_SECONDS + received / uploads.BYTES_PER_SECOND
        async with asyncio.timeout_at(slowest):
            message = await receive()
        received += len(message.get("body", b""))
        return message

    return receive_in_time


async def take_body(environ: Environ, receive: Receive, body: IO[bytes], limit: int) -> None:
    """Put the body into the environ by way of `body`, or mark it as too large. Raises BrokenBody."""
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    try:
        length = await _read_bounded(receive, body, limit)
    except BaseException:
        body.close()
        raise
    if length > limit:
        environ[TOO_LARGE] = True
        length = 0
        body.truncate(0)
    body.seek(0)
    environ["wsgi.input"] = body
    environ["CONTENT_LENGTH"] = str(length)


async def _read_bounded(receive: Receive, body: IO[bytes], limit: int) -> int:
    """The body up to just over the limit; what follows is read and dropped. Returns how long it is."""
    length, dropped, has_more = 0, 0, True
    while has_more and dropped <= DRAIN_LIMIT:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BrokenBody
        has_more = message.get("more_body", False)
        if length <= limit:
            length += body.write(message["body"])
        else:
            dropped += len(message["body"])
    return length


def _refused(error: errors.ApiError) -> Answer:
    """What follows on the connection cannot be told from the body: it ends here."""
    status, headers, body = _own_answer(error)
    return status, [*headers, ("Connection", "close")], body


def _own_answer(error: errors.ApiError) -> Answer:
    """Where the application cannot answer."""
    request_id = f"req_{secrets.token_hex(12)}"
    answer = http.error_answer(error, request_id)
    own = {"Content-Type": http.JSON, "X-Request-Id": request_id}
    return answer.status, [*own.items(), *answer.headers.items()], answer.body


def answer_of(application: WsgiApplication, environ: Environ) -> Answer:
    """Run the application; what it fails to answer becomes our 500."""
    try:
        return _call(application, environ)
    except Exception:
        logger.exception("Unhandled error on %s %s", environ["REQUEST_METHOD"], environ["PATH_INFO"])
        return _own_answer(errors.InternalError())


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
