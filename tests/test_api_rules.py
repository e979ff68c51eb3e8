"""Rules of all API paths: request ids, headers, unknown paths and methods, pages, both path forms."""

from typing import Any

import pytest
from django.test import RequestFactory

from config.urls import API_ROUTES, PLAIN_PREFIX, THAI_PREFIX
from core import ids
from core.http import api
from core.http.openapi import operation_of
from tests.conftest import SandboxBankClient, Shop
from tests.factories import qr_request
from tests.webhooks.builders import make_endpoint
from tests.webhooks.messages.destinations import make as make_destination

CODES = "/Thai/v1/qr-codes"
LISTS = [
    *("/Thai/v1/payments", "/v1/payments", "/Thai/v1/transactions", "/v1/transactions"),
    *("/v1/webhooks", "/v1/events", "/v1/withdrawals", "/v1/refunds", "/v1/settlements", "/v1/payment-links"),
]
NOWHERE = [
    "/v1",
    "/v1/",
    "/v1/nope",
    "/v2/payments",
    "/thai/v1/payments",
    "/v1/payments/",
    "/Thai/payments",
]


def error_of(response: Any) -> tuple[int, str, str, str | None]:
    error = response.json()["error"]
    return response.status_code, error["code"], error["type"], error.get("param")


# --- every answer -------------------------------------------------------------------------------------


def various(shop: Shop, **headers: str) -> list[Any]:
    """Responses of many kinds: created, read, listed, refused, images, unknown paths, health."""
    code = shop.qr_code()
    return [
        shop.post(CODES, qr_request(), **headers),
        shop.get(f"{CODES}/{code['qr_code_id']}", **headers),
        shop.get("/v1/payments", **headers),
        shop.post(CODES, {}, **headers),
        shop.post(CODES, b"x" * 70_000, **headers),
        shop.delete(CODES, **headers),
        shop.get("/v1/nope", **headers),
        shop.get(f"/Thai/qr-codes/{code['qr_code_id']}/image", **headers),
        shop.get("/Thai/qr-codes/qr_x/image", **headers),
        shop.http.get("/v1/payments", headers=headers),
        shop.http.get("/healthz", headers=headers),
    ]


@pytest.mark.parametrize("given", ["order-17", "A.b_c-9", "x" * 64])
def test_valid_request_id_is_returned(shop: Shop, given: str) -> None:
    assert {response["X-Request-Id"] for response in various(shop, **{"X-Request-Id": given})} == {given}


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", "a\nb", "a\0", "{}", '"', "é", "../x"])
def test_invalid_request_id_is_replaced(shop: Shop, given: str) -> None:
    made = {response["X-Request-Id"] for response in various(shop, **{"X-Request-Id": given})}
    assert len(made) == 11
    assert all(ids.looks_right(each, "req_") for each in made)


def test_every_response_has_security_headers(shop: Shop) -> None:
    for response in various(shop, Origin="https://evil.example"):
        assert response["X-Content-Type-Options"] == "nosniff"
        assert response["Cache-Control"] in {"no-store", "no-cache"}
        assert response["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert not response.cookies
        names = {name.lower() for name in response.headers}
        if response["Content-Type"].startswith("image/"):  # scripts of shops draw it
            names -= {"access-control-allow-origin"}
        assert not {name for name in names if name.startswith(("access-control-", "server", "x-powered"))}


def test_internal_error_shows_only_request_id() -> None:
    request = RequestFactory().get("/v1/payments")
    request.request_id = "req_1"  # type: ignore[attr-defined]
    response = api.error_response(ValueError("SELECT secret"), request)
    assert (response.status_code, b"SELECT" in response.content) == (500, False)
    assert b'"type":"api_error"' in response.content
    assert b'"request_id":"req_1"' in response.content


# --- paths and methods --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", NOWHERE)
def test_unknown_path_is_404_in_json(shop: Shop, path: str) -> None:
    for response in (shop.get(path), shop.post(path, {}), shop.http.get(path)):
        assert error_of(response) == (404, "not_found", "not_found", None)
        assert response["Content-Type"] == "application/json"


@pytest.mark.parametrize("tail", ["image", "no-image"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "FOO"])
def test_unknown_method_is_405_in_json(shop: Shop, method: str, tail: str) -> None:
    code = shop.qr_code()["qr_code_id"]
    path = f"/Thai/qr-codes/{code}/image" if tail == "image" else f"{CODES}/{code}"
    response = shop.http.generic(method, path, headers={"Authorization": f"Bearer {shop.secret_key}"})
    assert error_of(response) == (405, "method_not_allowed", "not_found", None)
    assert method in response.json()["error"]["message"]
    assert {"GET", "HEAD"} == set(response["Allow"].split(", "))


@pytest.mark.parametrize("prefix", [THAI_PREFIX, PLAIN_PREFIX])
@pytest.mark.parametrize("row", API_ROUTES, ids=lambda row: row[0])
def test_every_path_lists_allowed_methods(shop: Shop, prefix: str, row: Any) -> None:
    tail, _, actions = row
    response = shop.http.generic(
        "FOO", f"/{prefix}{tail}", headers={"Authorization": f"Bearer {shop.secret_key}"}
    )
    known = {method.upper() for method in actions} | ({"HEAD"} if "get" in actions else set())
    assert (response.status_code, set(response["Allow"].split(", "))) == (405, known)


@pytest.mark.slow
def test_head_is_get_without_a_body(shop: Shop) -> None:
    for path in [*LISTS, f"{CODES}/{shop.qr_code()['qr_code_id']}"]:
        response = shop.http.head(path, headers={"Authorization": f"Bearer {shop.secret_key}"})
        assert (response.status_code, response.content) == (200, b"")


# --- lists --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=101", "limit=-1", "limit=", "limit=x", "offset=-1", "offset=", "limit=1&limit=2"],
)
@pytest.mark.slow
def test_invalid_page_parameters_are_refused(shop: Shop, path: str, query: str) -> None:
    response = shop.get(f"{path}?{query}")
    assert error_of(response) == (400, "invalid_parameters", "validation_error", query.partition("=")[0])


