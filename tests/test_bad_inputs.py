"""Hostile and odd input gets a clear answer, leaks nothing, and a refusal changes nothing."""

import time
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from django.db import connection
from django.test import Client
from pytest_django import DjangoDbBlocker, Settings

from tests.bad_inputs import CORPUS, cases, faults, name_of, names_for, request_of
from tests.conftest import Shop
from tests.raw_http import RawRequest
from tests.tables import count_rows, counting
from webhooks.models import Event

# Their amount is beyond 64 bit, so no parser agrees on what it is: the body as a whole is refused.
BEYOND_64_BIT = {"B066", "B069"}
Case = dict[str, Any]


def test_every_case_is_run() -> None:
    assert len(CORPUS["cases"]) == 348
    assert len({case["id"] for case in CORPUS["cases"]}) == 348
    assert (len(cases(raw=False)), len(cases(raw=True))) == (316, 32)


@pytest.fixture(scope="module")
def http() -> Client:
    """One for all cases: each new one loads the middleware anew."""
    return Client(raise_request_exception=False)


@pytest.fixture
def shop(shop: Shop, http: Client) -> Shop:
    shop.http = http
    return shop


@pytest.fixture(scope="module")
def count_sql(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> str:
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        return counting(cursor)


@pytest.mark.parametrize("case", cases(raw=False), ids=name_of)
def test_a_bad_input_is_answered_clearly(case: Case, shop: Shop, settings: Settings, count_sql: str) -> None:
    settings.WEBHOOK_PROBE = "off"
    names = names_for(shop.secret_key, shop.qr_code()["payment_id"])
    request = request_of(case, names)
    with connection.cursor() as cursor:
        before = count_rows(cursor, count_sql)
        started = time.thread_time()
        answer = send(shop, request)
        seconds = time.thread_time() - started
        after = count_rows(cursor, count_sql)
    assert not faults(case, answer.status_code, answer.content, names)
    assert seconds < 1
    assert answer["X-Request-Id"]
    if answer.status_code >= 400:
        assert after == before
        CHECKS.get(case.get("check", ""), nothing_more)(case, answer)
    elif request.method == "POST":
        assert_readable_back(shop, answer.json(), orjson.loads(request.body or b""))
        assert_replayed(shop, request, answer)


def send(shop: Shop, request: RawRequest) -> Any:
    """Through Django's client, with the very path and body."""
    return shop.http.generic(
        request.method,
        request.target,
        request.body or b"",
        content_type=request.headers.get("Content-Type", ""),
        headers={name: value for name, value in request.headers.items() if name != "Content-Type"},
    )


def error_of(answer: Any) -> tuple[int, str, str]:
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["type"]


def nothing_more(case: Case, answer: Any) -> None:
    """Most cases ask for no more than what all of them do."""


def amount_is_at_fault(case: Case, answer: Any) -> None:
    code = "invalid_request" if case["id"] in BEYOND_64_BIT else "invalid_amount"
    assert error_of(answer) == (400, code, "validation_error")


def parameters_are_at_fault(case: Case, answer: Any) -> None:
    assert error_of(answer) == (400, "invalid_parameters", "validation_error")
    assert answer.json()["error"]["param"] in case["query"]


def body_is_at_fault(case: Case, answer: Any) -> None:
    assert error_of(answer) == (400, "invalid_request", "validation_error")


def payment_is_not_found(case: Case, answer: Any) -> None:
    # An id with a slash in it is another path.
    code = "not_found" if "%2f" in case["path_id"].lower() else "payment_not_found"
    assert error_of(answer) == (404, code, "not_found")


def key_is_refused(case: Case, answer: Any) -> None:
    assert error_of(answer) == (401, "authentication_failed", "authentication_error")
    assert answer["WWW-Authenticate"] == "Bearer"
    assert answer.json()["error"]["message"] == "The secret key is missing or not valid."


CHECKS: dict[str, Callable[[Case, Any], None]] = {
    "code invalid_amount where the amount is the fault": amount_is_at_fault,
    "400 invalid_parameters": parameters_are_at_fault,
    "404 payment_not_found in the error shape": payment_is_not_found,
    "same body and similar time for every refusal; WWW-Authenticate: Bearer": key_is_refused,
    "refuse duplicates (ASVS 1.5.3: parsers agree); if accepted, fingerprint, stored row and webhook must "
    "all show the same value": body_is_at_fault,
    "ignored": payment_is_not_found,
}


def assert_readable_back(shop: Shop, made: dict[str, Any], asked: dict[str, Any]) -> None:
    """Every read, and the notification, show what was given."""
    if "webhook_id" in made:
        assert shop.get(f"/Thai/v1/webhooks/{made['webhook_id']}").json() == made
        return
    assert made.items() >= asked.items()
    assert shop.get(f"/Thai/v1/qr-codes/{made['qr_code_id']}").json() == made
    told = orjson.loads(Event.objects.get(subject_id=made["payment_id"]).body)["data"]
    for shown in (shop.payment(made["payment_id"]), told):
        assert (shown["reference"], shown["metadata"]) == (asked.get("reference"), asked.get("metadata"))


def assert_replayed(shop: Shop, request: RawRequest, answer: Any) -> None:
    """A key that was accepted does what keys are for."""
    if "Idempotency-Key" in request.headers:
        again = send(shop, request)
        assert (again.content, again["Idempotent-Replayed"]) == (answer.content, "true")
