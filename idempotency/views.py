"""`@idempotent`: the decorator for every POST of the merchant API."""

import unicodedata
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from rest_framework.request import Request

from core import clock
from core.errors import ApiError
from core.http import received
from core.http.responses import ApiResponse
from idempotency import services
from idempotency.errors import InvalidIdempotencyKey
from idempotency.fingerprint import Fingerprint
from idempotency.keys import KeyedRequest
from idempotency.services import Job
from merchants.api import merchant_of

MAX_KEY_LENGTH = 255
Handler = Callable[..., Job]


def idempotent(handler: Handler, *, looks_first: bool = True) -> Callable[..., ApiResponse]:
    """Run the job that the handler returns, once. The handler validates outside of transactions.

    looks_first: look for the answer of an earlier request before the handler runs.
    """

    @wraps(handler)
    def handle(view: Any, request: Request, **kwargs: Any) -> ApiResponse:
        key = read_key(request)
        body = request.data  # parses the body here, also if no field is used
        if key is None:
            return services.run_without_key(handler(view, request, **kwargs))
        operation = "/".join([type(view).__name__, view.action, *map(str, kwargs.values())])
        fingerprint = Fingerprint.of(method=str(request.method), operation=operation, body=body)
        keyed_request = KeyedRequest(merchant_of(request), key, fingerprint, clock.now())
        if looks_first and (answer := services.find_answer(keyed_request)) is not None:
            return answer
        try:
            job = handler(view, request, **kwargs)
        except ApiError as refusal:
            if refusal.keeps_key:
                return services.refuse(keyed_request, refusal)
            # A repeat gets the first answer, and another request under a used key gets 409, also if invalid.
            answer = services.find_answer(keyed_request)
            if answer is None:
                raise
            return answer
        return services.run_once(keyed_request, job)

    return handle


# For a handler that changes nothing itself and returns an InsertJob. The insert finds a repeat, which saves
# the query before it.
idempotent_insert = partial(idempotent, looks_first=False)


def read_key(request: Request) -> str | None:
    """The key of the request, or None. Raises InvalidIdempotencyKey for a malformed key."""
    raw: str | None = request.META.get("HTTP_IDEMPOTENCY_KEY")
    if raw is None:
        return None
    if raw.isascii() and raw.isprintable() and raw.strip() and len(raw) <= MAX_KEY_LENGTH:
        return raw
    try:
        # WSGI decodes headers as latin-1. The length is counted in UTF-8 characters.
        key: str = raw.encode("latin-1").decode("utf-8")
    except UnicodeError:
        raise InvalidIdempotencyKey(received="bytes that are not UTF-8") from None
    if not key.strip() or len(key) > MAX_KEY_LENGTH or any(unicodedata.category(c) == "Cc" for c in key):
        raise InvalidIdempotencyKey(received=received.describe(key, is_shown=False))
    return key
