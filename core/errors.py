"""Families of errors and the catalogue of codes. Each app declares its errors in `errors.py`."""

from typing import ClassVar

from django.utils.translation import gettext

NOTHING = "nothing"
"""What a message says was received if there was no value."""
CATALOGUE: dict[str, type["ApiError"]] = {}
"""The class of each code."""
MESSAGES: dict[str, list[type["ApiError"]]] = {}
"""The classes of each code: its own, and a subclass without a code for each other message of it."""


class ApiError(Exception):
    """A refusal that the caller can act on; `core.http.api` alone turns it into HTTP.

    `message` may hold `{placeholders}` filled from keyword arguments; `param` names the field at fault, and
    `detail` the rule that it breaks.
    """

    status: ClassVar[int] = 400
    type: ClassVar[str] = "validation_error"
    # Whether the refused request was valid, so that its idempotency key is for a retry of it only.
    keeps_key: ClassVar[bool] = False
    code: ClassVar[str]
    message: ClassVar[str]

    def __init_subclass__(cls) -> None:
        if "code" in cls.__dict__:
            CATALOGUE[cls.code] = cls
        if hasattr(cls, "code"):
            MESSAGES.setdefault(cls.code, []).append(cls)

    def __init__(
        self,
        *,
        param: str | None = None,
        detail: str | None = None,
        retry_after: int | None = None,
        **context: object,
    ) -> None:
        self.context = {"param": param, "retry_after": retry_after, "received": NOTHING} | context
        self.text = self.message.format(**self.context)
        self.param = param
        self.detail = detail
        self.retry_after = retry_after
        self.extra: dict[str, object] = {}
        super().__init__(self.text)

    @property
    def translated(self) -> str:
        """The text in the language of the reader, for the console. Answers of the API are English."""
        return gettext(self.message).format(**self.context)


class Invalid(ApiError):
    """The request is wrong; repeating it does not help."""


class StateError(Invalid):
    """The request is valid, but the state of an object forbids it. It may succeed later."""

    keeps_key = True


class AuthenticationError(ApiError):
    status = 401
    type = "authentication_error"


class NotPermitted(ApiError):
    status = 403
    type = "permission_error"


class NotFound(ApiError):
    status = 404
    type = "not_found"
    keeps_key = True


class PaymentError(ApiError):
    status = 402
    type = "payment_error"
    keeps_key = True


class IdempotencyError(ApiError):
    status = 409
    type = "idempotency_error"


class RateLimitError(ApiError):
    status = 429
    type = "rate_limit_error"


class Fault(ApiError):
    """Our side failed; the caller may try again."""

    status = 500
    type = "api_error"


class Busy(Fault):
    """Too many requests of one kind, or a third party is down. The caller may try again."""

    status = 503


class InvalidRequest(Invalid):
    code = "invalid_request"
    message = "The request is not valid: {reason}."


class MalformedRequest(InvalidRequest):
    message = "The request is malformed."


class InvalidParameters(Invalid):
    code = "invalid_parameters"
    message = "{param} {rule}. Received: {received}."


class TooManyParameters(InvalidParameters):
    message = "The query has too many parameters."


class FieldNotChangeable(Invalid):
    code = "field_not_changeable"
    message = "{param} cannot be changed. Only these fields can: {fields}."


class InvalidHost(Invalid):
    code = "invalid_host"
    message = "The Host header does not name this service."


class UnsupportedMediaType(Invalid):
    status = 415
    code = "unsupported_media_type"
    message = "The body must be application/json in UTF-8, without Content-Encoding. Received: {received}."


class InvalidQrData(Invalid):
    code = "invalid_qr_data"
    message = "qr_data must be the text of a QR code. Received: {received}."


class RequestTooLarge(Invalid):
    status = 413
    code = "request_too_large"
    message = "The request body is larger than 64 kB."


class RequestTimeout(Invalid):
    status = 408
    code = "request_timeout"
    message = "The request body did not arrive in time."


class PathNotFound(NotFound):
    code = "not_found"
    message = "This path does not exist."


class MethodNotAllowed(NotFound):
    status = 405
    code = "method_not_allowed"
    message = "This path does not support {method}."


class InternalError(Fault):
    code = "internal_error"
    message = "An internal error occurred. Try again. If the error stays, report the request id."


class ServiceUnavailable(Fault):
    status = 503
    code = "service_unavailable"
    message = "The service cannot answer right now. Try again shortly."


def invalid_field(name: str, rule: str) -> type[Invalid]:
    """Declare `invalid_<name>`, the code for a field of that name that is not `rule`, on any endpoint."""
    message = f"{name} must be {rule}. Received: {{received}}."
    return type(f"Invalid_{name}", (Invalid,), {"code": f"invalid_{name}", "message": message})
