"""The page at the root of the service."""

import re

import pytest
from django.test import Client


@pytest.mark.parametrize("accepted", ["text/html,*/*;q=0.8", "*/*"])
def test_root_leads_to_guide_reference_shop_console_and_health(client: Client, accepted: str) -> None:
    response = client.get("/", headers={"Accept": accepted})
    links = re.findall(r'<a class="button[^"]*" href="([^"]+)"', response.content.decode())
    assert links == ["/guide", "/docs", "/shop/", "/admin/", "/healthz"]
    assert response["Content-Type"] == "text/html; charset=utf-8"


def test_start_page_is_in_the_language_of_its_reader(client: Client) -> None:
    for query, headers, heading in [
        ("", {"Accept-Language": "en-GB"}, "This is a payment service"),
        ("", {"Accept-Language": "th"}, "ระบบรับชำระเงิน"),
        ("?lang=th", {"Accept-Language": "en"}, "ระบบรับชำระเงิน"),
    ]:
        assert f"<h1>{heading}</h1>" in client.get(f"/{query}", headers=headers).content.decode()


def test_start_page_loads_nothing_from_elsewhere(client: Client) -> None:
    response = client.get("/")
    assert "script" not in response["Content-Security-Policy"]
    assert response["Content-Security-Policy"].startswith("default-src 'none'")
    assert re.findall(r"<style|<script| style=|data:", response.content.decode()) == []


def test_root_takes_no_other_method(client: Client) -> None:
    assert client.post("/").json()["error"]["code"] == "method_not_allowed"
