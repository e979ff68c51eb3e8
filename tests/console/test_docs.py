"""The page with the description: complete by itself, with nothing from elsewhere."""

import re
from typing import Any

import pytest
from django.test import Client

from console import reference

ASSET = re.compile(r'(?:src|href)="([^"]+)"')
TYPES = {".js": "text/javascript", ".css": "text/css", ".png": "image/png"}


@pytest.fixture
def page(client: Client) -> Any:
    return client.get("/docs")


def test_the_page_allows_nothing_from_elsewhere(page: Any) -> None:
    policy = dict(part.strip().split(" ", 1) for part in page["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    assert "http" not in page["Content-Security-Policy"]


def test_the_page_asks_for_nothing_from_elsewhere(page: Any) -> None:
    assert re.findall(r"(?:https?:)?//\w", page.content.decode()) == []


def test_every_part_of_the_page_is_served_with_its_type(client: Client, page: Any) -> None:
    parts = ASSET.findall(page.content.decode())
    assert {part[part.rindex(".") :] for part in parts} == set(TYPES)
    for part in parts:
        served = client.get(part)
        assert served.status_code == 200, part
        assert served["Content-Type"].startswith(TYPES[part[part.rindex(".") :]]), part
        assert served.getvalue(), part


def test_the_badge_of_a_validator_elsewhere_is_off(client: Client) -> None:
    assert b"validatorUrl: null" in client.get("/static/console/docs.js").getvalue()


def test_the_document_is_served_as_it_is_committed(client: Client) -> None:
    served = client.get("/openapi.json")
    assert served["Content-Type"] == "application/json"
    assert served.json() == reference.document()


@pytest.mark.parametrize("path", ["/docs", "/openapi.json", "/healthz", "/readyz", "/metrics"])
def test_a_method_that_is_not_described_is_refused_in_the_envelope(client: Client, path: str) -> None:
    answer = client.post(path)
    assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD")
    assert answer.json()["error"]["code"] == "method_not_allowed"
