"""Exit codes, and which error ends with which."""

import json
from enum import IntEnum

from thaiqr.attempts import IN_PROGRESS
from thaiqr.errors import (
    ApiError,
    AuthenticationError,
    NetworkError,
    RateLimitError,
    ServerError,
    ThaiQRError,
    UnexpectedResponseError,
)


class Exit(IntEnum):
    """Why a command ended."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    NOT_AUTHENTICATED = 3
    NETWORK = 4
    WRONG_PAYLOAD = 5
    NOT_PAID = 6
    INTERRUPTED = 130


HELP = (
    "Exit codes: 0 done, 1 refused by the API, 2 wrong usage, 3 no valid key, 4 no usable answer (the "
    "service cannot be reached, has trouble or limits requests), 5 wrong payload (lint) or false evidence "
    "(verify), 6 not paid or not completed (--wait), 130 ended by Ctrl-C."
)


def exit_of(error: ThaiQRError) -> Exit:
    """The exit code of an error."""
    if isinstance(error, AuthenticationError):
        return Exit.NOT_AUTHENTICATED
    if isinstance(error, NetworkError | ServerError | RateLimitError | UnexpectedResponseError):
        return Exit.NETWORK
    # Another request with this key is still running, and may move the money.
    if isinstance(error, ApiError) and error.code == IN_PROGRESS:
        return Exit.NETWORK
    return Exit.REFUSED


def describe(error: ThaiQRError) -> str:
    """An error for people, in one or two lines."""
    if not isinstance(error, ApiError):
        return str(error)
    rule = " ".join(filter(None, [error.param, error.detail]))
    said = ". ".join(part.rstrip(".") for part in (error.message, rule) if part)
    request = f", request {error.request_id}" if error.request_id else ""
    return f"{said}. [{error.code}{request}]"


def as_json(error: ThaiQRError) -> str:
    """An error for programs."""
    if not isinstance(error, ApiError):
        return json.dumps({"error": {"code": "client_error", "message": str(error)}})
    shown = {
        "code": error.code,
        "type": error.type,
        "message": error.message,
        "param": error.param,
        "detail": error.detail,
        "payment_id": error.payment_id,
        "status": error.status,
        "request_id": error.request_id,
    }
    return json.dumps({"error": shown}, ensure_ascii=False)
