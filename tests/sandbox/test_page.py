import re
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from sandbox.models import SandboxCall, SandboxPayment, State
from tests.sandbox.conftest import payload

pytestmark = pytest.mark.django_db
URL = "/sandbox/bank"


def test_the_page_asks_for_a_code(client: Client) -> None:
    page = client.get(URL)
    assert page.status_code == 200
    assert '<textarea id="qr_data"' in page.content.decode()


def test_a_code_is_shown_as_a_bank_app_shows_it(client: Client, qr_data: str) -> None:
    page = client.get(URL, {"qr_data": f" {qr_data}\n"}).content.decode()
    for shown in ("1,500.00 THB", "010555000000001", "ABCDEFGHJ01234567890", "SHOP7", "จ่ายเงิน", "Pay"):
        assert shown in page


@pytest.mark.parametrize("qr_data", ["nonsense", payload(amount=None), "\x00", "ก" * 600])
def test_a_code_that_cannot_be_paid_is_refused_on_the_page(client: Client, qr_data: str) -> None:
    page = client.get(URL, {"qr_data": qr_data})
    assert page.status_code == 400
    assert 'role="alert"' in page.content.decode()


@pytest.mark.parametrize(
    ("chosen", "scenario"),
    [
        ({}, "paid"),
        ({"scenario": "paid"}, "paid"),
        ({"scenario": "unknown_reference"}, "unknown_reference"),
        ({"scenario": "paid", "decline": "1"}, "declined"),
    ],
)
def test_a_button_decides_what_happens(
    client: Client, qr_data: str, chosen: dict[str, str], scenario: str
) -> None:
    answer = client.post(URL, {"qr_data": qr_data} | chosen)
    payment = SandboxPayment.objects.get()
    assert payment.scenario == scenario
    assert (answer.status_code, answer["Location"]) == (302, f"{URL}/payments/{payment.id}")


@pytest.mark.parametrize(
    "fields", [{}, {"qr_data": "nonsense"}, {"qr_data": payload(), "scenario": "lottery"}]
)
def test_an_order_that_cannot_be_carried_out_pays_nothing(client: Client, fields: dict[str, str]) -> None:
    assert client.post(URL, fields).status_code == 400
    assert not SandboxPayment.objects.exists()


def test_a_form_from_elsewhere_is_refused(qr_data: str) -> None:
    stranger = Client(enforce_csrf_checks=True)
    assert stranger.post(URL, {"qr_data": qr_data}).status_code == 403
    assert not SandboxPayment.objects.exists()


def test_a_payment_shows_how_its_call_fares(client: Client, qr_data: str) -> None:
    url = client.post(URL, {"qr_data": qr_data})["Location"]
    assert "Waiting" in client.get(url).content.decode()
    SandboxCall.objects.update(state=State.DELIVERED, last_status=200)
    page = client.get(url).content.decode()
    assert SandboxPayment.objects.get().id in page
    assert "Delivered" in page


@pytest.mark.parametrize("payment_id", ["sbp_" + "0" * 27, "x", "%00"])
def test_a_payment_that_nobody_made_is_not_found(client: Client, payment_id: str) -> None:
    assert client.get(f"{URL}/payments/{payment_id}").status_code == 404


def test_a_strict_policy_lets_everything_on_the_page_work(client: Client, qr_data: str) -> None:
    for url in (URL, client.post(URL, {"qr_data": qr_data})["Location"]):
        page = client.get(url)
        assert page["Content-Security-Policy"].startswith("default-src 'none'")
        text = page.content.decode()
        assert not re.search(r"https?:|<style|style=|<script>|\son\w+=", text)
        for path in re.findall(r'(?:src|href)="(/static/[^"]+)"', text):
            assert finders.find(path.removeprefix("/static/"))


def test_a_deployment_without_the_bank_has_no_page(client: Client, settings: Any) -> None:
    settings.SANDBOX_BANK_SECRET = ""
    assert client.get(URL).status_code == client.post(URL).status_code == 404
