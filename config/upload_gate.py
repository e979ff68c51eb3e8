"""Who may upload, decided before the body is read: a session cookie alone proves nothing.

The cheap checks come first: path and shape of the cookie (`core.uploads`), then a rate for each address in
Redis, and only then the database. One thread asks it, so strangers with invented cookies delay each other and
nobody else.
"""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.db import InterfaceError, OperationalError, connections, transaction
from django.http import HttpRequest

from config.places import NoPlaceError
from core import addresses, rates, uploads
from core.rates import Rate

# How often one address may ask. Staff do not upload faster.
RATE = Rate(per_second=1.0, burst=20)
MOST_WAITING = 8
WAIT_SECONDS = 10.0
Environ = Mapping[str, Any]
UploaderOf = Callable[[Environ], str | None]


class UploadGate:
    """Asks `uploader_of` in a thread of its own, for a bounded number of requests."""

    def __init__(self, uploader_of: UploaderOf) -> None:
        self._uploader_of = uploader_of
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="upload-gate")
        self._waiting = 0

    async def uploader_of(self, environ: Environ) -> str | None:
        """The user who may upload, None if nobody may. Raises NoPlaceError."""
        if not uploads.session_key_of(environ):
            return None
        if self._waiting >= MOST_WAITING:
            raise NoPlaceError
        self._waiting += 1
        asked = asyncio.get_running_loop().run_in_executor(self._thread, self._uploader_of, environ)
        # Also where nobody waits for the answer any more, the thread is at it until then.
        asked.add_done_callback(self._answered)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                return await asyncio.shield(asked)
        except TimeoutError:
            raise NoPlaceError from None

    def _answered(self, asked: "asyncio.Future[str | None]") -> None:
        self._waiting -= 1
        if not asked.cancelled():
            asked.exception()  # it is told to whoever waited


def uploader_of(environ: Environ) -> str | None:
    """The id of the user whose session this is, if they have the permission for the path.

    Raises NoPlaceError while the database is away.
    """
    request = HttpRequest()
    request.META = dict(environ)
    network = addresses.network_of(addresses.address_of(request), ipv6_bits=64)
    room = rates.take(f"uploads:{network}", RATE)
    if room is not None and not room.allowed:
        return None
    try:
        return _permitted(request, uploads.session_key_of(environ), uploads.PATHS[environ["PATH_INFO"]])
    except (OperationalError, InterfaceError):
        raise NoPlaceError from None
    finally:
        # Uploads are rare: this thread keeps no connection of the database for itself.
        connections.close_all()


def _permitted(request: HttpRequest, session_key: str, permissions: frozenset[str]) -> str | None:
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    # Django renews the key of a session that a former SECRET_KEY signed. Only the page can tell the browser.
    with transaction.atomic():
        user = get_user(request)
        transaction.set_rollback(True)
    is_permitted = user.is_active and user.is_staff and any(user.has_perm(each) for each in permissions)
    return str(user.pk) if is_permitted else None
