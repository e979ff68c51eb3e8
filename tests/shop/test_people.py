"""The owner invites people and ends what they may do. Nobody else does."""

import re
from datetime import timedelta
from functools import partial
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.test import Client

from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from console.people.roles import Role, ShopRole
from core import clock
from shop.models import Membership
from tests.concurrency import run_concurrently
from tests.conftest import Shop
from tests.console.conftest import declared_roles
from tests.shop.people import join, person_of
from tests.sqlstates import CHECK_VIOLATION, LOCK_NOT_AVAILABLE, NOT_ALLOWED, rolled_back, sqlstate
from tests.staff_acts import REASON, act_form, send_act

__all__ = ["declared_roles"]
pytestmark = [pytest.mark.slow, pytest.mark.django_db]
PEOPLE, LINK = "/shop/people/", "/shop/invitation/"
PASSWORD = {"new_password1": "three-elephants-crossing", "new_password2": "three-elephants-crossing"}


@pytest.fixture
def owner(shop: Shop) -> Client:
    return person_of(shop)


def form(name: str = "nok", role: ShopRole = ShopRole.CASHIER, **changes: str) -> dict[str, str]:
    return {"username": name, "email": f"{name}@shop.example", "role": role} | changes


def invite(client: Client, **fields: Any) -> str:
    """The token of the link."""
    page = client.post(PEOPLE, form(**fields))
    assert page.status_code == 200
    assert "no-store" in page.headers["Cache-Control"]
    return token_on(page)


def token_on(page: Any) -> str:
    found = re.search(r"/shop/invitation/\?token=([\w-]+)\"", unescape(page.content.decode()))
    assert found, page.content.decode()
    return found[1]


def test_invited_cashier_chooses_a_password_and_sees_only_the_till_and_today(
    shop: Shop, owner: Client
) -> None:
    token, client = invite(owner), Client()
    assert client.get(LINK, {"token": token}).status_code == 200
    answer = client.post(LINK, {"token": token, **PASSWORD}, follow=True)
    assert "Received today" in answer.content.decode()
    assert client.get("/shop/payments/payment/").status_code == 403
    assert client.get(PEOPLE).status_code == 403
    assert client.get("/admin/").status_code == 403
    assert Client().post(LINK, {"token": token, **PASSWORD}).status_code == 410
    invited, accepted = AuditRecord.objects.filter(act__in=[Act.INVITED, Act.INVITATION_ACCEPTED]).order_by(
        "pk"
    )
    assert (invited.actor, invited.merchant_id) == ("person:owner-somtam", shop.merchant.pk)
    assert accepted.actor == "person:nok"


@pytest.mark.parametrize("role", [each for each in ShopRole if each != ShopRole.OWNER])
def test_only_an_owner_invites_and_ends(shop: Shop, owner: Client, role: ShopRole) -> None:
    colleague = person_of(shop, role)
    before = Membership.objects.count()
    assert colleague.post(PEOPLE, form()).status_code == 403
    first = Membership.objects.earliest("pk")
    assert colleague.post(PEOPLE, {"end": first.pk}).status_code == 403
    assert (Membership.objects.count(), Membership.objects.filter(ended_at=None).count()) == (before, before)


def test_person_who_ended_sees_nothing_at_the_next_click(shop: Shop, owner: Client) -> None:
    manager = person_of(shop, ShopRole.MANAGER)
    membership = Membership.objects.get(role=ShopRole.MANAGER)
    assert manager.get("/shop/payments/payment/").status_code == 200
    assert owner.post(PEOPLE, {"end": membership.pk}).status_code == 302
    refused = manager.get("/shop/payments/payment/")
    assert (refused.status_code, "You belong to no shop" in refused.content.decode()) == (403, True)


def test_owner_ends_neither_own_role_nor_people_of_a_rival(
    shop: Shop, other_shop: Shop, owner: Client
) -> None:
    person_of(other_shop, ShopRole.CASHIER)
    for each in Membership.objects.all():
        assert owner.post(PEOPLE, {"end": each.pk}).status_code == 403
    assert not Membership.objects.exclude(ended_at=None).exists()
    assert "cashier-larb" not in owner.get(PEOPLE).content.decode()


