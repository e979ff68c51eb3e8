"""Card payments with 3-D Secure, and charges of another amount or currency."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import requests
import time_machine
from django.db.models.functions import Now
from django.test import Client
from pytest_django import Settings

from banks import ChargeResult
from core import clock
from payments import cards
from payments.card_inquiries import inquire_due
from payments.models import CardCharge, Payment
from reconciliation.models import ReconciliationException
from sandbox.models import AUTHORIZATION_LIFETIME, SandboxCharge
from tests.banks.fake_omise import SECURED_TOKEN, FakeOmise
from tests.conftest import Shop, new_client, open_shop
from tests.payments.card_builders import PATH, events, inquire, request, rows_of
from transfers.models import TransferContradiction

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def begun(card_shop: Shop, token: str = "tok_test_3ds") -> dict[str, Any]:
    answer = card_shop.post(PATH, request(token), key="order-1")
    made: dict[str, Any] = answer.json()
    assert (answer.status_code, made["status"]) == (200, "pending"), made
    return made


def path_of(uri: str) -> str:
    prefix = "http://testserver"
    assert uri.startswith(prefix), uri
    return uri.removeprefix(prefix)


@pytest.fixture
def browser(settings: Settings) -> Client:
    settings.BASE_URL = "http://testserver"
    return new_client()


def come_back(browser: Client, path: str) -> str:
    page = browser.get(path, headers={"Accept-Language": "en"})
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert page.headers["Referrer-Policy"] == "no-referrer"
    return page.content.decode()


def decide(browser: Client, uri: str, **form: str) -> str:
    """Press a button on the bank's page. Returns the path of the redirect."""
    page = browser.get(path_of(uri))
    assert page.status_code == 200 and "4242" not in page.content.decode()
    sent = browser.post(path_of(uri), form)
    assert sent.status_code == 302
    return path_of(sent.headers["Location"])


def test_three_d_secure_payment_authorised_at_the_bank_succeeds(card_shop: Shop, browser: Client) -> None:
    made = begun(card_shop)
    assert made["card"] == {"last4": "3220", "brand": "visa"}
    assert events() == ["payment.pending"]
    returned = decide(browser, made["authorize_uri"])
    assert "Checking with the card's bank" in come_back(browser, returned)
    assert inquire_due(now=clock.now) == 1  # the visit of the page scheduled it
    assert "Paid" in come_back(browser, returned)
    paid = card_shop.get(f"{PATH}/{made['payment_id']}").json()
    assert (paid["status"], paid["authorize_uri"]) == ("succeeded", None)
    assert rows_of(card_shop) == [("payment", "succeeded", 150_000)]
    assert card_shop.post(PATH, request("tok_test_3ds"), key="order-1").json() == made
    assert SandboxCharge.objects.count() == 1


def test_three_d_secure_payment_refused_at_the_bank_fails(card_shop: Shop, browser: Client) -> None:
    made = begun(card_shop)
    returned = decide(browser, made["authorize_uri"], refuse="1")
    come_back(browser, returned)
    assert inquire_due(now=clock.now) == 1
    assert "Not paid" in come_back(browser, returned)
    failed = card_shop.get(f"{PATH}/{made['payment_id']}").json()
    actual = (failed["status"], failed["failure_code"], failed["authorize_uri"])
    assert actual == ("failed", "card_declined", None)
    assert events() == ["payment.pending", "payment.failed"]


def test_return_from_three_d_secure_without_authorisation_changes_nothing(
    card_shop: Shop, browser: Client
) -> None:
    made = begun(card_shop)
    page = f"/pay/cards/{made['payment_id']}"
    for path in (page, f"{page}?status=successful&paid=true"):
        come_back(browser, path)
    inquire()
    assert card_shop.get(f"{PATH}/{made['payment_id']}").json()["status"] == "pending"
    assert made["authorize_uri"] in come_back(browser, page)


def test_three_d_secure_return_page_inquires_at_most_every_five_seconds(
    card_shop: Shop, browser: Client
) -> None:
    page = f"/pay/cards/{begun(card_shop)['payment_id']}"
    come_back(browser, page)
    CardCharge.objects.update(due_at=Now() + timedelta(minutes=1))
    come_back(browser, page)
    assert CardCharge.objects.get().due_at > clock.now() + timedelta(seconds=30)
    CardCharge.objects.update(returned_at=clock.now() - cards.RETURN_INQUIRY_INTERVAL)
    come_back(browser, page)
    assert CardCharge.objects.get().due_at <= clock.now()


