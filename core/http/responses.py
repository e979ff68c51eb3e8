"""Responses of the API as bytes, and the envelope of errors."""

from dataclasses import dataclass, field
from typing import Any

import orjson
from django.http import HttpResponse

from core.errors import ApiError
from core.observing.logs import redact

JSON = "application/json"
CSV = "text/csv"
MAX_BODY = 65_536  # bytes of a request


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """A complete response. `body` is sent, stored with the idempotency key, and replayed."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Any, status: int = 200, headers: dict[str, str] | None = None) -> "ApiResponse":
        return cls(status, orjson.dumps(data), headers or {})


class DjangoResponse(HttpResponse):
    """An `ApiResponse` for Django. Its end is no event: listeners would cost a poll 3 % and do nothing."""

    def close(self) -> None:
        self.closed = True


def to_django(response: ApiResponse) -> HttpResponse:
    return DjangoResponse(response.body, status=response.status, content_type=JSON, headers=response.headers)


def error_response(error: ApiError, request_id: str = "") -> ApiResponse:
    """The one error envelope; 5xx bodies carry the request id so that support can find the log line."""
    # Some messages repeat input, which may contain a key that was pasted into the wrong field.
    detail: dict[str, object] = {"code": error.code, "message": redact(error.text), "type": error.type}
    if error.param is not None:
        detail["param"] = error.param
    if error.detail is not None:
        detail["detail"] = redact(error.detail)
    if error.status >= 500:
        detail["request_id"] = request_id
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return ApiResponse(error.status, orjson.dumps({"error": detail | error.extra}), headers)
