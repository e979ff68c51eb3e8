"""Decides who may upload before the body is read. A cookie, a link or a key that looks right proves nothing.

Cheap checks come first: the path and the shape of cookie or link (`core.http.uploads`), then a rate limit for
each address in Redis, and then the database. One thread of each kind asks the database, so invented cookies,
links and keys delay only uploads of their kind.
"""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.db import connections, transaction
from django.http import HttpRequest

from config import concurrency
from config.concurrency import Limit, LimitByName, OverloadedError
from core import clock, request_context
from core.database.availability import CONNECTION_ERRORS
from core.http import client_addresses, rate_limits, uploads
from core.http.rate_limits import RateLimit
from core.http.uploads import UploadKind
from merchants.errors import RateLimitExceeded

# How often one address may ask. Staff and payers do not upload faster.
LOOKUP_RATE = RateLimit(per_second=1.0, burst=20)
# Above the rate of the claim page, which then says why it refuses.
CLAIM_LOOKUP_RATE = RateLimit(per_second=1.0, burst=40)
# Above the rate of checks, which then says when to try again.
SLIP_LOOKUP_RATE = RateLimit(per_second=10.0, burst=100)
Meta = Mapping[str, Any]
FindUploader = Callable[[Meta], str | None]


class UploadGate:
    """Asks `find_uploader` in a thread of its own, for a bounded number of requests.

    Then `number` uploads are read at once, one of each uploader.
    """

    def __init__(self, find_uploader: FindUploader, number: int) -> None:
        self._uploader_of = find_uploader
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="upload-gate")
        self._lookups = Limit(1)
        self._of_one = LimitByName(1)
        self._of_all = LimitByName(number)

    async def acquire(self, uploader: str, held: ExitStack) -> None:
        """Wait for a slot of the uploader and for one of the process, until the end of `held`."""
        await self._of_one.acquire(uploader, held)
        await self._of_all.acquire("", held)

    async def find_uploader(self, meta: Meta) -> str | None:
        """Who may upload, or None. Raises OverloadedError, and what `find_uploader` raises."""
        held = ExitStack()
        await self._lookups.acquire(held)
        lookup = asyncio.get_running_loop().run_in_executor(self._thread, self._uploader_of, meta)
        # The thread works until then, even if the client has disconnected.
        lookup.add_done_callback(partial(_end_lookup, held))
        answered, _ = await asyncio.wait([lookup], timeout=concurrency.WAIT_SECONDS)
        if not answered:
            raise OverloadedError
        return lookup.result()


def _end_lookup(held: ExitStack, lookup: "asyncio.Future[str | None]") -> None:
    held.close()
    if not lookup.cancelled():
        lookup.exception()  # marks it as retrieved: perhaps nobody waits for it any more


def find_uploader(meta: Meta) -> str | None:
    """The id of the user of this session, with the permission for the path. Raises OverloadedError."""
    return _within_rate(meta, "uploads", LOOKUP_RATE, _permitted_user_id)


def find_claim_link(meta: Meta) -> str | None:
    """The id of the claim link, if its payer may name an account. Raises OverloadedError."""
    return _within_rate(meta, "claim-uploads", CLAIM_LOOKUP_RATE, _claim_link_id)


def find_merchant(meta: Meta) -> str:
    """The id of the merchant of this key. Raises what refuses it or its address, and OverloadedError."""
    found = _within_rate(meta, "slip-uploads", SLIP_LOOKUP_RATE, _merchant_id)
    if found is None:
        raise RateLimitExceeded(retry_after=1)
    return found


FINDERS: dict[UploadKind, FindUploader] = {
    UploadKind.STAFF: find_uploader,
    UploadKind.CLAIM: find_claim_link,
    UploadKind.SLIP: find_merchant,
}


def _within_rate(meta: Meta, name: str, rate: RateLimit, look_up: Callable[..., str | None]) -> str | None:
    """None too for an address that asks too often. Raises OverloadedError if no database can be reached."""
    request = HttpRequest()
    request.META = dict(meta)
    network = client_addresses.network_of(client_addresses.address_of(request), ipv6_bits=64)
    limit = rate_limits.consume(f"{name}:{network}", rate)
    if limit is not None and not limit.allowed:
        return None
    try:
        return look_up(request)
    except CONNECTION_ERRORS:
        raise OverloadedError from None
    finally:
        # Uploads are rare, so this thread keeps no database connection.
        connections.close_all()


def _permitted_user_id(request: HttpRequest) -> str | None:
    # The web server loads this module before Django is set up.
    from console.people import sign_in
    from core.console.sites import SHOP
    from shop import entrance

    session_key = uploads.session_key_of(request.META)
    permission = uploads.permission_of(request.META["PATH_INFO"])
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    # Django renews a session that an older SECRET_KEY signed. Only the page can send the new cookie.
    with transaction.atomic():
        request.user = get_user(request)
        # On pages of a shop the membership gives rights, and not the user.
        if request.META["PATH_INFO"].startswith(SHOP):
            is_known = entrance.enter(request) is not None
        else:
            is_known = request.user.is_active and request.user.is_staff
        user = request.user
        is_permitted = is_known and sign_in.is_complete(request) and sign_in.touch(session_key)
        transaction.set_rollback(True)
    return str(user.pk) if is_permitted and permission and user.has_perm(permission) else None


def _merchant_id(request: HttpRequest) -> str:
    from merchants import authentication  # only here, for the same reason

    address = client_addresses.address_of(request)
    request_context.begin(request_id="", address=address)
    merchant, _, _ = authentication.authenticate_headers(request.META, authentication.NOTHING_ELSE, {})
    return str(merchant.id)


def _claim_link_id(request: HttpRequest) -> str | None:
    from refunds import claims  # only here, for the same reason

    try:
        link = claims.open_link(uploads.claim_token_of(request.META), now=clock.now())
    except claims.ClaimRefused:
        return None
    return link.id if link.takes_an_account else None
