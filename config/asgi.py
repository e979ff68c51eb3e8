"""Runs Django behind an ASGI server.

In threaded WSGI servers a thread waits for the body, so a few hundred clients that send half a body stop the
service. Here the event loop reads the whole body first, within limits of time and size. Only complete
requests reach a thread.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from tempfile import SpooledTemporaryFile
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.db import connections
from django.http import HttpResponse
from django.http.response import HttpResponseBase

from config import concurrency
from config.concurrency import Limits, OverloadedError
from config.upload_authorization import FINDERS, FindUploader, UploadGate
from core import errors, request_context
from core.http import responses, uploads
from core.http.responses import MAX_BODY
from core.http.uploads import UploadKind
from core.observing import measurements
from idempotency.errors import InvalidIdempotencyKey

logger = logging.getLogger(__name__)

MAX_HEADERS, MAX_HEAD = 64, 65_536
BODY_SECONDS = 10.0
# Bytes over the limit that are read and dropped, so that the client can read our refusal.
DRAIN_LIMIT = 8 * 1024 * 1024
WITHOUT_BODY = frozenset({204, 304})

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Response = tuple[int, list[tuple[bytes, bytes]], bytes]


class ServiceRequest(ASGIRequest):
    """A request of Django. Its body is empty until the event loop has read it into `body_file`.

    Query and forms are UTF-8, whatever charset the request names: Django decodes them by that charset, also
    by those of Python that decode no text, such as `hex`, and then answers 500.
    """

    def __init__(self, scope: Message) -> None:
        self.body_file = SpooledTemporaryFile(max_size=2 * MAX_BODY)  # noqa: SIM115 (closed after the answer)
        path, query = scope["path"], scope["query_string"].decode("utf-8", "replace")
        if not path.startswith("/"):  # a proxy may be sent a whole URL
            path = "/" + "/".join(path.split("/", 3)[3:])
        super().__init__({**scope, "path": path, "query_string": query}, self.body_file)
        # Now, so that each response and log line of the request has the same id.
        self.request_id = request_context.request_id_for(self.META.get("HTTP_X_REQUEST_ID", ""))

    @property
    def encoding(self) -> str:
        return "utf-8"

    @encoding.setter
    def encoding(self, value: str) -> None:
        pass


Handle = Callable[[ServiceRequest], HttpResponseBase]


class AsgiApplication:
    """Reads bodies on the event loop, and answers by `handle` in a thread. Card payments have their own."""

    def __init__(
        self,
        handle: Handle,
        threads: int,
        card_threads: int = 0,
        finders: Mapping[UploadKind, FindUploader] = FINDERS,
    ) -> None:
        self._handle = handle
        self._threads = ThreadPoolExecutor(threads, "web")
        self._card_threads = ThreadPoolExecutor(card_threads, "cards") if card_threads else None
        self._limits = Limits(threads)
        self._gates = {
            kind: UploadGate(finders[kind], number) for kind, number in uploads.MAX_CONCURRENT.items()
        }

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        request = ServiceRequest(scope)
        try:
            status, headers, body = await self._answer(request, receive)
        except TimeoutError:
            status, headers, body = _error_response(errors.RequestTimeout(), request)
        except OverloadedError:
            status, headers, body = _overloaded_response(request)
        except errors.ApiError as error:
            status, headers, body = _error_response(error, request)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        has_body = request.method != "HEAD" and status not in WITHOUT_BODY
        await send({"type": "http.response.body", "body": body if has_body else b""})

    async def _answer(self, request: ServiceRequest, receive: Receive) -> Response:
        """Raises TimeoutError, OverloadedError and ApiError. A thread that ends gives back what it held."""
        held = ExitStack()
        held.callback(request.body_file.close)
        pool = (concurrency.is_card_payment(request.META) and self._card_threads) or self._threads
        try:
            _check_head(request)
            if "CONTENT_LENGTH" in request.META or "HTTP_TRANSFER_ENCODING" in request.META:
                await self.read_body(request, receive, held)
            if pool is self._threads:
                await self._limits.acquire(request.META, held)
        except BaseException:
            held.close()
            raise
        response = asyncio.get_running_loop().run_in_executor(pool, self._run, request)
        response.add_done_callback(lambda _: held.close())
        # A cancelled request does not end the work of the thread, and an upload keeps its slot.
        return await asyncio.shield(response)

    async def read_body(self, request: ServiceRequest, receive: Receive, held: ExitStack) -> None:
        """Read the body, of an upload in its slot. Raises TimeoutError, OverloadedError and ApiError."""
        kind = uploads.kind_of(request.META)
        gate = self._gates[kind] if kind else None
        uploader = await gate.find_uploader(request.META) if gate else None
        async with asyncio.timeout(uploads.DEADLINE_SECONDS if uploader else BODY_SECONDS):
            if gate is None or uploader is None:
                await _read(request, receive, MAX_BODY)
            else:
                await gate.acquire(uploader, held)
                await _read(request, _with_minimum_rate(receive), uploads.limit_of(request.META))

    def _run(self, request: ServiceRequest) -> Response:
        """Answer in a thread. Card payments are rare, so they keep no database connection."""
        try:
            return answer(self._handle, request)
        finally:
            # Here and not on the event loop, which may have ended.
            request.body_file.close()
            if self._card_threads and concurrency.is_card_payment(request.META):
                connections.close_all()


def _check_head(request: ServiceRequest) -> None:
    """What the server accepts and RFC 9112 does not, or we do not. Raises ApiError."""
    headers = request.scope["headers"]
    if sum(len(name) + len(value) for name, value in headers) > MAX_HEAD:
        raise errors.InvalidRequest(reason="its head is larger than 64 kB")
    needs_host = request.scope["http_version"] != "1.0"
    coding = request.META.get("HTTP_TRANSFER_ENCODING", "chunked")
    if coding.lower() != "chunked" or (needs_host and "HTTP_HOST" not in request.META):
        raise errors.MalformedRequest
    if "HTTP_IDEMPOTENCY_KEY" in request.META and [name for name, _ in headers].count(b"idempotency-key") > 1:
        raise InvalidIdempotencyKey(received="more than one header")


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


async def _read(request: ServiceRequest, receive: Receive, limit: int) -> None:
    """Read the body, or mark it as too large: then drop what follows the limit. Raises ApiError."""
    length, dropped, has_more = 0, 0, True
    while has_more and dropped <= DRAIN_LIMIT:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise errors.InvalidRequest(reason="its body broke off")
        has_more = message.get("more_body", False)
        if length <= limit:
            length += request.body_file.write(message["body"])
        else:
            dropped += len(message["body"])
    if length > limit:
        request.META[uploads.TOO_LARGE] = True
        length = 0
        request.body_file.truncate(0)
    request.body_file.seek(0)
    request.META.pop("HTTP_TRANSFER_ENCODING", None)
    request.META["CONTENT_LENGTH"] = str(length)


def _error_response(error: errors.ApiError, request: ServiceRequest) -> Response:
    """The response to a request that does not reach the application.

    The server closes the connection if the body has not ended: its rest would look like the next request.
    """
    response = responses.to_django(responses.error_response(error, request.request_id))
    measurements.add_refused_request(response.status_code)
    return _complete(response, request)


def _overloaded_response(request: ServiceRequest) -> Response:
    """The page for a request to the console, or to a claim page, that gets no thread."""
    # Only here, because Django is set up after this module is imported.
    from console.people import page_limits
    from reconciliation.claims import page as claim_page

    kind = uploads.kind_of(request.META)
    if kind is UploadKind.SLIP:
        return _error_response(errors.ServiceUnavailable(retry_after=2), request)
    measurements.add_refused_request(503)
    is_claim = kind is UploadKind.CLAIM
    page = claim_page.overloaded_page(request) if is_claim else page_limits.overloaded_page(request)
    headers = {"Cache-Control": "no-store", "Retry-After": "2"}
    return _complete(HttpResponse(page, status=503, headers=headers), request)


def answer(handle: Handle, request: ServiceRequest) -> Response:
    """The whole response of Django. An exception that it does not handle becomes 500."""
    try:
        response = handle(request)
        try:
            return _complete(response, request)
        finally:
            response.close()
    except Exception:
        known = {"request_id": request.request_id}
        logger.exception("Unhandled error on %s %s", request.method, request.path, extra=known)
        return _error_response(errors.InternalError(), request)


def _complete(response: HttpResponseBase, request: ServiceRequest) -> Response:
    """Status, headers and body as ASGI sends them."""
    body = b"".join(response)
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in response.items()]
    headers += [(b"set-cookie", each.OutputString().encode("latin-1")) for each in response.cookies.values()]
    if not response.has_header("X-Request-Id"):
        headers.append((b"x-request-id", request.request_id.encode()))
    if response.status_code not in WITHOUT_BODY and not response.has_header("Content-Length"):
        headers.append((b"content-length", b"%d" % len(body)))
    return response.status_code, headers, body
