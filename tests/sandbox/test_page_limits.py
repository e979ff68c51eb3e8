"""Limits of the sandbox bank's page, so that payers without a key cannot fill the list of exceptions."""

from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from core import clock
from core.errors import InvalidQrData
from core.http.rate_limits import RateLimit
from core.thai import references
from reconciliation.models import ReconciliationException
from sandbox import callbacks, services, views
from sandbox.models import SandboxPayment
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop, new_client
from tests.sandbox.conftest import BILLER, payload

pytestmark = pytest.mark.django_db
URL = "/sandbox/bank"


def checked_reference() -> str:
    return references.new_checked(BILLER, settings.SANDBOX_BANK_SECRET)


def payload_of_a_known_code() -> str:
    """A code that the service made for a test merchant."""
    return payload(reference1=checked_reference())


def pay(client: Client, qr_data: str, **options: Any) -> int:
    return int(client.post(URL, {"qr_data": qr_data}, **options).status_code)


@pytest.fixture
def no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "PAGE_RATE", RateLimit(per_second=1000, burst=1000))


@pytest.fixture
def rare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a rate so slow that no payment becomes available again during a test."""
    monkeypatch.setattr(views, "PAGE_RATE", RateLimit(per_second=0.001, burst=views.PAGE_RATE.burst))


def changed(reference: str) -> str:
    return reference[:-1] + ("A" if reference[-1] != "A" else "B")


@pytest.mark.usefixtures("no_limit")
@pytest.mark.parametrize(
    "unknown",
    [
        {"reference1": references.new()},
        {"reference1": "A"},
        {"reference1": changed(checked_reference())},
        {"reference1": changed(checked_reference()[::-1])[::-1]},
        {"reference1": checked_reference(), "biller_id": "010555000000002"},
        {"reference1": references.new_checked(BILLER, "another secret")},
    ],
)
def test_foreign_qr_code_is_refused_on_the_bank_page(client: Client, unknown: dict[str, Any]) -> None:
    qr_data = payload(**unknown)
    assert pay(client, qr_data) == client.get(URL, {"qr_data": qr_data}).status_code == 400
    assert not SandboxPayment.objects.exists()


def test_qr_code_of_a_test_merchant_is_paid_on_the_bank_page(client: Client, shop: Shop) -> None:
    assert pay(client, shop.qr_code()["qr_data"]) == 302


def test_qr_codes_of_a_test_merchant_have_check_characters(shop: Shop) -> None:
    made = {shop.qr_code()["qr_data"] for _ in range(5)}
    assert len({services.parse_known_qr(qr_data).reference1 for qr_data in made}) == 5


@pytest.mark.usefixtures("no_limit")
@pytest.mark.slow
def test_bank_page_pays_a_qr_code_a_limited_number_of_times(client: Client) -> None:
    qr_data, limit = payload_of_a_known_code(), services.MAX_PAYMENTS_WITHOUT_KEY
    assert [pay(client, qr_data) for _ in range(limit + 2)] == [302] * limit + [400] * 2
    assert SandboxPayment.objects.count() == limit
    assert pay(client, payload_of_a_known_code()) == 302


@pytest.mark.usefixtures("no_limit")
@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["paid", "twice"])
def test_concurrent_payments_on_the_page_do_not_exceed_the_limit_of_a_code(scenario: str) -> None:
    qr_data, limit = payload_of_a_known_code(), services.MAX_PAYMENTS_WITHOUT_KEY

    def pay_twice() -> list[int]:
        client = new_client()
        fields = {"qr_data": qr_data, "scenario": scenario}
        return [int(client.post(URL, fields).status_code) for _ in range(2)]

    statuses = [status for each in run_concurrently(*[pay_twice] * limit) for status in each]
    assert SandboxPayment.objects.count() == limit
    paid = limit // 2 if scenario == "twice" else limit
    assert (statuses.count(302), statuses.count(400)) == (paid, 2 * limit - paid)


def test_order_of_two_transfers_does_not_exceed_the_limit_of_a_code(db: None) -> None:
    qr_data, now = payload_of_a_known_code(), clock.now()
    for _ in range(services.MAX_PAYMENTS_WITHOUT_KEY - 1):
        services.execute(services.plan(qr_data=qr_data, scenario="paid", now=now), now=now)
    with pytest.raises(InvalidQrData, match="10 times"):
        services.execute_without_key(services.plan(qr_data=qr_data, scenario="twice", now=now), now=now)
    services.execute_without_key(services.plan(qr_data=qr_data, scenario="paid", now=now), now=now)
    assert SandboxPayment.objects.count() == services.MAX_PAYMENTS_WITHOUT_KEY


@pytest.mark.usefixtures("rare")
@pytest.mark.slow
def test_bank_page_limits_payments_by_client_address(client: Client) -> None:
    limit = views.PAGE_RATE.burst
    assert [pay(client, payload_of_a_known_code()) for _ in range(limit + 1)] == [302] * limit + [429]
    response = client.post(URL, {"qr_data": payload_of_a_known_code()})
    assert int(response["Retry-After"]) > 0
    assert 'role="alert"' in response.content.decode()
    assert pay(client, payload_of_a_known_code(), REMOTE_ADDR="198.51.100.7") == 302
    assert SandboxPayment.objects.count() == limit + 1


@pytest.mark.usefixtures("rare")
@pytest.mark.slow
def test_refused_codes_count_towards_the_limit_of_an_address(client: Client) -> None:
    for _ in range(views.PAGE_RATE.burst):
        assert pay(client, "nonsense") == 400
    assert [pay(client, qr_data) for qr_data in (payload_of_a_known_code(), payload(), "nonsense")] == [
        429
    ] * 3


@pytest.mark.usefixtures("rare")
@pytest.mark.slow
def test_addresses_of_one_ipv6_network_share_a_limit(client: Client) -> None:
    for number in range(views.PAGE_RATE.burst):
        assert pay(client, payload_of_a_known_code(), REMOTE_ADDR=f"2001:db8::{number:x}") == 302
    assert pay(client, payload_of_a_known_code(), REMOTE_ADDR="2001:db8:0:0:1::1") == 429
    assert pay(client, payload_of_a_known_code(), REMOTE_ADDR="2001:db8:0:1::1") == 302


def test_test_key_still_pays_with_an_unknown_reference(shop: Shop, bank: SandboxBankClient) -> None:
    order = {"qr_data": shop.qr_code()["qr_data"], "scenario": "unknown_reference"}
    assert shop.post("/sandbox/v1/payments", order).status_code == 200
    (call,) = callbacks.claim(9)
    assert bank.post(call.body.encode()).status_code == 200
    assert ReconciliationException.objects.get().reason == "unmatched"


@pytest.mark.usefixtures("no_limit")
@pytest.mark.slow
def test_400_requests_without_a_key_leave_few_exceptions(shop: Shop, bank: SandboxBankClient) -> None:
    """An attack with invented codes, and with one public code of a test merchant many times."""
    client, qr_data = new_client(), shop.qr_code()["qr_data"]
    for _ in range(200):
        pay(client, payload(reference1=references.new()))
        pay(client, qr_data)
    for call in callbacks.claim(1000):
        bank.post(call.body.encode())
    assert ReconciliationException.objects.count() == services.MAX_PAYMENTS_WITHOUT_KEY - 1
