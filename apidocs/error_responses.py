"""The error responses of operations, from the catalogue of errors."""

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from itertools import groupby
from operator import attrgetter

from drf_spectacular.plumbing import ComponentRegistry, ResolvedComponent

from apidocs.components import PARTS, Json
from core import errors
from core.errors import CATALOGUE, ApiError
from core.http.openapi import Operation
from core.http.responses import JSON
from idempotency.errors import IdempotencyKeyInProgress, IdempotencyKeyReused, InvalidIdempotencyKey
from merchants.errors import (
    AuthenticationFailed,
    InsufficientScope,
    MerchantMoved,
    MerchantSuspended,
    RateLimitExceeded,
    TooManyExports,
    TooManyRefusedKeys,
)

ErrorType = type[ApiError]

ALWAYS_POSSIBLE: list[ErrorType] = [errors.InternalError, errors.ServiceUnavailable]
KEY_ERRORS: list[ErrorType] = [
    *(AuthenticationFailed, InsufficientScope, MerchantMoved, MerchantSuspended),
    *(RateLimitExceeded, TooManyRefusedKeys),
]
BODY_ERRORS: list[ErrorType] = [errors.RequestTooLarge, errors.RequestTimeout, errors.UnsupportedMediaType]
JSON_ERRORS: list[ErrorType] = [errors.InvalidRequest]
IDEMPOTENCY_ERRORS: list[ErrorType] = [InvalidIdempotencyKey, IdempotencyKeyReused, IdempotencyKeyInProgress]
CODES_OF_COMMANDS = {"merchant_not_found", "key_not_found", "key_not_rollable"}
RETRY_AFTER_STATUSES = {409, 429, 503}


def errors_of(operation: Operation, *, is_merchant_api: bool, method: str) -> list[ErrorType]:
    """The errors of an operation: its own, those of its fields, and those of its kind."""
    own = [CATALOGUE[code] for code in operation.errors]
    found = [*ALWAYS_POSSIBLE, *own]
    if operation.body is not None:
        found += [CATALOGUE[f"invalid_{name}"] for name in operation.body.serializer().fields]
    sends = method in {"POST", "PATCH"}
    found += BODY_ERRORS if sends else []
    if is_merchant_api:
        found += KEY_ERRORS
        found += JSON_ERRORS if sends else []
        found += IDEMPOTENCY_ERRORS if method == "POST" else []
        found += [errors.InvalidParameters] if operation.query else []
        found += [TooManyExports] if operation.is_list else []
    else:
        found += [errors.InvalidHost]
    return list(dict.fromkeys(found))


def responses(name: str, errors: Iterable[ErrorType], registry: ComponentRegistry) -> dict[str, Json]:
    """References to one response for each status; operations with the same errors share it."""
    found: dict[str, Json] = {}
    for status, of_status in by_status(errors).items():
        codes = [_pascal(error_type.code) for error_type in of_status]
        title = "Or".join(codes) if len(codes) < 3 else f"{_pascal(name)}{status}"
        schema = response(status, of_status, registry)
        found[str(status)] = _component(title, ResolvedComponent.RESPONSE, schema, registry)
    return found


def by_status(errors: Iterable[ErrorType]) -> dict[int, list[ErrorType]]:
    status_of = attrgetter("status")
    return {status: list(found) for status, found in groupby(sorted(errors, key=status_of), key=status_of)}


def headers(names: Iterable[str]) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def response(status: int, errors: Sequence[ErrorType], registry: ComponentRegistry) -> Json:
    names = ["X-Request-Id", *(["Retry-After"] if status in RETRY_AFTER_STATUSES else [])]
    return {
        "description": HTTPStatus(status).phrase,
        "headers": headers([*names, *(["WWW-Authenticate"] if status == 401 else [])]),
        "content": {
            JSON: {
                "schema": _component("Error", ResolvedComponent.SCHEMA, PARTS["error"], registry),
                "examples": {error_type.code: _example(error_type) for error_type in errors},
            }
        },
    }


def _component(name: str, kind: str, schema: Json, registry: ComponentRegistry) -> Json:
    """A reference to a part of the document that several operations share."""
    component = ResolvedComponent(name=name, type=kind, schema=schema, object=name)
    registry.register_on_missing(component)
    reference: Json = component.ref
    return reference


def _example(error_type: ErrorType) -> Json:
    sample_id = PARTS["sample_ids"].get(error_type.code)
    message = error_type.message.format(id=sample_id, **PARTS["sample_values"])
    return {"value": {"error": {"code": error_type.code, "message": message, "type": error_type.type}}}


def _pascal(code: str) -> str:
    return "".join(word.capitalize() for word in code.split("_"))
