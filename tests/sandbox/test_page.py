import re
from datetime import timedelta

import pytest
import time_machine
import zxingcpp
from django.conf import settings
from django.contrib.staticfiles import finders
from django.test import Client
from django.utils.html import conditional_escape
from PIL import Image

from core import clock
from core.drawing import qr_symbols
from core.thai import references
from core.thai.slips import Slip, parse_slip
from sandbox.models import CallbackState, SandboxCallback, SandboxPayment
from sandbox.scenarios import SCENARIOS
from tests.sandbox.conftest import BILLER, payload
from tests.thai_codes import altered

pytestmark = pytest.mark.django_db
URL = "/sandbox/bank"
KNOWN = references.new_checked(BILLER, settings.SANDBOX_BANK_SECRET)
NO_AMOUNT = altered(payload(), "54071500.00", "")
ON_THE_PAGE = {name: each for name, each in SCENARIOS.items() if name != "unknown_reference"}


@pytest.fixture
def qr_data() -> str:
    """A code that the service made for a test merchant."""
    return payload(reference1=KNOWN)


def test_bank_page_asks_for_qr_data(client: Client) -> None:
    page = client.get(URL)
    assert page.status_code == 200
    assert '<textarea id="qr_data"' in page.content.decode()


def test_bank_page_shows_payment_details(client: Client, qr_data: str) -> None:
    page = client.get(URL, {"qr_data": f" {qr_data}\n"}).content.decode()
    for shown in ("1,500.00 THB", BILLER, KNOWN, "SHOP7", "จ่ายเงิน", "Pay"):
        assert shown in page


@pytest.mark.parametrize("qr_data", ["nonsense", NO_AMOUNT, "\x00", "ก" * 600])
def test_unpayable_code_is_refused_on_bank_page(client: Client, qr_data: str) -> None:
    page = client.get(URL, {"qr_data": qr_data})
    assert page.status_code == 400
    assert 'role="alert"' in page.content.decode()


@pytest.mark.parametrize(
    ("chosen", "scenario"),
    [
        ({}, "paid"),
        ({"scenario": "paid"}, "paid"),
        ({"scenario": "over"}, "over"),
        ({"scenario": "paid", "decline": "1"}, "declined"),
    ],
)
def test_bank_page_button_selects_the_scenario(
    client: Client, qr_data: str, chosen: dict[str, str], scenario: str
) -> None:
    response = client.post(URL, {"qr_data": qr_data} | chosen)
    payment = SandboxPayment.objects.get()
    assert payment.scenario == scenario
    assert (response.status_code, response["Location"]) == (302, f"{URL}/payments/{payment.id}")


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"qr_data": "nonsense"},
        {"qr_data": payload(reference1=KNOWN), "scenario": "lottery"},
        {"qr_data": payload(reference1=KNOWN), "scenario": "unknown_reference"},
    ],
)
def test_invalid_bank_page_form_creates_no_payment(client: Client, fields: dict[str, str]) -> None:
    assert client.post(URL, fields).status_code == 400
    assert not SandboxPayment.objects.exists()


def test_bank_page_offers_every_scenario_in_both_languages(client: Client, qr_data: str) -> None:
    page = client.get(URL, {"qr_data": qr_data}).content.decode()
    assert "unknown_reference" not in page
    for name, scenario in ON_THE_PAGE.items():
        assert f'value="{name}"' in page
        assert conditional_escape(f"{scenario.label_th} · {scenario.label_en}") in page


@pytest.mark.parametrize(
    ("chosen", "paid", "reported"),
    [
        ({}, 0, 0),
        ({"paid_in": "", "report_in": ""}, 0, 0),
        ({"scenario": "late"}, 1441, 0),
        ({"scenario": "late", "paid_in": "16"}, 16, 0),
        ({"scenario": "reported_late"}, 0, 1441),
        ({"scenario": "reported_late", "paid_in": "-5", "report_in": " 16 "}, -5, 16),
        ({"decline": "1", "report_in": "2"}, 0, 2),
    ],
)
def test_payment_times_are_set_by_scenario_or_form(
    client: Client, qr_data: str, chosen: dict[str, str], paid: int, reported: int
) -> None:
    with time_machine.travel(clock.now(), tick=False):
        client.post(URL, {"qr_data": qr_data} | chosen)
    payment, call = SandboxPayment.objects.get(), SandboxCallback.objects.get()
    assert payment.paid_at - payment.created_at == timedelta(minutes=paid)
    assert call.due_at - payment.created_at == timedelta(minutes=reported)


@pytest.mark.parametrize("minutes", ["x", "1.5", "๑", "--1", "1e3", "9999999", "527041", "-527041", "\x00"])
@pytest.mark.parametrize("name", ["paid_in", "report_in"])
def test_invalid_time_is_refused_with_form(client: Client, qr_data: str, name: str, minutes: str) -> None:
    response = client.post(URL, {"qr_data": qr_data, "scenario": "late", name: minutes})
    page = response.content.decode()
    assert (response.status_code, SandboxPayment.objects.count()) == (400, 0)
    assert 'role="alert"' in page
    assert "1,500.00 THB" in page
    assert '<option value="late" selected>' in page


