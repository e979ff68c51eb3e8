"""Families of errors and the catalogue of codes. Each app declares its errors in `errors.py`."""

import builtins
from typing import ClassVar, Self

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

    @classmethod
    def of(cls, code: str, message: str, *, status: int | None = None) -> builtins.type[Self]:
        """An error that differs from this one in nothing else."""
        fields = {"code": code, "message": message, "status": status or cls.status}
        return type(code.title().replace("_", ""), (cls,), fields)

    @classmethod
    def worded(cls, message: str) -> builtins.type[Self]:
        """The same code with another message."""
        return type(cls.__name__, (cls,), {"message": message})

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


InvalidRequest = Invalid.of("invalid_request", "The request is not valid: {reason}.")
MalformedRequest = InvalidRequest.worded("The request is malformed.")


class InvalidParameters(Invalid):
    code = "invalid_parameters"
    message = "{param} {rule}. Received: {received}."


TooManyParameters = InvalidParameters.worded("The query has too many parameters.")
FieldNotChangeable = Invalid.of(
    "field_not_changeable", "{param} cannot be changed. Only these fields can: {fields}."
)
InvalidHost = Invalid.of("invalid_host", "The Host header does not name this service.")
UnsupportedMediaType = Invalid.of(
    "unsupported_media_type",
    "The body must be application/json in UTF-8, without Content-Encoding. Received: {received}.",
    status=415,
)
InvalidQrData = Invalid.of("invalid_qr_data", "qr_data must be the text of a QR code. Received: {received}.")
RequestTooLarge = Invalid.of("request_too_large", "The request body is larger than 64 kB.", status=413)
RequestTimeout = Invalid.of("request_timeout", "The request body did not arrive in time.", status=408)
PathNotFound = NotFound.of("not_found", "This path does not exist.")
MethodNotAllowed = NotFound.of("method_not_allowed", "This path does not support {method}.", status=405)
InternalError = Fault.of(
    "internal_error", "An internal error occurred. Try again. If the error stays, report the request id."
)
ServiceUnavailable = Fault.of(
    "service_unavailable", "The service cannot answer right now. Try again shortly.", status=503
)


def invalid_field(name: str, rule: str) -> type[Invalid]:
    """Declare `invalid_<name>`, the code for a field of that name that is not `rule`, on any endpoint."""
    message = f"{name} must be {rule}. Received: {{received}}."
    return type(f"Invalid_{name}", (Invalid,), {"code": f"invalid_{name}", "message": message})
