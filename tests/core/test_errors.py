"""The catalogue of errors: one code per condition, with the HTTP status of its type."""

import json
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from django.test import RequestFactory
from rest_framework import serializers

from core.errors import CATALOGUE, ApiError, InvalidRequest
from core.http import api
from core.http.responses import error_response
from tests.error_messages import check_error

import_module("config.urls")  # whatever answers requests is imported with it

STATUSES = {
    "validation_error": {400, 408, 413, 415, 422},
    "authentication_error": {401},
    "payment_error": {402},
    "permission_error": {403},
    "not_found": {404, 405, 410},
    "idempotency_error": {409},
    "rate_limit_error": {429},
    "api_error": set(range(500, 600)),
}
# What merchants' programs compare with, word for word.
PROMISED = {
    "authentication_failed": (401, "authentication_error"),
    "bank_not_configured": (400, "validation_error"),
    "idempotency_key_in_progress": (409, "idempotency_error"),
    "idempotency_key_reused": (409, "idempotency_error"),
    "invalid_amount": (400, "validation_error"),
    "invalid_currency": (400, "validation_error"),
    "invalid_idempotency_key": (400, "validation_error"),
    "invalid_parameters": (400, "validation_error"),
    "invalid_request": (400, "validation_error"),
    "invalid_url": (422, "validation_error"),
    "method_not_allowed": (405, "not_found"),
    "not_found": (404, "not_found"),
    "payment_not_found": (404, "not_found"),
    "qr_code_not_expirable": (400, "validation_error"),
    "qr_code_not_found": (404, "not_found"),
    "rate_limit_exceeded": (429, "rate_limit_error"),
    "request_too_large": (413, "validation_error"),
    "unsupported_media_type": (415, "validation_error"),
    "webhook_not_found": (404, "not_found"),
}


def descendants(kind: type[Any]) -> Iterator[type[Any]]:
    for child in kind.__subclasses__():
        yield child
        yield from descendants(child)


DECLARED = [kind for kind in descendants(ApiError) if "code" in kind.__dict__]
REQUESTS = [kind for kind in descendants(serializers.Serializer) if kind.__name__.endswith("Request")]


def test_each_error_code_is_declared_once() -> None:
    times = Counter(kind.code for kind in DECLARED)
    assert {code for code, count in times.items() if count > 1} == set()
    assert times.keys() == CATALOGUE.keys()


def test_error_status_matches_error_type_and_message_is_one_line() -> None:
    for code in sorted(CATALOGUE):
        kind = CATALOGUE[code]
        assert kind.status in STATUSES[kind.type]
        assert kind.message and "\n" not in kind.message


def test_documented_codes_are_in_the_catalogue() -> None:
    for code in sorted(PROMISED):
        assert (CATALOGUE[code].status, CATALOGUE[code].type) == PROMISED[code]


def test_every_request_field_has_an_invalid_field_error_code() -> None:
    for kind in REQUESTS:
        assert {f"invalid_{name}" for name in kind().fields} <= CATALOGUE.keys()


def test_request_serializers_are_found() -> None:
    assert {"QrCodeRequest", "WebhookRequest"} <= {kind.__name__ for kind in REQUESTS}


def test_state_errors_have_status_400() -> None:
    acts = {code for code in CATALOGUE if code.endswith("able") and "_not_" in code}
    assert {CATALOGUE[code].status for code in acts} == {400}


def test_error_message_is_formatted_and_param_names_the_field() -> None:
    error = InvalidRequest(reason="why", param="amount", retry_after=3)
    text = "The request is not valid: why."
    assert (error.text, error.param, str(error)) == (text, "amount", text)
    assert error_response(error).headers == {"Retry-After": "3"}
    assert CATALOGUE["payment_not_found"](id="pay_1").text == "No payment pay_1."


def test_fault_is_an_internal_error_that_tells_nothing_of_it() -> None:
    response = api.error_response(ValueError("no such account"), RequestFactory().get("/v1/payments"))
    assert response.status_code == 500
    check_error(json.loads(response.content), "internal_error")


def test_request_id_is_shown_only_in_server_errors() -> None:
    assert b"request_id" not in error_response(InvalidRequest(reason="why"), "req_1").body
    assert b'"request_id":"req_1"' in error_response(CATALOGUE["internal_error"](), "req_1").body
