"""People of a merchant sign in as staff do, at addresses of their own."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from audit_trail.models import AuditRecord
from console.people.roles import ShopRole
from core import clock
from tests.authenticator_app import enrolled
from tests.conftest import Shop
from tests.shop.people import join, list_url, person_of, quoted
from tests.staff_acts import act_form

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
PASSWORD = "three-elephants-crossing"


@pytest.fixture
def malee(shop: Shop) -> User:
    user = User.objects.create_user("malee", password=PASSWORD)
    join(user, shop, ShopRole.OWNER)
    return user


def log_in(client: Client) -> Any:
    return client.post("/shop/login/", {"login": "malee", "password": PASSWORD})


def test_pages_ask_for_the_login_and_come_back(malee: User) -> None:
    client = Client()
    asked = client.get("/shop/payments/payment/")
    assert (asked.status_code, asked.headers["Location"]) == (
        302,
        "/shop/login/?next=/shop/payments/payment/",
    )
    assert client.get("/shop").headers["Location"] == "/shop/"
    assert client.get("/shop/login/").status_code == 200
    assert log_in(client).headers["Location"] == "/shop/"
    page = client.get("/shop/")
    assert "Somtam House" in page.content.decode()
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]
    assert client.get("/shop/account/").status_code == 200
    assert client.get("/shop/unknown/").status_code == 404


def test_second_step_is_needed_if_the_setting_asks_for_it(malee: User, settings: Any) -> None:
    settings.REQUIRE_TWO_FACTOR = True
    client = Client()
    log_in(client)
    assert client.get("/shop/").headers["Location"] == "/shop/account/app/"
    app = enrolled(malee)
    other = Client()
    log_in(other)
    assert other.get("/shop/").status_code == 302
    assert other.post("/shop/login/code/", {"code": app.next_code()}).headers["Location"] == "/shop/"
    assert other.get("/shop/payments/payment/").status_code == 200


def test_old_login_confirms_who_acts_before_a_payout_account_is_added(
    shop: Shop, malee: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client()
    log_in(client)
    later = clock.now() + timedelta(minutes=11)
    monkeypatch.setattr(clock, "now", lambda: later)
    add = f"{list_url('merchants.merchant')}{quoted(shop.merchant.pk)}/do/add-payout-account/"
    account = {"bank_code": "014", "bank_account": "4051234567", "account_name": "Malee"}
    asked = client.post(add, act_form(**account))
    assert asked.status_code == 302
    assert asked.headers["Location"].startswith("/shop/confirm/")
    assert not AuditRecord.objects.filter(act="payout_account_added").exists()


def test_password_change_is_recorded(shop: Shop, malee: User) -> None:
    client = Client()
    log_in(client)
    new = {"new_password1": "four-elephants-crossing", "new_password2": "four-elephants-crossing"}
    answer = client.post("/shop/password_change/", {"old_password": PASSWORD, **new})
    assert answer.status_code == 302
    assert AuditRecord.objects.get(act="password_changed").actor == "person:malee"


def test_deactivated_person_is_out_at_once(shop: Shop) -> None:
    client = person_of(shop)
    User.objects.filter(username="owner-somtam").update(is_active=False)
    assert client.get("/shop/").status_code == 302
