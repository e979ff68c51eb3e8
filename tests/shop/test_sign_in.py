"""People of a merchant sign in as staff do, at addresses of their own."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals import payout_accounts
from audit_trail.models import AuditRecord
from console.people.roles import ShopRole
from core import clock
from tests.authenticator_app import enrolled
from tests.conftest import Shop
from tests.context import acting_as
from tests.shop.people import join, person_of, quoted
from tests.staff_acts import act_form
from webhooks.models import Endpoint

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


@pytest.mark.parametrize(
    "slug",
    [
        "merchants/merchant/{}/do/add-payout-account/",
        "merchants/merchant/{}/do/rename/",
        "merchants/merchant/{}/do/set-nightly-payout/",
        "webhooks/endpoint/do/add-webhook/",
    ],
)
def test_old_login_confirms_who_acts_before_money_or_events_go_elsewhere(
    shop: Shop, malee: User, slug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"bank_code": "014", "bank_account": "4051234567", "account_name": "Malee"}
    with acting_as("staff:lek"):
        listed = payout_accounts.add(shop.merchant, **given | {"bank_account": "4051234568"}, now=clock.now())
    given |= {"name": "Mine", "url": "https://shop.example/", "events": "payment.succeeded"}
    given |= {"account": listed.pk, "days": "every_day", "time": "21:00", "float_amount": "0"}
    client = Client()
    log_in(client)
    later = clock.now() + timedelta(minutes=11)
    monkeypatch.setattr(clock, "now", lambda: later)
    asked = client.post(f"/shop/{slug.format(quoted(shop.merchant.pk))}", act_form(**given))
    assert asked.status_code == 302
    assert asked.headers["Location"].startswith("/shop/confirm/")
    assert not AuditRecord.objects.filter(actor="person:malee").exists()
    assert not Endpoint.objects.exists()


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
