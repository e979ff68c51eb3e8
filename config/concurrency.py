"""How many requests of one kind or one key the threads of a web process serve at once.

Requests over a limit wait on the event loop and not in a thread, so payments always find a free thread.
"""

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any
from weakref import WeakValueDictionary

from django.conf import settings
from django.http import parse_cookie

from core.console.sites import PREFIXES
from core.http import uploads
from core.http.uploads import UploadKind

# A POST to these waits for an acquirer, in threads of its own.
CARD_PAYMENT_PATHS = {"/v1/payments", "/Thai/v1/payments"}
# Threads of the card pool for each slot of CARD_CONCURRENCY: replays, refusals and waiting repeats need some.
THREADS_PER_CALL = 2
MONITORING_PATHS = {"/metrics", "/readyz"}
DOCUMENT_PATHS = ("/guide", "/docs", "/openapi.", "/postman.json", "/llms.txt")
LOGIN_PATHS = {"/admin/login/", "/shop/login/"}
WAIT_SECONDS = 10.0
# Requests that wait for one slot. Further ones are refused at once.
MAX_WAITING = 16


def is_card_payment(meta: Mapping[str, Any]) -> bool:
    return meta["REQUEST_METHOD"] == "POST" and meta["PATH_INFO"] in CARD_PAYMENT_PATHS


class OverloadedError(Exception):
    """Too many requests wait already, or this one has waited too long."""


class Limit:
    """A bounded number of requests at once, and a bounded number that wait."""

    def __init__(self, number: int) -> None:
        self._free = asyncio.Semaphore(number)
        self._waiting = 0

    async def acquire(self, held: ExitStack) -> None:
        """Take a slot, which the end of `held` gives back. Raises OverloadedError."""
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
        held.callback(self._free.release)


class LimitByName:
    """A bounded number of requests at once of each name. Any number waits, as long as its client does."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._in_use: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def acquire(self, name: str, held: ExitStack) -> None:
        """Take a slot of this name, which the end of `held` gives back."""
        free = self._in_use.setdefault(name, asyncio.Semaphore(self._number))
        await free.acquire()
        held.callback(free.release)

    def __len__(self) -> int:
        return len(self._in_use)


class Limits:
    """Half of the threads serve the console and shops; one of them serves everybody who is not logged in.

    A quarter serves forms of claim pages, which wait until the picture of a slip is read. Half serve one key
    of the API, and one of these its lists that name a `limit`, of up to 100 rows: a merchant that reads them
    leaves the others to its neighbours. One serves each page of monitoring, so those who read it wait for
    each other, and get one answer a second, and one all documents.
    """

    def __init__(self, threads: int) -> None:
        half = max(1, threads // 2)
        self._pages, self._anonymous = Limit(half), Limit(1)
        self._claims = Limit(max(1, threads // 4))
        self._keys, self._lists = LimitByName(half), LimitByName(1)
        self._pages_of_anybody = LimitByName(1)

    async def acquire(self, meta: Mapping[str, Any], held: ExitStack) -> None:
        """Take the slots that the request needs, until the end of `held`. Raises OverloadedError."""
        if meta["PATH_INFO"].startswith(PREFIXES):
            cookies = parse_cookie(meta.get("HTTP_COOKIE", ""))
            if meta["PATH_INFO"] in LOGIN_PATHS or settings.SESSION_COOKIE_NAME not in cookies:
                await self._anonymous.acquire(held)
            await self._pages.acquire(held)
        elif uploads.kind_of(meta) is UploadKind.CLAIM:
            await self._claims.acquire(held)
        elif meta["PATH_INFO"] in MONITORING_PATHS:
            await self._pages_of_anybody.acquire(meta["PATH_INFO"], held)
        elif meta["PATH_INFO"].startswith(DOCUMENT_PATHS):
            await self._pages_of_anybody.acquire("documents", held)
        elif "HTTP_AUTHORIZATION" in meta:
            # The word before the key has no meaning: any case of its letters is accepted.
            key = meta["HTTP_AUTHORIZATION"].partition(" ")[2]
            if "limit=" in meta["QUERY_STRING"]:
                await self._lists.acquire(key, held)
            await self._keys.acquire(key, held)
