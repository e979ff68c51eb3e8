"""How many requests to the console a web process works on at once.

They wait for a place on the event loop and not in a thread, so that payments always find a free thread.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import parse_cookie

PREFIX = "/admin/"
LOGIN = "/admin/login/"
WAIT_SECONDS = 10.0
# Requests that wait for one place. Further ones are refused at once.
MOST_WAITING = 16


class NoPlaceError(Exception):
    """Too many requests wait already, or this one has waited too long."""


class Places:
    """A bounded number of requests at once, and a bounded number that wait."""

    def __init__(self, number: int) -> None:
        self._free = asyncio.Semaphore(number)
        self._waiting = 0

    async def take(self, answered: "asyncio.Future[Any]") -> None:
        """Hold a place until `answered` is done. Raises NoPlaceError."""
        if self._waiting >= MOST_WAITING:
            raise NoPlaceError
        self._waiting += 1
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._free.acquire()
        except TimeoutError:
            raise NoPlaceError from None
        finally:
            self._waiting -= 1
        answered.add_done_callback(lambda _: self._free.release())


class ConsolePlaces:
    """Half of the threads serve the console; one of these serves all who are not logged in."""

    def __init__(self, threads: int) -> None:
        self._pages = Places(max(1, threads // 2))
        self._strangers = Places(1)

    async def take(self, environ: Mapping[str, Any], answered: "asyncio.Future[Any]") -> None:
        """Hold a place until `answered` is done; other paths need none. Raises NoPlaceError."""
        if not environ["PATH_INFO"].startswith(PREFIX):
            return
        try:
            if _is_stranger(environ):
                await self._strangers.take(answered)
            await self._pages.take(answered)
        except BaseException:
            answered.cancel()
            raise


def _is_stranger(environ: Mapping[str, Any]) -> bool:
    cookies = parse_cookie(environ.get("HTTP_COOKIE", ""))
    return environ["PATH_INFO"] == LOGIN or settings.SESSION_COOKIE_NAME not in cookies
