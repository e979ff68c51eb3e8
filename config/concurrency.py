"""Which threads of a web process answer a request, and how many of them serve the console and claim pages.

These requests wait on the event loop and not in a thread, so payments always find a free thread.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import parse_cookie

from core import uploads
from core.uploads import UploadKind

WEB, CARD_PAYMENTS = "web", "cards"
# A POST to these waits for an acquirer.
CARD_PAYMENT_PATHS = {"/v1/payments", "/Thai/v1/payments"}
# Threads of the card pool for each slot of CARD_CONCURRENCY: replays, refusals and waiting repeats need some.
THREADS_PER_CALL = 2
# Card threads close their database connection after this pause.
IDLE_SECONDS = 5.0
CONSOLE_PREFIX = "/admin/"
LOGIN_PATH = "/admin/login/"
WAIT_SECONDS = 10.0
# Requests that wait for one slot. Further ones are refused at once.
MAX_WAITING = 16


def pool_for(environ: Mapping[str, Any]) -> str:
    """The thread pool of a request."""
    is_card_payment = environ["REQUEST_METHOD"] == "POST" and environ["PATH_INFO"] in CARD_PAYMENT_PATHS
    return CARD_PAYMENTS if is_card_payment else WEB


class OverloadedError(Exception):
    """Too many requests wait already, or this one has waited too long."""


class ConcurrencyLimit:
    """A bounded number of requests at once, and a bounded number that wait."""

    def __init__(self, number: int) -> None:
        self._free = asyncio.Semaphore(number)
        self._waiting = 0

    async def acquire(self, response_future: "asyncio.Future[Any]") -> None:
        """Hold a slot until `response_future` is done. Raises OverloadedError."""
        if self._waiting >= MAX_WAITING:
            raise OverloadedError
        self._waiting += 1
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._free.acquire()
        except TimeoutError:
            raise OverloadedError from None
        finally:
            self._waiting -= 1
        response_future.add_done_callback(lambda _: self._free.release())


class PageConcurrency:
    """Half of the threads serve the console; one of them serves everybody who is not logged in.

    A quarter serves forms of claim pages, which wait until the picture of a slip is read.
    """

    def __init__(self, threads: int) -> None:
        self._pages = ConcurrencyLimit(max(1, threads // 2))
        self._anonymous = ConcurrencyLimit(1)
        self._claims = ConcurrencyLimit(max(1, threads // 4))

    def applies(self, environ: Mapping[str, Any]) -> bool:
        """Whether the request is for a page of the console, or the form of a claim page."""
        path: str = environ["PATH_INFO"]
        return path.startswith(CONSOLE_PREFIX) or uploads.kind_of(environ) is UploadKind.CLAIM

    async def acquire(self, environ: Mapping[str, Any], response_future: "asyncio.Future[Any]") -> None:
        """Hold a slot until `response_future` is done; other paths need none. Raises OverloadedError."""
        if not self.applies(environ):
            return
        try:
            for limit in self._limits_of(environ):
                await limit.acquire(response_future)
        except BaseException:
            response_future.cancel()
            raise

    def _limits_of(self, environ: Mapping[str, Any]) -> list[ConcurrencyLimit]:
        if not environ["PATH_INFO"].startswith(CONSOLE_PREFIX):
            return [self._claims]
        return [self._anonymous, self._pages] if _is_anonymous(environ) else [self._pages]


def _is_anonymous(environ: Mapping[str, Any]) -> bool:
    cookies = parse_cookie(environ.get("HTTP_COOKIE", ""))
    return environ["PATH_INFO"] == LOGIN_PATH or settings.SESSION_COOKIE_NAME not in cookies
