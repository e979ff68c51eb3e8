"""Decides who may upload before the body is read. A session cookie alone proves nothing.

Cheap checks come first: the path and the shape of the cookie (`core.uploads`), then a rate limit for each
address in Redis, and then the database. One thread asks the database, so invented cookies delay only uploads.
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

from config.concurrency import OverloadedError
from core import client_addresses, rate_limits, uploads
from core.rate_limits import RateLimit

# How often one address may ask. Staff do not upload faster.
LOOKUP_RATE = RateLimit(per_second=1.0, burst=20)
MAX_WAITING = 8
WAIT_SECONDS = 10.0
Environ = Mapping[str, Any]
FindUploader = Callable[[Environ], str | None]


class UploadAuthorizer:
    """Asks `find_uploader` in a thread of its own, for a bounded number of requests."""

    def __init__(self, find_uploader: FindUploader) -> None:
        self._uploader_of = find_uploader
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="upload-gate")
        self._waiting = 0

    async def find_uploader(self, environ: Environ) -> str | None:
        """The user who may upload, or None, for a request with a session key. Raises OverloadedError."""
        if self._waiting >= MAX_WAITING:
            raise OverloadedError
        self._waiting += 1
        lookup = asyncio.get_running_loop().run_in_executor(self._thread, self._uploader_of, environ)
        # The thread works until then, even if the client has disconnected.
        lookup.add_done_callback(self._answered)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                return await asyncio.shield(lookup)
        except TimeoutError:
            raise OverloadedError from None

    def _answered(self, lookup: "asyncio.Future[str | None]") -> None:
        self._waiting -= 1
        if not lookup.cancelled():
            lookup.exception()  # marks it as retrieved; the waiting request has raised it


def find_uploader(environ: Environ) -> str | None:
    """The id of the user whose session this is, if they have the permission for the path.

    Raises OverloadedError while the database cannot be reached.
    """
    request = HttpRequest()
    request.META = dict(environ)
    network = client_addresses.network_of(client_addresses.address_of(request), ipv6_bits=64)
    limit = rate_limits.consume(f"uploads:{network}", LOOKUP_RATE)
    if limit is not None and not limit.allowed:
        return None
    try:
        return _permitted_user_id(
            request, uploads.session_key_of(environ), uploads.UPLOAD_PERMISSIONS[environ["PATH_INFO"]]
        )
    except (OperationalError, InterfaceError):
        raise OverloadedError from None
    finally:
        # Uploads are rare, so this thread keeps no database connection.
        connections.close_all()


def _permitted_user_id(request: HttpRequest, session_key: str, permission: str) -> str | None:
    from console.people import sign_in  # the web server loads this module before Django is set up

    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    # Django renews a session that an older SECRET_KEY signed. Only the page can send the new cookie.
    with transaction.atomic():
        request.user = user = get_user(request)
        is_permitted = user.is_active and user.is_staff and sign_in.is_complete(request)
        transaction.set_rollback(True)
    return str(user.pk) if is_permitted and user.has_perm(permission) else None