def test_person_of_two_shops_chooses_and_never_mixes_them(
    shop: Shop, other_shop: Shop, owner: Client
) -> None:
    client = person_of(other_shop, ShopRole.MANAGER, "nok")
    User.objects.filter(username="nok").update(email="nok@shop.example")
    page = owner.post(PEOPLE, form(has_login="on")).content.decode()
    assert "logs in as before" in page
    assert "token=" not in page
    mine, theirs = shop.qr_code()["payment_id"], other_shop.qr_code()["payment_id"]
    assert client.get("/shop/").status_code == 200
    assert "Somtam House" in client.get("/shop/").content.decode()  # the choice names both
    client.post("/shop/switch/", {"merchant": other_shop.merchant.pk})
    listed = client.get("/shop/payments/payment/").content.decode()
    assert (theirs in listed, mine in listed) == (True, False)
    client.post("/shop/switch/", {"merchant": shop.merchant.pk})
    assert client.get("/shop/payments/payment/").status_code == 403  # a cashier there
    stranger = client.post("/shop/switch/", {"merchant": "mch_x"})
    assert stranger.status_code == 200


def test_owner_takes_over_no_login_of_somebody_whom_a_rival_invited(
    shop: Shop, other_shop: Shop, owner: Client
) -> None:
    person_of(other_shop, name="rival-owner").post(PEOPLE, form(role=ShopRole.OWNER))
    for more in ({}, {"has_login": "on"}):
        page = owner.post(PEOPLE, form() | more)
        assert "token=" not in page.content.decode()
    other = owner.post(PEOPLE, form(email="mine@shop.example"))
    assert "token=" not in other.content.decode()


def test_login_that_a_rival_made_first_joins_no_shop_unless_its_owner_says_so(
    shop: Shop, other_shop: Shop, owner: Client
) -> None:
    token, trap = invite(person_of(other_shop, name="rival-owner")), Client()
    trap.post(LINK, {"token": token, **PASSWORD})
    page = owner.post(PEOPLE, form(role=ShopRole.MANAGER)).content.decode()
    assert "Ask the person whether it is theirs" in page
    assert not Membership.objects.filter(merchant=shop.merchant, user__username="nok").exists()
    assert "logs in as before" in owner.post(PEOPLE, form(has_login="on")).content.decode()


def test_link_of_somebody_whose_role_ended_makes_no_login(shop: Shop, owner: Client) -> None:
    lost = invite(owner)
    ended = Membership.objects.get(user__username="nok")
    owner.post(PEOPLE, {"end": ended.pk})
    assert Client().get(LINK, {"token": lost}).status_code == 410
    assert Client().post(LINK, {"token": lost, **PASSWORD}).status_code == 410
    again, client = invite(owner), Client()
    assert client.post(LINK, {"token": again, **PASSWORD}, follow=True).status_code == 200


