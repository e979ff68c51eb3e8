"""The error responses of operations, from the catalogue of errors."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any

from drf_spectacular.plumbing import ComponentRegistry, ResolvedComponent

from core import errors
from core.errors import CATALOGUE, ApiError
from core.http import JSON
from core.objects import id_schema
from core.openapi import Operation
from idempotency.errors import IdempotencyKeyInProgress, IdempotencyKeyReused, InvalidIdempotencyKey
from merchants.errors import (
    AuthenticationFailed,
    InsufficientScope,
    RateLimitExceeded,
    TooManyExports,
    TooManyRefusedKeys,
)

Json = dict[str, Any]
ErrorType = type[ApiError]

ALWAYS_POSSIBLE: list[ErrorType] = [errors.InternalError, errors.ServiceUnavailable]
KEY_ERRORS: list[ErrorType] = [AuthenticationFailed, InsufficientScope, RateLimitExceeded, TooManyRefusedKeys]
BODY_ERRORS: list[ErrorType] = [errors.RequestTooLarge, errors.RequestTimeout, errors.UnsupportedMediaType]
JSON_ERRORS: list[ErrorType] = [errors.InvalidRequest]
IDEMPOTENCY_ERRORS: list[ErrorType] = [InvalidIdempotencyKey, IdempotencyKeyReused, IdempotencyKeyInProgress]
# Codes of no operation: methods without a description, and commands.
CODES_OF_NO_OPERATION = {"method_not_allowed"}
CODES_OF_COMMANDS = {"merchant_not_found", "key_not_found", "key_not_rollable"}
# Example values for the placeholders of messages.
SAMPLE_VALUES = {
    "status": "expired",
    "left": "500.00 THB",
    "seconds_left": "3600",
    "whole": "1,500.00 THB",
    "method": "PUT",
    "retry_after": "1",
    "name": "somebank",
    "limit": "20",
    "scope": "withdrawals:write",
    "why": "it is accepted",
    "usable_at": "2026-11-22T03:04:05.123Z",
    "param": "limit",
    "rule": "must be an integer from 1 to 100",
    "received": '"101"',
    "fields": "url, events, status",
    "reason": "the body is not JSON at character 17",
}
SAMPLE_IDS = {
    "payment_not_found": "pay_0oDFPZjiZAWmp6O2BO6aMzhgtUt",
    "reference_in_use": "qr_0oDFPXZGqcZBZBvfqisJHCvwJvO",
    "qr_code_not_found": "qr_0oDFPXZGqcZBZBvfqisJHCvwJvO",
    "exception_not_found": "rcp_0oDFPauQc2XhYkVb7TfJ9mRwZsN",
    "refund_not_found": "ref_0oDFPh3pEwVnYw5cJm8qTzLxKd2",
    "webhook_not_found": "wh_0oDFPev2meeI9Zar81ilSZQbdAw",
    "delivery_not_found": "dlv_0oDFPb5YgQm2vHc8KpXtR4sWnZe",
    "event_not_found": "evt_0oDFPazyVRoGTTDIuRe7QK7m3b4",
    "withdrawal_not_found": "wd_0oDFPXrTS4spMBBZozkykNHKN2t",
}
RETRY_AFTER_STATUSES = {409, 429, 503}

HEADERS: Json = {
    "X-Request-Id": {
        "description": "Names this request in our logs.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
    },
    "Idempotent-Replayed": {
        "description": "`true` when this is the stored answer of an earlier request.",
        "schema": {"type": "string", "enum": ["true"]},
    },
    "Link": {
        "description": 'Only of a CSV file: the URL of the next one, with `rel="next"`.',
        "schema": {"type": "string"},
    },
    "Warning-Amount": {
        "description": "The amount is 100 times the merchant's usual amount, or a hundredth: perhaps it is "
        "in baht instead of satang. Only on requests that create a payment; not on stored answers.",
        "schema": {
            "type": "string",
            "examples": ["15000000 satang is 150,000.00 THB, 100 times more than usual (1,500.00 THB)"],
        },
    },
    "Ignored-Parameters": {
        "description": "Unknown fields of the body and query parameters, which are ignored: a list of "
        'strings (RFC 9651) with the nearest known name, such as `"refernce";did-you-mean="reference"`.',
        "schema": {"type": "string", "maxLength": 4000},
    },
    "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}},
    "WWW-Authenticate": {"schema": {"type": "string", "const": "Bearer"}},
    "RateLimit-Limit": {"description": "Requests at once.", "schema": {"type": "integer", "minimum": 1}},
    "RateLimit-Remaining": {"description": "How many are left.", "schema": {"type": "integer", "minimum": 0}},
    "RateLimit-Reset": {
        "description": "Seconds until all are there again.",
        "schema": {"type": "integer", "minimum": 0},
    },
}


ERROR: Json = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "type"],
            "properties": {
                "code": {"type": "string", "description": "For programs: one code for each condition."},
                "message": {"type": "string", "description": "For people; may change."},
                "type": {"type": "string", "enum": sorted({each.type for each in CATALOGUE.values()})},
                "param": {"type": "string", "description": "The field at fault."},
                "detail": {
                    "type": "string",
                    "description": "The rule that it breaks, for people.",
                },
                "payment_id": id_schema("pay_")
                | {"description": "The payment that failed, if a card was declined."},
                "request_id": {"type": "string", "description": "Of a 5xx: names the request in our logs."},
            },
        }
    },
}


def errors_of(operation: Operation, *, is_merchant_api: bool, method: str) -> list[ErrorType]:
    """The errors of an operation: its own, those of its fields, and those of its kind."""
    found = [*ALWAYS_POSSIBLE, *operation.errors]
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
    return {
        str(status): _shared_response(name, status, same_status, registry)
        for status, same_status in by_status(errors).items()
    }


def by_status(errors: Iterable[ErrorType]) -> dict[int, list[ErrorType]]:
    found: dict[int, list[ErrorType]] = defaultdict(list)
    for error_type in errors:
        found[error_type.status].append(error_type)
    return {status: found[status] for status in sorted(found)}


def common_headers(is_merchant_api: bool) -> list[str]:
    limits = [name for name in HEADERS if name.startswith("RateLimit-")]
    return ["X-Request-Id", *(["Ignored-Parameters", *limits] if is_merchant_api else [])]


def headers(names: Iterable[str]) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def phrase(status: int) -> str:
    return HTTPStatus(status).phrase


def _shared_response(
    name: str, status: int, errors: Sequence[ErrorType], registry: ComponentRegistry
) -> Json:
    title = (
        "Or".join(_pascal(error_type.code) for error_type in errors)
        if len(errors) < 3
        else f"{_pascal(name)}{status}"
    )
    return _component(title, ResolvedComponent.RESPONSE, response(status, errors, registry), registry)


def response(status: int, errors: Sequence[ErrorType], registry: ComponentRegistry) -> Json:
    names = ["X-Request-Id", *(["Retry-After"] if status in RETRY_AFTER_STATUSES else [])]
    return {
        "description": phrase(status),
        "headers": headers([*names, *(["WWW-Authenticate"] if status == 401 else [])]),
        "content": {
            JSON: {
                "schema": _component("Error", ResolvedComponent.SCHEMA, ERROR, registry),
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
    error = {
        "code": error_type.code,
        "message": error_type.message.format(id=SAMPLE_IDS.get(error_type.code), **SAMPLE_VALUES),
        "type": error_type.type,
    }
    return {"value": {"error": error}}


def _pascal(code: str) -> str:
    return "".join(word.capitalize() for word in code.split("_"))
