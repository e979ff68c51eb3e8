"""Every way in which an operation can refuse, from the catalogue of errors."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any

from drf_spectacular.plumbing import ComponentRegistry, ResolvedComponent

from core import answers, errors
from core.errors import CATALOGUE, ApiError
from core.http import JSON
from core.openapi import Operation
from idempotency.errors import IdempotencyKeyInProgress, IdempotencyKeyReused, InvalidIdempotencyKey
from merchants.errors import (
    AuthenticationFailed,
    InsufficientScope,
    RateLimitExceeded,
    TooManyRefusedKeys,
)
from payments.errors import CardDeclined

Json = dict[str, Any]
Refusal = type[ApiError]

ALWAYS: list[Refusal] = [errors.InternalError, errors.ServiceUnavailable]
WITH_KEY: list[Refusal] = [AuthenticationFailed, InsufficientScope, RateLimitExceeded, TooManyRefusedKeys]
WITH_BODY: list[Refusal] = [errors.RequestTooLarge, errors.RequestTimeout, errors.UnsupportedMediaType]
WITH_JSON: list[Refusal] = [errors.InvalidRequest]
ONCE: list[Refusal] = [InvalidIdempotencyKey, IdempotencyKeyReused, IdempotencyKeyInProgress]
# Codes that no operation answers: that of methods that are not described, and those of commands.
OF_NO_OPERATION = {"method_not_allowed", "invalid_host"}
OF_COMMANDS = {"merchant_not_found", "key_not_found", "key_not_rollable"}
# What the placeholders of messages may stand for.
SAMPLES = {
    "status": "expired",
    "left": "500.00 THB",
    "whole": "1,500.00 THB",
    "method": "PUT",
    "retry_after": "1",
    "name": "somebank",
    "limit": "20",
    "scope": "withdrawals:write",
    "usable_at": "2026-11-22T03:04:05.123Z",
}
SAMPLE_IDS = {
    "payment_not_found": "pay_0oDFPZjiZAWmp6O2BO6aMzhgtUt",
    "qr_code_not_found": "qr_0oDFPXZGqcZBZBvfqisJHCvwJvO",
    "refund_not_found": "ref_0oDFPh3pEwVnYw5cJm8qTzLxKd2",
    "webhook_not_found": "wh_0oDFPev2meeI9Zar81ilSZQbdAw",
    "delivery_not_found": "dlv_0oDFPb5YgQm2vHc8KpXtR4sWnZe",
    "event_not_found": "evt_0oDFPazyVRoGTTDIuRe7QK7m3b4",
    "withdrawal_not_found": "wd_0oDFPXrTS4spMBBZozkykNHKN2t",
}
WAIT = {409, 429, 503}

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
    "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}},
    "WWW-Authenticate": {"schema": {"type": "string", "const": "Bearer"}},
    "RateLimit-Limit": {"description": "Requests at once.", "schema": {"type": "integer", "minimum": 1}},
    "RateLimit-Remaining": {"description": "How many are left.", "schema": {"type": "integer", "minimum": 0}},
    "RateLimit-Reset": {
        "description": "Seconds until all are there again.",
        "schema": {"type": "integer", "minimum": 0},
    },
}


def of(told: Operation, *, is_merchants: bool, method: str) -> list[Refusal]:
    """What an operation can refuse with: of its own, of its fields, and of its kind."""
    found = [*ALWAYS, *told.refusals]
    if told.body is not None:
        found += [CATALOGUE[f"invalid_{name}"] for name in told.body.serializer().fields]
    sends = method in {"POST", "PATCH"}
    found += WITH_BODY if sends else []
    if is_merchants:
        found += WITH_KEY
        found += WITH_JSON if sends else []
        found += ONCE if method == "POST" else []
        found += [errors.InvalidParameters] if told.query else []
    return list(dict.fromkeys(found))


def responses(name: str, kinds: Iterable[Refusal], registry: ComponentRegistry) -> dict[str, Json]:
    """References to one response for each status; operations that refuse alike share them."""
    return {str(status): _shared(name, status, alike, registry) for status, alike in by_status(kinds).items()}


def by_status(kinds: Iterable[Refusal]) -> dict[int, list[Refusal]]:
    found: dict[int, list[Refusal]] = defaultdict(list)
    for kind in kinds:
        found[kind.status].append(kind)
    return {status: found[status] for status in sorted(found)}


def headers_of_all(is_merchants: bool) -> list[str]:
    limits = [name for name in HEADERS if name.startswith("RateLimit-")]
    return ["X-Request-Id", *(limits if is_merchants else [])]


def headers(names: Iterable[str]) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def phrase(status: int) -> str:
    return HTTPStatus(status).phrase


def _shared(name: str, status: int, kinds: Sequence[Refusal], registry: ComponentRegistry) -> Json:
    title = "Or".join(_pascal(kind.code) for kind in kinds) if len(kinds) < 3 else f"{_pascal(name)}{status}"
    component = ResolvedComponent(
        name=title, type=ResolvedComponent.RESPONSE, schema=response(status, kinds), object=title
    )
    registry.register_on_missing(component)
    reference: Json = component.ref
    return reference


def response(status: int, kinds: Sequence[Refusal]) -> Json:
    names = ["X-Request-Id", *(["Retry-After"] if status in WAIT else [])]
    return {
        "description": phrase(status),
        "headers": headers([*names, *(["WWW-Authenticate"] if status == 401 else [])]),
        "content": {JSON: {"schema": _envelope(kinds), "examples": {k.code: _example(k) for k in kinds}}},
    }


def _envelope(kinds: Sequence[Refusal]) -> Json:
    error: Json = {
        "code": {"type": "string", "enum": [kind.code for kind in kinds]},
        "message": {"type": "string", "description": "For people; may change."},
        "type": {"type": "string", "enum": sorted({kind.type for kind in kinds})},
    }
    if kinds[0].status >= 500:
        optional: Json = {"request_id": {"type": "string"}}
    else:
        optional = {"param": {"type": "string", "description": "The field at fault."}}
    if CardDeclined in kinds:
        optional["payment_id"] = answers.id_shape("pay_") | {"description": "The payment that failed."}
    return _closed({"error": _closed(error, optional)})


def _closed(properties: Json, optional: Json | None = None) -> Json:
    return {
        "type": "object",
        "required": list(properties),
        "properties": properties | (optional or {}),
        "additionalProperties": False,
    }


def _example(kind: Refusal) -> Json:
    error = {
        "code": kind.code,
        "message": kind.message.format(id=SAMPLE_IDS.get(kind.code), **SAMPLES),
        "type": kind.type,
    }
    return {"value": {"error": error}}


def _pascal(code: str) -> str:
    return "".join(word.capitalize() for word in code.split("_"))
