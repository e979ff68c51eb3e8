"""The reference loads nothing from other origins. Documents are served as they are made."""

import re
from typing import Any

import pytest
from django.test import Client

from apidocs import reference

ASSET = re.compile(r'(?:src|href)="([^"]+)"')
TYPES = {".js": "text/javascript", ".css": "text/css", ".png": "image/png", ".svg": "image/svg+xml"}
CONTENT_TYPES = {
    "openapi.json": "application/json",
    "openapi.yaml": "application/yaml",
    "postman.json": "application/json",
    "llms.txt": "text/plain; charset=utf-8",
}


@pytest.fixture(params=["/docs", "/docs/try"])
def page(client: Client, request: pytest.FixtureRequest) -> Any:
    return client.get(request.param)


def test_docs_page_policy_allows_own_origin_only(page: Any) -> None:
    policy = dict(part.strip().split(" ", 1) for part in page["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    assert "http" not in page["Content-Security-Policy"]


def test_docs_page_loads_own_origin_only(page: Any) -> None:
    assert re.findall(r"(?:https?:)?//\w", page.content.decode()) == []


def test_docs_page_assets_have_content_types(client: Client, page: Any) -> None:
    parts = [part for part in ASSET.findall(page.content.decode()) if part.startswith("/static/")]
    assert {".js", ".css"} < {part[part.rindex(".") :] for part in parts} <= set(TYPES)
    for part in parts:
        served = client.get(part)
        assert served.status_code == 200, part
        assert served["Content-Type"].startswith(TYPES[part[part.rindex(".") :]]), part
        assert served.getvalue(), part


def test_swagger_validator_badge_is_off(client: Client) -> None:
    assert b"validatorUrl: null" in client.get("/static/apidocs/try.js").getvalue()


@pytest.mark.parametrize("name", CONTENT_TYPES)
@pytest.mark.slow
def test_documents_are_served_as_they_are_made(client: Client, name: str) -> None:
    served = client.get(f"/{name}")
    assert served["Content-Type"] == CONTENT_TYPES[name]
    assert served.content.decode() == reference.published()[name]


def test_page_links_to_the_guide_and_every_document(client: Client) -> None:
    text = client.get("/docs").content.decode()
    for path in ["/guide", *(f"/{name}" for name in CONTENT_TYPES)]:
        assert f'href="{path}"' in text or path == "/openapi.yaml", path


@pytest.mark.parametrize(
    "path",
    [
        "/docs",
        "/docs/try",
        "/guide",
        "/guide/errors",
        "/guide/search.json",
        "/openapi.json",
        "/llms.txt",
        "/healthz",
        "/readyz",
        "/metrics",
    ],
)
def test_undocumented_method_is_405_in_error_envelope(client: Client, path: str) -> None:
    response = client.post(path)
    assert (response.status_code, response["Allow"]) == (405, "GET, HEAD")
    assert response.json()["error"]["code"] == "method_not_allowed"
