"""An admin invites by a link. It works once and for three days, and gives only what the admin holds."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import transaction
from django.test import Client
from pytest_django import Settings

from audit_trail.models import AuditRecord
from console.people import invitations
from console.people.roles import Role
from tests.authenticator_app import APP, set_up
from tests.concurrency import run_concurrently
from tests.security_lines import security_lines

INVITE, LINK = "/admin/auth/user/invite/", "/admin/invitation/"
PASSWORD = {"new_password1": "three-elephants-crossing", "new_password2": "three-elephants-crossing"}
pytestmark = [pytest.mark.slow, pytest.mark.django_db]


@pytest.fixture
def admin(declared_roles: None) -> Client:
    user = User.objects.create_user("prasit", is_staff=True)
    user.groups.set([Group.objects.get(name=Role.ADMIN)])
    client = Client()
    client.force_login(user)
    return client


def role(name: Role) -> str:
    return str(Group.objects.get(name=name).pk)


def invite(client: Client, name: str = "somsri", *roles: Role) -> str:
    """Return the token of the link."""
    form = {"username": name, "email": "somsri@shop.example", "groups": [role(each) for each in roles]}
    page = client.post(INVITE, form)
    assert page.status_code == 200
    assert "no-store" in page.headers["Cache-Control"]
    return token_on(page.content.decode())


def token_on(page: str) -> str:
    found = re.search(r"https://qr\.example\.test/admin/invitation/\?token=([\w-]+)\"", unescape(page))
    assert found
    return found[1]


def accept(token: str, client: Client | None = None, **fields: str) -> Any:
    return (client or Client()).post(LINK, {"token": token, **PASSWORD, **fields})


def test_invited_person_chooses_a_password_and_is_logged_in(admin: Client) -> None:
    token = invite(admin, "somsri", Role.VIEWER, Role.SUPPORT)
    person, client = User.objects.get(username="somsri"), Client()
    assert (person.is_staff, person.is_superuser, person.has_usable_password()) == (True, False, False)
    page = client.get(LINK, {"token": token})
    assert "somsri" in page.content.decode()
    answer = accept(token, client)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/admin/")
    assert client.get("/admin/payments/payment/").status_code == 200
    person.refresh_from_db()
    assert person.check_password(PASSWORD["new_password1"])
    assert {group.name for group in person.groups.all()} == {Role.VIEWER, Role.SUPPORT}


def test_invited_person_sets_up_the_second_step_where_it_is_required(
    admin: Client, settings: Settings
) -> None:
    token = invite(admin, "somsri", Role.VIEWER)
    settings.REQUIRE_TWO_FACTOR = True
    client = Client()
    accept(token, client)
    assert client.get("/admin/", follow=True).redirect_chain[-1][0].startswith(APP)
    set_up(client)
    assert client.get("/admin/").status_code == 200


def test_link_works_once(admin: Client) -> None:
    token = invite(admin)
    accept(token)
    for again in (accept(token, new_password1="x"), Client().get(LINK, {"token": token})):
        assert again.status_code == 410
        assert "not valid any more" in again.content.decode()
    assert User.objects.get(username="somsri").check_password(PASSWORD["new_password1"])


def test_link_works_for_72_hours(clock: Any, admin: Client) -> None:
    first, second = invite(admin), invite(admin, "malee")
    clock.shift(timedelta(hours=72, seconds=-1))
    assert accept(first).status_code == 302
    clock.shift(timedelta(seconds=2))
    assert accept(second).status_code == 410
    assert not User.objects.get(username="malee").has_usable_password()


@pytest.mark.parametrize("token", ["", "x", "\0", "ก" * 500, "1-x", "9" * 30 + "-x", "๑-", "-"])
def test_wrong_link_is_refused(db: None, token: str) -> None:
    assert Client().get(LINK, {"token": token}).status_code == 410
    assert accept(token).status_code == 410


@pytest.mark.parametrize("password", ["short", "123456789012", "password1234", "somsri@shop.example"])
def test_poor_password_is_refused_and_the_link_stays(admin: Client, password: str) -> None:
    token = invite(admin)
    page = accept(token, new_password1=password, new_password2=password)
    assert page.status_code == 200
    assert "errorlist" in page.content.decode()
    assert accept(token).status_code == 302


def test_link_is_in_no_record_and_no_log(admin: Client, caplog: pytest.LogCaptureFixture) -> None:
    token = invite(admin)
    accept(token)
    assert token not in str(list(AuditRecord.objects.values())) + caplog.text


def test_link_for_one_person_is_none_for_another(admin: Client) -> None:
    first, _dash, secret = invite(admin).partition("-")
    second = User.objects.create_user("malee", is_staff=True)
    assert accept(f"{second.pk}-{secret}").status_code == 410
    assert accept(f"{first}-{secret}").status_code == 302


def test_invitation_and_acceptance_are_recorded(
    admin: Client, caplog: pytest.LogCaptureFixture, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        accept(invite(admin, "somsri", Role.VIEWER))
    person = User.objects.get(username="somsri")
    records = list(AuditRecord.objects.order_by("id"))
    assert [(each.act, each.object_id, each.actor) for each in records] == [
        ("invited", str(person.pk), "staff:prasit"),
        ("invitation_accepted", str(person.pk), "staff:somsri"),
    ]
    assert records[0].after["groups"] == ["viewer"]
    [line] = security_lines(caplog, "role_changed")
    assert (line["subject"], line["changes"]) == ("staff:somsri", ["+user", "+group viewer"])


# --- who may invite ---------------------------------------------------------------------------------------


def test_nobody_invites_to_a_role_that_they_do_not_hold(admin: Client) -> None:
    assert "finance" not in admin.get(INVITE).content.decode()
    form = {"username": "somsri", "groups": [role(Role.FINANCE)]}
    assert "errorlist" in admin.post(INVITE, form).content.decode()
    assert not User.objects.filter(username="somsri").exists()


@pytest.mark.parametrize("more", [{"is_superuser": "on"}, {"user_permissions": "1"}, {"password": "x"}])
def test_form_gives_nothing_that_it_does_not_show(admin: Client, more: dict[str, str]) -> None:
    admin.post(INVITE, {"username": "somsri", **more})
    person = User.objects.get(username="somsri")
    assert (person.is_superuser, person.user_permissions.count()) == (False, 0)
    assert not person.has_usable_password()


def test_known_user_name_is_refused(admin: Client) -> None:
    assert "already exists" in admin.post(INVITE, {"username": "prasit"}).content.decode()


def test_inviting_needs_its_permission(declared_roles: None) -> None:
    user = User.objects.create_user("malee", is_staff=True)
    user.groups.set([Group.objects.get(name=Role.SUPPORT)])
    client = Client()
    client.force_login(user)
    assert client.get(INVITE).status_code == 403
    assert client.post(INVITE, {"username": "somsri"}).status_code == 403


def again(client: Client, person: User) -> Any:
    return client.post(f"/admin/auth/user/{person.pk}/invite/")


def test_new_link_replaces_the_old_one(admin: Client) -> None:
    old = invite(admin)
    person = User.objects.get(username="somsri")
    assert "New invitation link" in admin.get(f"/admin/auth/user/{person.pk}/change/").content.decode()
    new = token_on(again(admin, person).content.decode())
    assert accept(old).status_code == 410
    assert accept(new).status_code == 302
    assert again(admin, person).status_code == 403


def test_no_new_link_for_a_person_who_holds_more(admin: Client) -> None:
    person = User.objects.create_user("somsri", is_staff=True)
    person.groups.set([Group.objects.get(name=Role.FINANCE)])
    before = person.password
    assert again(admin, person).status_code == 403
    person.refresh_from_db()
    assert person.password == before


def test_link_is_none_for_a_person_who_has_a_password(admin: Client) -> None:
    person = User.objects.create_user("somsri", password=PASSWORD["new_password1"], is_staff=True)
    token = f"{person.pk}-{invitations.tokens.make_token(person)}"
    assert accept(token, new_password1="another-9134", new_password2="another-9134").status_code == 410
    person.refresh_from_db()
    assert person.check_password(PASSWORD["new_password1"])


def test_link_of_a_deactivated_person_is_useless(admin: Client) -> None:
    token = invite(admin)
    User.objects.filter(username="somsri").update(is_active=False)
    assert Client().get(LINK, {"token": token}).status_code == 410
    assert accept(token).status_code == 410


def test_password_by_an_admin_makes_the_link_useless(admin: Client) -> None:
    token = invite(admin)
    person = User.objects.get(username="somsri")
    form = {"password1": "four-geckos-asleep", "password2": "four-geckos-asleep", "usable_password": "true"}
    assert admin.post(f"/admin/auth/user/{person.pk}/password/", form).status_code == 302
    assert accept(token).status_code == 410


def test_invited_person_cannot_log_in_without_the_link(admin: Client) -> None:
    invite(admin)
    for password in ("", "!", User.objects.get(username="somsri").password):
        answer = Client().post("/admin/login/", {"login": "somsri", "password": password})
        assert answer.status_code == 200


# --- races and the database --------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_one_of_many_requests_with_the_same_link_passes() -> None:
    person = User.objects.create_user("somsri", is_staff=True)
    with transaction.atomic():
        link = invitations.new_link(person)
    token = link.partition("token=")[2]
    passwords = [f"three-elephants-crossing-{number}" for number in range(4)]

    def attempt(password: str) -> int:
        client = Client(raise_request_exception=False)
        return int(accept(token, client, new_password1=password, new_password2=password).status_code)

    statuses = run_concurrently(*[lambda each=each: attempt(each) for each in passwords])
    # 503: another thread of this process hashed a password.
    assert statuses.count(302) == 1
    assert set(statuses) <= {302, 410, 503}
    person.refresh_from_db()
    assert person.check_password(passwords[statuses.index(302)])


def test_permission_to_view_staff_is_no_permission_to_invite(db: None) -> None:
    user = User.objects.create_user("malee", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_user", "change_user"]))
    client = Client()
    client.force_login(user)
    assert client.get(INVITE).status_code == 403
    assert INVITE not in client.get("/admin/auth/user/").content.decode()


def test_first_superuser_gets_a_link_by_a_command(db: None) -> None:
    link = call_command("invite_superuser", "somsri", "somsri@shop.example")
    person = User.objects.get(username="somsri")
    assert (person.is_superuser, person.is_staff, person.has_usable_password()) == (True, True, False)
    record = AuditRecord.objects.latest("pk")
    assert (record.act, record.after["is_superuser"]) == ("invited", True)
    again = call_command("invite_superuser", "somsri", "somsri@shop.example")
    assert accept(link.partition("token=")[2]).status_code == 410
    assert accept(again.partition("token=")[2]).status_code == 302
    with pytest.raises(CommandError, match="somsri exists, and has a password"):
        call_command("invite_superuser", "somsri", "somsri@shop.example")


def test_name_of_a_superuser_that_a_form_would_refuse_is_refused(db: None) -> None:
    with pytest.raises(CommandError, match="Enter a valid username"):
        call_command("invite_superuser", "som sri", "somsri@shop.example")
    assert not User.objects.exists()
