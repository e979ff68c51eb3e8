"""What can go wrong. Every exception of this package is a `ThaiQRError`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thaiqr.models import Payment


class ThaiQRError(Exception):
    """The base of all exceptions of this package."""


class NetworkError(ThaiQRError):
    """The service could not be reached, or did not answer in time, also after all retries.

    A POST may have been carried out. Send it again with the same `idempotency_key`.
    """

    def __init__(self, message: str, *, idempotency_key: str | None = None) -> None:
        super().__init__(message)
        self.idempotency_key = idempotency_key


class UnexpectedResponseError(ThaiQRError):
    """The answer does not come from this API: no JSON, a redirect, or a required field is missing."""


class NotPaidError(ThaiQRError):
    """A payment was not paid: it failed, expired, was refunded, or is still pending. See `payment.status`."""

    def __init__(self, payment: "Payment") -> None:
        super().__init__(f"{payment.payment_id} is {payment.status}.")
        self.payment = payment


class SignatureError(ThaiQRError):
    """A webhook is not genuine, or too old. Answer it with 400 and do nothing else."""


class ApiError(ThaiQRError):
    """The API refused a request. Compare `code`; show `message` and `detail` to people.

    status: HTTP status. param: the field at fault. detail: the rule that it breaks. payment_id: the failed
    payment of a declined card. retry_after: seconds to wait. request_id: name it when you ask for support.
    idempotency_key: the key of the request, for sending a POST again.
    """

    def __init__(
        self,
        error: Mapping[str, Any],
        *,
        status: int,
        request_id: str | None = None,
        retry_after: int | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        self.status = status
        self.code: str = str(error.get("code", ""))
        self.type: str = str(error.get("type", ""))
        self.message: str = str(error.get("message", ""))
        self.param: str | None = error.get("param")
        self.detail: str | None = error.get("detail")
        self.payment_id: str | None = error.get("payment_id")
        self.request_id = request_id
        self.retry_after = retry_after
        self.idempotency_key = idempotency_key
        super().__init__(f"{self.message} ({self.code}, {status})")


class ValidationError(ApiError):
    """The request or the state of the object does not allow it: 400, 408, 413, 415, 422."""


class AuthenticationError(ApiError):
    """The API key is missing or not valid: 401."""


class PermissionDeniedError(ApiError):
    """The key lacks a scope, or may not do this: 403."""


class NotFoundError(ApiError):
    """No such object or path: 404, 405, 410."""


class PaymentError(ApiError):
    """A card was declined, or the balance does not cover the amount: 402."""


class IdempotencyError(ApiError):
    """The idempotency key belongs to another request, or that request still runs: 409."""


class RateLimitError(ApiError):
    """Too many requests: 429. `retry_after` says how long to wait."""


class ServerError(ApiError):
    """The service could not answer, also after all retries: 5xx."""


BY_TYPE: Mapping[str, type[ApiError]] = {
    "validation_error": ValidationError,
    "authentication_error": AuthenticationError,
    "permission_error": PermissionDeniedError,
    "not_found": NotFoundError,
    "payment_error": PaymentError,
    "idempotency_error": IdempotencyError,
    "rate_limit_error": RateLimitError,
    "api_error": ServerError,
}
"""The class of each `error.type`. A type that this version does not know is an `ApiError`."""