def test_form_of_a_tab_that_shows_another_shop_changes_nothing(shop: Shop, other_shop: Shop) -> None:
    user = User.objects.create_user("malee")
    for each in (shop, other_shop):
        join(user, each, ShopRole.OWNER)
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(user)

    def token(page: Any) -> str:
        return str(re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', page.content.decode())[0])

    def switch(to: Shop) -> Any:
        chosen = {"merchant": to.merchant.pk, "csrfmiddlewaretoken": token(browser.get("/shop/switch/"))}
        return browser.post("/shop/switch/", chosen)

    switch(shop)
    first_tab = token(browser.get(PEOPLE))
    switch(other_shop)
    refused = browser.post(PEOPLE, form() | {"csrfmiddlewaretoken": first_tab})
    assert refused.status_code == 403
    assert not User.objects.filter(username="nok").exists()
    new = token(browser.get(PEOPLE))
    assert browser.post(PEOPLE, form() | {"csrfmiddlewaretoken": new}).status_code == 200
    assert Membership.objects.get(user__username="nok").merchant_id == other_shop.merchant.pk


def test_form_that_waits_for_a_confirmation_is_forgotten_with_another_shop(
    shop: Shop, other_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = User.objects.create_user("malee", password="three-elephants-crossing")
    for each in (shop, other_shop):
        join(user, each, ShopRole.OWNER)
    client = Client()
    client.post("/shop/login/", {"login": "malee", "password": "three-elephants-crossing"})
    client.post("/shop/switch/", {"merchant": shop.merchant.pk})
    later = clock.now() + timedelta(minutes=11)
    monkeypatch.setattr(clock, "now", lambda: later)
    asked = client.post(PEOPLE, form())
    assert asked.headers["Location"].startswith("/shop/confirm/")
    onward = parse_qs(urlsplit(asked.headers["Location"]).query)["next"][0]
    client.post("/shop/switch/", {"merchant": other_shop.merchant.pk})
    assert client.get(onward).status_code == 404
    assert not User.objects.filter(username="nok").exists()


@pytest.mark.django_db(transaction=True)
def test_person_who_joins_a_shop_in_this_moment_becomes_no_staff(shop: Shop) -> None:
    person = User.objects.create_user("nok")
    promote = f"SET LOCAL lock_timeout = 100; UPDATE auth_user SET is_staff = true WHERE id = {person.pk}"
    insert = f"""SET LOCAL lock_timeout = 100; INSERT INTO shop_membership (user_id, merchant_id, role,
        created_at) VALUES ({person.pk}, '{shop.merchant.pk}', 'owner', now())"""
    for first, second in ((promote, insert), (insert, promote)):
        with rolled_back():
            assert sqlstate(first) is None
            assert run_concurrently(partial(sqlstate, second)) == [LOCK_NOT_AVAILABLE]


def test_database_keeps_people_of_a_merchant_and_staff_apart(shop: Shop) -> None:
    person, staff = User.objects.create_user("nok"), User.objects.create_user("somsri", is_staff=True)
    join(person, shop, ShopRole.OWNER)
    for field in ("is_staff", "is_superuser"):
        attack = f"UPDATE auth_user SET {field} = true WHERE id = {person.pk}"
        assert sqlstate(attack) == CHECK_VIOLATION
    insert = f"""INSERT INTO shop_membership (user_id, merchant_id, role, created_at)
        VALUES ({staff.pk}, '{shop.merchant.pk}', 'owner', now())"""
    assert sqlstate(insert) == CHECK_VIOLATION
    change = "UPDATE shop_membership SET role = 'manager'"
    assert sqlstate(change) == CHECK_VIOLATION
    assert sqlstate("DELETE FROM shop_membership") == NOT_ALLOWED
    with transaction.atomic():
        assert Membership.objects.update(ended_at="2026-11-21T00:00Z") == 1
    assert sqlstate("UPDATE shop_membership SET ended_at = NULL") == CHECK_VIOLATION


def staff_user(role: Role) -> User:
    user = User.objects.create_user(f"staff-{role}", is_staff=True)
    user.groups.set([Group.objects.get(name=role)])
    return user


def staff(role: Role) -> Client:
    client = Client()
    client.force_login(staff_user(role))
    return client


def test_staff_invite_the_first_owner_on_the_page_of_the_merchant(shop: Shop, declared_roles: None) -> None:
    page = send_act(staff(Role.ADMIN), type(shop.merchant), shop.merchant.pk, "invite-owner", **form())
    client = Client()
    client.post(LINK, {"token": token_on(page), **PASSWORD})
    assert client.get(PEOPLE).status_code == 200


def test_page_of_a_person_in_the_console_offers_no_rights_of_staff(shop: Shop, admin_client: Client) -> None:
    person = User.objects.create_user("nok")
    join(person, shop, ShopRole.OWNER)
    page = admin_client.get(f"/admin/auth/user/{person.pk}/change/").content.decode()
    assert 'name="email"' in page
    assert not [name for name in ("is_staff", "is_superuser", "groups") if f'name="{name}"' in page]
    form = {"username": "nok", "is_staff": "on", "is_active": "on", "email": "nok@shop.example"}
    assert admin_client.post(f"/admin/auth/user/{person.pk}/change/", form).status_code < 500
    person.refresh_from_db()
    assert not person.is_staff


def test_staff_look_at_a_shop_with_a_reason_and_change_nothing(
    shop: Shop, other_shop: Shop, declared_roles: None
) -> None:
    client, viewer = staff(Role.SUPPORT), staff(Role.VIEWER)
    mine, theirs = shop.qr_code()["payment_id"], other_shop.qr_code()["payment_id"]
    look = f"/shop/look/{shop.merchant.pk}/"
    assert viewer.get(look).status_code == viewer.post(look, act_form()).status_code == 403
    assert client.get("/shop/payments/payment/").status_code == 302
    assert client.post(look, {}).status_code == 200
    assert client.post(look, act_form()).status_code == 302
    record = AuditRecord.objects.get(act=Act.SHOP_VIEWED)
    assert (record.actor, record.reason) == ("staff:staff-support", REASON)
    listed = client.get("/shop/payments/payment/").content.decode()
    assert (mine in listed, theirs in listed) == (True, False)
    payment = f"/shop/payments/payment/{mine.replace('_', '_5F')}"
    assert client.get(f"{payment}/change/").status_code == 200
    assert AuditRecord.objects.filter(act=Act.VIEWED, object_id=mine, actor="staff:staff-support").exists()
    for path in (f"{payment}/do/expire/", PEOPLE):
        refused = client.post(path, act_form())
        assert (refused.status_code, "can change nothing" in refused.content.decode()) == (403, True)
    assert client.get("/shop/month/?file=zip").status_code == 403  # as the monthly report of the console
    client.force_login(staff_user(Role.FINANCE))
    client.post(look, act_form())
    assert client.get("/shop/month/?file=zip").status_code == 200
    assert client.get(f"{payment}/do/expire/").status_code == 403
    client.get("/shop/switch/")
    assert client.get("/shop/payments/payment/").status_code == 302