def test_form_without_csrf_token_is_refused(qr_data: str) -> None:
    client = Client(enforce_csrf_checks=True)
    assert client.post(URL, {"qr_data": qr_data}).status_code == 403
    assert not SandboxPayment.objects.exists()


def test_payment_page_shows_callback_state(client: Client, qr_data: str) -> None:
    url = client.post(URL, {"qr_data": qr_data})["Location"]
    assert "Waiting" in client.get(url).content.decode()
    SandboxCallback.objects.update(state=CallbackState.DELIVERED, last_status=200)
    page = client.get(url).content.decode()
    assert SandboxPayment.objects.get().id in page
    assert "Delivered" in page


def test_payment_page_refreshes_only_for_soon_callbacks(client: Client, qr_data: str) -> None:
    for scenario, refreshes in (("paid", True), ("reported_late", False)):
        url = client.post(URL, {"qr_data": qr_data, "scenario": scenario})["Location"]
        assert ('http-equiv="refresh"' in client.get(url).content.decode()) is refreshes


def test_paid_payment_has_scannable_slip(client: Client, qr_data: str) -> None:
    page = client.get(client.post(URL, {"qr_data": qr_data})["Location"]).content.decode()
    payment = SandboxPayment.objects.get()
    (text,) = re.findall(r"<textarea[^>]*readonly>([^<]+)</textarea>", page)
    (path,) = re.findall(r'<path d="([^"]+)"', page)
    assert scan(path) == text
    assert parse_slip(text) == Slip(payment.payer_bank_code, payment.slip_reference)
    for shown in (payment.slip_reference, "1,500.00 THB"):
        assert shown in page


def scan(path: str) -> str:
    """The text in the symbol with these dark modules, drawn eight pixels wide."""
    dark = [(int(x), int(y)) for x, y in re.findall(r"M(\d+) (\d+)h1v1h-1z", path)]
    width = 8 * (max(x for x, _ in dark) + 1 + qr_symbols.QUIET_ZONE)
    image = Image.new("L", (width, width), 255)
    for x, y in dark:
        image.paste(0, (8 * x, 8 * y, 8 * x + 8, 8 * y + 8))
    (code,) = zxingcpp.read_barcodes(image)
    return str(code.text)


def test_declined_payment_has_no_slip(client: Client, qr_data: str) -> None:
    page = client.get(client.post(URL, {"qr_data": qr_data, "decline": "1"})["Location"]).content.decode()
    assert "Declined" in page
    assert "<svg" not in page
    assert SandboxPayment.objects.get().slip_reference not in page


def test_payment_page_shows_a_reversal_only_from_reversed_at(client: Client, qr_data: str) -> None:
    with time_machine.travel(clock.now(), tick=False) as time_travel:
        url = client.post(URL, {"qr_data": qr_data, "scenario": "reversed"})["Location"]
        assert "Paid at the bank" in client.get(url).content.decode()
        time_travel.shift(timedelta(seconds=3))
        assert "Paid, then reversed" in client.get(url).content.decode()


def test_duplicate_payment_page_links_other_payment(client: Client, qr_data: str) -> None:
    url = client.post(URL, {"qr_data": qr_data, "scenario": "twice"})["Location"]
    first, second = SandboxPayment.objects.all()
    page = client.get(url).content.decode()
    for payment in (first, second):
        assert payment.id in page
    client.post(URL, {"qr_data": qr_data})
    assert client.get(url).content.decode().count(f"{URL}/payments/") == 1


def test_payment_page_shows_that_no_callback_is_sent(client: Client, qr_data: str) -> None:
    page = client.get(client.post(URL, {"qr_data": qr_data, "scenario": "callback_lost"})["Location"])
    assert "The bank reports nothing" in page.content.decode()


@pytest.mark.parametrize("payment_id", ["sbp_" + "0" * 27, "x", "%00"])
def test_unknown_payment_page_is_404(client: Client, payment_id: str) -> None:
    assert client.get(f"{URL}/payments/{payment_id}").status_code == 404


def test_bank_page_works_with_strict_csp(client: Client, qr_data: str) -> None:
    for url in (URL, client.post(URL, {"qr_data": qr_data})["Location"]):
        page = client.get(url)
        assert page["Content-Security-Policy"].startswith("default-src 'none'")
        text = page.content.decode()
        assert not re.search(r"https?:|<style|style=|<script>|\son\w+=", text)
        for path in re.findall(r'(?:src|href)="(/static/[^"]+)"', text):
            assert finders.find(path.removeprefix("/static/"))
