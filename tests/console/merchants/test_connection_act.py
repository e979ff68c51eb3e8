"""Staff test the connection of a merchant to its bank, and read what came back."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
import time_machine
from django.test import Client

from banks import sandbox
from console.merchants import connection_acts
from merchants.models import BankConnection, Merchant
from reconciliation.inquiries import connection_tests, rate_limit
from reconciliation.models import BankTransaction
from tests.banks import fake_scb
from tests.banks.fake_scb import INQUIRY, TOKENS, FakeScb, error_response, success
from tests.conftest import Shop
from tests.reconciliation.builders import staff_client
from tests.staff_acts import acts_of_staff, run_act, send_act
from tests.webhook_receiver import Reply
from tests.webhooks.misbehaving_receivers import listening, then_closes, then_stalls, unused_port

pytestmark = [pytest.mark.slow, pytest.mark.django_db]


@pytest.fixture
def malee(db: None) -> Client:
    return staff_client("malee", "view_merchant", "test_connection")


@pytest.fixture
def bank() -> Iterator[FakeScb]:
    with FakeScb.running() as bank:
        yield bank


@pytest.fixture
def live(db: None, bank: FakeScb, noon: datetime) -> Iterator[Shop]:
    """A shop at the bank, at noon."""
    with time_machine.travel(noon):
        yield fake_scb.shop_at(bank)


def tried(client: Client, shop: Shop, **values: str) -> str:
    return run_act(client, Merchant, shop.merchant.pk, "test-connection", **values)


def on_inquiry(bank: FakeScb, noon: datetime, reply: Reply) -> None:
    bank.on_inquiry(f"{noon + timedelta(hours=7):%Y-%m-%d}", reply, reference=connection_tests.REFERENCE)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("audit_is_clean")
def test_sandbox_bank_answers_over_http(shop: Shop, malee: Client, live_server: Any, settings: Any) -> None:
    settings.BASE_URL = live_server.url
    assert re.search(r"The sandbox bank answered in [\d,]+ ms. The connection works.", tried(malee, shop))
    [record] = acts_of_staff()
    assert (record.act, record.object_id) == ("connection_tested", shop.merchant.pk)
    assert not BankTransaction.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_sandbox_bank_refuses_another_secret(
    shop: Shop, malee: Client, live_server: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.BASE_URL = live_server.url
    sign = sandbox._SandboxClient._signature
    monkeypatch.setattr(
        sandbox._SandboxClient, "_signature", lambda self, at, message: sign(self, at, message + b"x")
    )
    assert "refused the credentials" in tried(malee, shop)


def test_silent_bank_times_out(
    shop: Shop, malee: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "READ_SECONDS", 0.3)
    with listening(then_stalls(b"")) as silent:
        settings.BASE_URL = silent.base_url
        page = tried(malee, shop)
    found = re.search(r"The sandbox bank did not answer within ([\d,]+) ms", page)
    assert found is not None and int(found[1].replace(",", "")) >= 300
    assert acts_of_staff().count() == 1


def test_bank_without_a_server_cannot_be_reached(shop: Shop, malee: Client, settings: Any) -> None:
    with unused_port() as port:
        settings.BASE_URL = f"http://127.0.0.1:{port}"
        assert "The sandbox bank cannot be reached" in tried(malee, shop)


def test_broken_answers_are_told_apart(shop: Shop, malee: Client, settings: Any) -> None:
    with listening(then_closes(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n<htm>")) as bank:
        settings.BASE_URL = bank.base_url
        assert "ms with an error" in tried(malee, shop)
    with listening(then_closes(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")) as bank:
        settings.BASE_URL = bank.base_url
        assert "its answer cannot be read" in tried(malee, shop)


def test_live_bank_answers(live: Shop, bank: FakeScb, noon: datetime, malee: Client) -> None:
    on_inquiry(bank, noon, success([]))
    assert "Siam Commercial Bank answered in" in tried(malee, live)
    assert [each.path.split("?")[0] for each in bank.requests] == [TOKENS, INQUIRY]


@pytest.mark.parametrize("status", [400, 401, 403])
def test_live_bank_refuses_the_login(live: Shop, bank: FakeScb, malee: Client, status: int) -> None:
    bank.on(TOKENS, error_response(status))
    page = tried(malee, live)
    assert "refused the credentials. Renew the connection." in page
    assert bank.secret not in page


def test_live_bank_refuses_the_token(live: Shop, bank: FakeScb, noon: datetime, malee: Client) -> None:
    on_inquiry(bank, noon, error_response(403))
    assert "refused the credentials" in tried(malee, live)


def test_unreadable_connection_is_reported(live: Shop, bank: FakeScb, malee: Client) -> None:
    BankConnection.objects.update(credentials_sealed="of other keys")
    assert "its connection is not set up correctly" in tried(malee, live)
    assert bank.requests == []


def test_busy_bank_is_not_asked(live: Shop, bank: FakeScb, malee: Client) -> None:
    with rate_limit.exclusive_call("scb"):
        assert "busy with other inquiries" in tried(malee, live)
    assert bank.requests == []


def test_second_click_does_not_ask_again(live: Shop, bank: FakeScb, malee: Client) -> None:
    token = str(uuid4())
    tried(malee, live, token=token)
    asked = len(bank.requests)
    assert "Nothing changed." in tried(malee, live, token=token)
    assert (len(bank.requests), acts_of_staff().count()) == (asked, 1)


def test_tests_of_one_person_are_limited(live: Shop, bank: FakeScb, malee: Client) -> None:
    bank.on(TOKENS, error_response())
    for _ in range(connection_acts.TESTS.burst):
        assert "refused the credentials" in tried(malee, live)
    assert "Try again in" in tried(malee, live)
    assert acts_of_staff().count() == connection_acts.TESTS.burst
    colleague = staff_client("somsri", "view_merchant", "test_connection")
    assert "refused the credentials" in tried(colleague, live)


def test_test_needs_its_permission_and_a_reason(live: Shop, bank: FakeScb, malee: Client) -> None:
    onlooker = staff_client("prasit", "view_merchant")
    assert send_act(onlooker, Merchant, live.merchant.pk, "test-connection").status_code == 403
    assert "required" in tried(malee, live, reason="")
    assert bank.requests == []