@pytest.mark.parametrize("path", LISTS)
def test_page_shows_applied_limit_and_offset(shop: Shop, path: str) -> None:
    for query, limit, offset in [("", 20, 0), ("?limit=1&offset=3", 1, 3), ("?limit=100&whatever=1", 100, 0)]:
        response = shop.get(path + query).json()
        assert (response["total"], response["limit"], response["offset"]) == (0, limit, offset)


# --- the two forms of a path --------------------------------------------------------------------------


@pytest.mark.slow
def test_both_path_forms_return_the_same(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code(reference="order 17")
    bank.notify(code)
    for tail in (
        f"qr-codes/{code['qr_code_id']}",
        "transactions",
        "balance",
        "refunds",
        "withdrawals",
        "settlements",
        "payment-links",
        "webhooks",
        "qr-codes/qr_x",
        "payments/pay_x",
        "refunds/ref_x",
        "withdrawals/wd_x",
        "settlements/stl_x",
        "payment-links/pl_x",
    ):
        thai, plain = (shop.get(f"/{prefix}{tail}") for prefix in (THAI_PREFIX, PLAIN_PREFIX))
        assert (thai.status_code, thai.content) == (plain.status_code, plain.content)


def test_qr_code_is_created_under_each_path_form_and_without_a_version(shop: Shop) -> None:
    paths = ["/Thai/v1/qr-codes", "/v1/qr-codes", "/Thai/qr-codes"]
    made = [shop.post(path, qr_request(), key="order 17") for path in paths]
    assert {response.content for response in made} == {made[0].content}
    assert [response.get("Idempotent-Replayed") for response in made] == [None, "true", "true"]


def test_payment_object_is_the_same_under_both_path_forms(shop: Shop) -> None:
    payment_id = shop.qr_code()["payment_id"]
    thai, plain = (shop.get(f"/{prefix}payments/{payment_id}") for prefix in (THAI_PREFIX, PLAIN_PREFIX))
    assert thai.content == plain.content


# --- dates --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_all_lists_of_a_period_read_dates_in_the_same_way(shop: Shop) -> None:
    webhook_id, destination_id = make_endpoint(shop).id, make_destination(shop).id
    paths = {
        f"/{PLAIN_PREFIX}{route}".replace("<str:webhook_id>", webhook_id).replace(
            "<str:destination_id>", destination_id
        )
        for route, viewset, methods in API_ROUTES
        if "get" in methods
        and (operation := operation_of(getattr(viewset, methods["get"])))
        and "start_date" in operation.query_reader.fields
    }
    assert len(paths) == 12
    no_bounds = "start_date=0001-01-01&end_date=9999-12-31"
    accepted = [
        no_bounds,
        *(f"{no_bounds}&timezone={zone}" for zone in ("Asia/Bangkok", "America/New_York")),
        "start_date=2026-11-21T10:00:00&end_date=9999-12-31T23:59:59.999999",
        "start_date=2026-11-21T10:00:00%2B0700&end_date=9999-12-31T23:59:59Z",
    ]
    for path in paths:
        for query in accepted:
            assert shop.get(f"{path}?{query}").status_code == 200, (path, query)
        for name in ("start_date", "end_date"):
            answer = shop.get(f"{path}?{name}=2569-11-21")
            assert error_of(answer) == (400, "invalid_parameters", "validation_error", name), path
            assert "2569 is a year of the Buddhist calendar: write 2026" in answer.json()["error"]["message"]


def test_year_of_the_buddhist_calendar_in_a_field_is_named(shop: Shop) -> None:
    webhook_id, code = make_endpoint(shop).id, shop.qr_code()
    for path, name in (
        (f"/v1/webhooks/{webhook_id}/replay", "since"),
        ("/sandbox/v1/payments", "paid_at"),
        ("/sandbox/v1/payments", "report_at"),
    ):
        for year, gregorian in ((2401, 1858), (2569, 2026), (2999, 2456)):
            answer = shop.post(path, {"qr_data": code["qr_data"], name: f"{year}-11-21T10:00:00Z"})
            assert error_of(answer) == (400, f"invalid_{name}", "validation_error", name)
            assert "not of the Buddhist calendar" in answer.json()["error"]["message"]
            reason = f"{year} is a year of the Buddhist calendar: write {gregorian}"
            assert reason in answer.json()["error"]["detail"]