def test_three_d_secure_charge_not_authorised_in_time_fails(card_shop: Shop, browser: Client) -> None:
    made = begun(card_shop)
    with time_machine.travel(clock.now() + AUTHORIZATION_LIFETIME, tick=False):
        assert inquire() == 1
        late = browser.post(path_of(made["authorize_uri"]))
        assert late.status_code == 302
        failed = card_shop.get(f"{PATH}/{made['payment_id']}").json()
        assert (failed["status"], failed["failure_code"]) == ("failed", "processing_error")
        inquire()
    assert Payment.objects.get().status == "failed"


def test_pending_three_d_secure_charge_is_inquired_each_minute(card_shop: Shop, browser: Client) -> None:
    begun(card_shop)
    CardCharge.objects.update(inquiries=50)
    now = clock.now()
    inquire(now=lambda: now)
    assert CardCharge.objects.get().due_at == now + cards.MAX_AUTHORISATION_DELAY
    after = now + cards.AUTHORISATION_PERIOD
    payment = Payment.objects.get()
    assert cards._inquiry_delay(payment, CardCharge.objects.get(), after) == timedelta(hours=1)


@pytest.mark.parametrize("path", ["/pay/cards/pay_1", "/pay/cards/x", "/sandbox/bank/cards/sbc_1"])
def test_authorisation_page_of_an_unknown_payment_is_not_found(db: None, path: str) -> None:
    assert new_client().get(path).status_code == 404
    assert new_client().post(path).status_code in (404, 405)


def test_authorisation_page_of_a_qr_payment_is_not_found(card_shop: Shop) -> None:
    payment_id = card_shop.qr_code()["payment_id"]
    assert new_client().get(f"/pay/cards/{payment_id}").status_code == 404


def test_card_payment_without_three_d_secure_has_no_authorisation_page(card_shop: Shop) -> None:
    assert card_shop.post(PATH, request()).json()["authorize_uri"] is None


@pytest.fixture
def live(transactional_db: None, settings: Settings) -> Iterator[FakeOmise]:
    with FakeOmise.running() as acquirer:
        settings.OMISE_SECRET_KEY, settings.OMISE_API_URL = "skey_test_1", acquirer.base_url
        yield acquirer


@pytest.mark.parametrize(("query", "status"), [("", "succeeded"), ("?refuse=1", "failed")])
def test_authorisation_page_redirects_to_the_live_acquirer(
    live: FakeOmise, browser: Client, query: str, status: str
) -> None:
    shop = open_shop("Somtam House", "live")
    made = begun(shop, SECURED_TOKEN)
    sent = requests.get(made["authorize_uri"] + query, allow_redirects=False, timeout=60)
    assert sent.status_code == 302
    come_back(browser, path_of(sent.headers["Location"]))
    assert inquire_due(now=clock.now) == 1
    assert shop.get(f"{PATH}/{made['payment_id']}").json()["status"] == status


@pytest.mark.parametrize("changes", [{"amount": 1_500}, {"amount": 150_001}, {"currency": "USD"}])
def test_charge_with_another_amount_or_currency_is_no_success(
    live: FakeOmise, changes: dict[str, Any]
) -> None:
    shop = open_shop("Somtam House", "live")
    add = live.add
    live.add = lambda order_id, at, **fields: add(order_id, at, **(fields | changes))  # type: ignore[method-assign]
    made = begun(shop, "tokn_test_1")
    inquire()
    assert shop.get(f"{PATH}/{made['payment_id']}").json()["status"] == "pending"
    assert rows_of(shop) == [] and events() == ["payment.pending"]
    found = TransferContradiction.objects.get(subject_id=made["payment_id"])
    charged = {"amount": 150_000, "currency": "THB"} | changes
    assert (found.state, found.answer, found.amount) == ("pending", "succeeded", 150_000)
    assert {"amount": found.answer_amount, "currency": found.answer_currency} == charged
    listed = ReconciliationException.objects.get()
    actual = (listed.pk, listed.reason, listed.payment_id, listed.is_sandbox)
    assert actual == (found.id, "contradiction", made["payment_id"], False)


@pytest.mark.parametrize(
    "result", [ChargeResult("succeeded"), ChargeResult("succeeded", amount=150_000, currency="THB")]
)
def test_charge_of_the_requested_amount_is_a_success(result: ChargeResult) -> None:
    payment = Payment(amount=150_000, currency="THB")
    assert not cards._differs_from_request(payment, result)
