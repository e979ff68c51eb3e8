"""Hostile input gets a clear error that leaks nothing. A refused request changes no row."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from django.test import Client
from pytest_django import Settings

from core import plain_text
from tests.conftest import Shop
from tests.hostile_inputs import CORPUS, cases, faults, name_of, names_for, request_of
from tests.raw_http import RawRequest
from tests.tables import count_rows
from webhooks.models import Event

Case = dict[str, Any]


def with_slow_marks(cases: list[Case]) -> Iterator[Any]:
    """Keep every eighth case in the quick suite."""
    for number, case in enumerate(cases):
        yield pytest.param(case, marks=[pytest.mark.slow] if number % 8 else [])


def test_every_hostile_input_is_tested() -> None:
    assert len(CORPUS["cases"]) == 348
    assert len({case["id"] for case in CORPUS["cases"]}) == 348
    assert (len(cases(raw=False)), len(cases(raw=True))) == (316, 32)


@pytest.fixture(scope="module")
def http() -> Client:
    return Client(raise_request_exception=False)


@pytest.fixture
def shop(shop: Shop, http: Client) -> Shop:
    shop.http = http
    return shop


@pytest.mark.parametrize("case", [*with_slow_marks(cases(raw=False))], ids=name_of)
def test_hostile_input_gets_clear_error(case: Case, shop: Shop, settings: Settings) -> None:
    settings.WEBHOOK_PROBE = "off"
    names = names_for(shop.secret_key, shop.qr_code()["payment_id"])
    request = request_of(case, names)
    before = count_rows()
    started = time.thread_time()
    response = send(shop, request)
    seconds = time.thread_time() - started
    assert not faults(case, response.status_code, response.content, names)
    assert seconds < 1
    assert response["X-Request-Id"]
    if response.status_code >= 400:
        assert count_rows() == before
        CHECKS.get(case.get("check", ""), nothing_more)(case, response)
    elif request.method == "POST":
        assert_readable_back(shop, response.json(), orjson.loads(request.body or b""))
        assert_replayed(shop, request, response)


def send(shop: Shop, request: RawRequest) -> Any:
    """Send the exact path and body through Django's client."""
    return shop.http.generic(
        request.method,
        request.target,
        request.body or b"",
        content_type=request.headers.get("Content-Type", ""),
        headers={name: value for name, value in request.headers.items() if name != "Content-Type"},
    )


def error_of(response: Any) -> tuple[int, str, str]:
    error = response.json()["error"]
    return response.status_code, error["code"], error["type"]


def nothing_more(case: Case, response: Any) -> None:
    """For cases without a check of their own."""


def amount_is_at_fault(case: Case, response: Any) -> None:
    assert error_of(response) == (400, "invalid_amount", "validation_error")


def parameters_are_at_fault(case: Case, response: Any) -> None:
    assert error_of(response) == (400, "invalid_parameters", "validation_error")
    assert response.json()["error"]["param"] in case["query"]


def body_is_at_fault(case: Case, response: Any) -> None:
    assert error_of(response) == (400, "invalid_request", "validation_error")


def payment_is_not_found(case: Case, response: Any) -> None:
    # An id with a slash in it is another path.
    code = "not_found" if "%2f" in case["path_id"].lower() else "payment_not_found"
    assert error_of(response) == (404, code, "not_found")


def key_is_refused(case: Case, response: Any) -> None:
    assert error_of(response) == (401, "authentication_failed", "authentication_error")
    assert response["WWW-Authenticate"] == "Bearer"
    assert response.json()["error"]["message"] == "The secret key is missing or not valid."


CHECKS: dict[str, Callable[[Case, Any], None]] = {
    "code invalid_amount where the amount is the fault": amount_is_at_fault,
    "400 invalid_parameters": parameters_are_at_fault,
    "404 payment_not_found in the error shape": payment_is_not_found,
    "same body and similar time for every refusal; WWW-Authenticate: Bearer": key_is_refused,
    "refuse duplicates (ASVS 1.5.3: parsers agree); if accepted, fingerprint, stored row and webhook must "
    "all show the same value": body_is_at_fault,
    "ignored": payment_is_not_found,
}


def assert_readable_back(shop: Shop, made: dict[str, Any], request_body: dict[str, Any]) -> None:
    """Check that each read, and the event, show the values of the request."""
    if "webhook_id" in made:
        assert shop.get(f"/Thai/v1/webhooks/{made['webhook_id']}").json() == made
        return
    given = {name: value for name, value in request_body.items() if value is not None}  # null means omitted
    if "client_name" in given:
        given["client_name"] = plain_text.name(given["client_name"])
    assert made.items() >= given.items()
    assert shop.get(f"/Thai/v1/qr-codes/{made['qr_code_id']}").json() == made
    reported = orjson.loads(Event.objects.get(subject_id=made["payment_id"]).body)["data"]
    for shown in (shop.payment(made["payment_id"]), reported):
        assert shown["reference"] == request_body.get("reference")
        assert shown["metadata"] == request_body.get("metadata")


def assert_replayed(shop: Shop, request: RawRequest, response: Any) -> None:
    """Check that a repeated request with an idempotency key gets the stored answer."""
    if "Idempotency-Key" in request.headers:
        again = send(shop, request)
        assert (again.content, again["Idempotent-Replayed"]) == (response.content, "true")
