"""The API reference page loads nothing from other origins."""

import re
from typing import Any

import pytest
from django.test import Client

from apidocs import reference

ASSET = re.compile(r'(?:src|href)="([^"]+)"')
TYPES = {".js": "text/javascript", ".css": "text/css", ".png": "image/png"}


@pytest.fixture
def page(client: Client) -> Any:
    return client.get("/docs")


def test_docs_page_policy_allows_own_origin_only(page: Any) -> None:
    policy = dict(part.strip().split(" ", 1) for part in page["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    assert "http" not in page["Content-Security-Policy"]


def test_docs_page_loads_own_origin_only(page: Any) -> None:
    assert re.findall(r"(?:https?:)?//\w", page.content.decode()) == []


def test_docs_page_assets_have_content_types(client: Client, page: Any) -> None:
    parts = ASSET.findall(page.content.decode())
    assert {part[part.rindex(".") :] for part in parts} == set(TYPES)
    for part in parts:
        served = client.get(part)
        assert served.status_code == 200, part
        assert served["Content-Type"].startswith(TYPES[part[part.rindex(".") :]]), part
        assert served.getvalue(), part


def test_swagger_validator_badge_is_off(client: Client) -> None:
    assert b"validatorUrl: null" in client.get("/static/apidocs/docs.js").getvalue()


@pytest.mark.slow
def test_served_openapi_document_is_the_generated_one(client: Client) -> None:
    served = client.get("/openapi.json")
    assert served["Content-Type"] == "application/json"
    assert served.json() == reference.document()


@pytest.mark.parametrize("path", ["/docs", "/openapi.json", "/healthz", "/readyz", "/metrics"])
def test_undocumented_method_is_405_in_error_envelope(client: Client, path: str) -> None:
    response = client.post(path)
    assert (response.status_code, response["Allow"]) == (405, "GET, HEAD")
    assert response.json()["error"]["code"] == "method_not_allowed"
