"""Nobody gives rights that they do not have, also not by hand-made requests or in a race."""

from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.db import connection, transaction
from django.test import Client

from console.people import grants, roles
from console.people.roles import Role
from tests.concurrency import run_concurrently
from tests.stack import wait_until
from tests.tables import LOCKS

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
USERS, GROUPS = "/admin/auth/user/", "/admin/auth/group/"
PASSWORD = "Rt7-Somtam-Malako"
NEW_PASSWORD = {"password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}
MANAGES = ["view_user", "add_user", "change_user", "view_group", "add_group", "change_group", "delete_group"]


def permission(codename: str) -> Permission:
    return Permission.objects.get(codename=codename)


def make(name: str, *codenames: str, **fields: Any) -> User:
    user = User.objects.create_user(name, is_staff=True, password="!", **fields)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return user


def login(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def form_of(user: User, **changes: Any) -> dict[str, Any]:
    joined = user.date_joined
    kept = {
        "is_active": "on",
        "is_staff": "on",
        "date_joined_0": f"{joined:%Y-%m-%d}",
        "date_joined_1": f"{joined:%H:%M:%S}",
        "groups": list(user.groups.values_list("pk", flat=True)),
        "user_permissions": list(user.user_permissions.values_list("pk", flat=True)),
    }
    return {name: value for name, value in (kept | changes).items() if value is not None}


def change(client: Client, user: User, **changes: Any) -> int:
    return int(client.post(f"{USERS}{user.pk}/change/", form_of(user, **changes)).status_code)


def rights_of(user: User) -> Any:
    fresh = User.objects.get(pk=user.pk)
    groups = sorted(fresh.groups.values_list("name", flat=True))
    given = sorted(fresh.user_permissions.values_list("codename", flat=True))
    flags = (fresh.is_active, fresh.is_staff, fresh.is_superuser)
    return flags, groups, given, fresh.password


@pytest.fixture
def manager() -> User:
    """May change staff and roles, and hold one permission that allows something else."""
    return make("malee", "view_payment", *MANAGES)


@pytest.fixture
def clerk() -> User:
    return make("somsri")


@pytest.fixture
def boss() -> User:
    return User.objects.create_superuser("boss", password="!")


def test_manager_gives_what_they_hold(manager: User, clerk: User) -> None:
    readers = Group.objects.create(name="Readers")
    readers.permissions.set([permission("view_payment")])
    given = {"groups": [readers.pk], "user_permissions": [permission("view_payment").pk]}
    assert change(login(manager), clerk, **given) == 302
    assert rights_of(clerk)[1:3] == (["Readers"], ["view_payment"])


def test_permission_that_the_manager_does_not_hold_is_refused(manager: User, clerk: User) -> None:
    before = rights_of(clerk)
    given = [permission("view_payment").pk, permission("decide_approval").pk]
    assert change(login(manager), clerk, user_permissions=given) == 200
    assert rights_of(clerk) == before
    page = login(manager).get(f"{USERS}{clerk.pk}/change/").content.decode()
    assert "See payments (payments)" in page
    assert "Approve and reject" not in page


def test_role_with_a_permission_that_the_manager_does_not_hold_is_refused(
    manager: User, clerk: User, declared_roles: None
) -> None:
    before = rights_of(clerk)
    for role in Role:
        given = [Group.objects.get(name=role).pk]
        assert change(login(manager), clerk, groups=given) == 200
        assert rights_of(clerk) == before


def test_admin_gives_every_role_but_finance(clerk: User, declared_roles: None) -> None:
    admin = make("anong")
    admin.groups.set([Group.objects.get(name=Role.ADMIN)])
    results = {}
    for role in Role:
        change(login(admin), clerk, groups=[Group.objects.get(name=role).pk])
        results[role] = clerk.groups.filter(name=role).exists()
        clerk.groups.clear()
    assert results == {Role.VIEWER: True, Role.SUPPORT: True, Role.FINANCE: False, Role.ADMIN: True}


def test_superuser_flag_is_given_and_taken_by_superusers_only(manager: User, clerk: User, boss: User) -> None:
    assert change(login(manager), clerk, is_superuser="on") == 302
    assert not User.objects.get(pk=clerk.pk).is_superuser
    assert change(login(boss), clerk, is_superuser="on") == 302
    assert User.objects.get(pk=clerk.pk).is_superuser


@pytest.mark.parametrize("strong", ["superuser", "by a group", "directly", "inactive", "no staff"])
def test_person_who_holds_more_cannot_be_changed(manager: User, strong: str) -> None:
    person = make(
        "somsak",
        *([] if strong == "by a group" else ["decide_approval"]),
        is_superuser=strong == "superuser",
        is_active=strong != "inactive",
    )
    if strong == "no staff":
        User.objects.filter(pk=person.pk).update(is_staff=False)
    if strong == "by a group":
        group = Group.objects.create(name="Approvers")
        group.permissions.set([permission("decide_approval")])
        person.groups.set([group])
    before, client = rights_of(person), login(manager)
    assert client.get(f"{USERS}{person.pk}/password/").status_code == 403
    assert client.post(f"{USERS}{person.pk}/password/", NEW_PASSWORD).status_code == 403
    attempts: list[dict[str, Any]] = [
        {"user_permissions": []},
        {"groups": []},
    ]
    for changes in attempts:
        assert change(client, person, **changes) == 403
    assert rights_of(person) == before
    shown = client.get(f"{USERS}{person.pk}/change/")
    assert (shown.status_code, 'name="_save"' in shown.content.decode()) == (200, False)


def test_password_of_a_person_who_holds_no_more_can_be_set(manager: User, clerk: User) -> None:
    assert login(manager).post(f"{USERS}{clerk.pk}/password/", NEW_PASSWORD).status_code == 302
    assert User.objects.get(pk=clerk.pk).check_password(PASSWORD)


def test_nobody_changes_their_own_rights(manager: User, declared_roles: None) -> None:
    before = rights_of(manager)
    given = {
        "is_superuser": "on",
        "is_active": None,
        "groups": [Group.objects.get(name=Role.ADMIN).pk],
        "user_permissions": list(Permission.objects.values_list("pk", flat=True)),
        "last_name": "Srisuk",
    }
    assert change(login(manager), manager, **given) == 302
    assert rights_of(manager) == before
    assert User.objects.get(pk=manager.pk).last_name == "Srisuk"


def test_added_user_has_no_rights(manager: User) -> None:
    wanted = {"username": "new", "is_superuser": "on", "is_staff": "on", "user_permissions": [1]}
    assert login(manager).post(f"{USERS}add/", NEW_PASSWORD | wanted).status_code == 302
    new = User.objects.get(username="new")
    assert (new.is_superuser, new.is_staff, new.user_permissions.count()) == (False, False, 0)


# --- roles ----------------------------------------------------------------------------------------------


def test_role_gets_only_permissions_that_its_maker_holds(manager: User) -> None:
    client = login(manager)
    for codename, made in (("decide_approval", False), ("view_payment", True)):
        client.post(f"{GROUPS}add/", {"name": codename, "permissions": [permission(codename).pk]})
        assert Group.objects.filter(name=codename).exists() == made
    mine = Group.objects.get(name="view_payment")
    wanted = {"name": "view_payment", "permissions": [permission("decide_approval").pk]}
    assert client.post(f"{GROUPS}{mine.pk}/change/", wanted).status_code == 200
    assert [each.codename for each in mine.permissions.all()] == ["view_payment"]


@pytest.mark.parametrize("reason", ["holds more", "strong member", "superuser is member", "own role"])
def test_role_of_stronger_people_or_of_oneself_cannot_be_changed(
    manager: User, boss: User, reason: str
) -> None:
    group = Group.objects.create(name="Team")
    group.permissions.set([permission("view_payment")])
    if reason == "holds more":
        group.permissions.add(permission("decide_approval"))
    members = {"strong member": make("somsak", "decide_approval"), "superuser is member": boss}
    members["own role"] = manager
    if reason in members:
        members[reason].groups.set([group])
    client, before = login(manager), set(group.permissions.values_list("codename", flat=True))
    wanted = {"name": "Team", "permissions": [permission("change_user").pk]}
    assert client.post(f"{GROUPS}{group.pk}/change/", wanted).status_code == 403
    assert client.post(f"{GROUPS}{group.pk}/delete/", {"post": "yes"}).status_code == 403
    assert set(group.permissions.values_list("codename", flat=True)) == before
    assert login(boss).post(f"{GROUPS}{group.pk}/change/", wanted).status_code == 302


def test_declared_roles_cannot_be_changed_in_the_console(boss: User, declared_roles: None) -> None:
    for role in Role:
        group = Group.objects.get(name=role)
        assert login(boss).get(f"{GROUPS}{group.pk}/change/").status_code == 200
        wanted: dict[str, Any] = {"name": role.value, "permissions": []}
        assert login(boss).post(f"{GROUPS}{group.pk}/change/", wanted).status_code == 403
        assert login(boss).post(f"{GROUPS}{group.pk}/delete/", {"post": "yes"}).status_code == 403
        assert group.permissions.count() == len(roles.permissions_of(role))


def test_pages_offer_only_declared_permissions(boss: User) -> None:
    offered = grants.offered_permissions(boss).values_list("content_type__app_label", "codename")
    assert {f"{app_label}.{codename}" for app_label, codename in offered} == roles.PERMISSIONS


# --- races ----------------------------------------------------------------------------------------------


def waits_for_advisory_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT EXISTS (SELECT FROM {LOCKS} WHERE locktype = 'advisory' AND NOT granted)")
        return bool(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("loss", ["permission", "user", "superuser"])
def test_right_that_is_taken_away_at_this_moment_is_not_given(loss: str) -> None:
    roles.apply(apps)
    manager, clerk = make("malee", *MANAGES, is_superuser=loss == "superuser"), make("somsri")
    lenders = Group.objects.create(name="Lenders")
    lenders.permissions.set([permission("decide_approval")])
    manager.groups.set([lenders])
    client, before = login(manager), rights_of(clerk)
    given = [permission("decide_approval").pk]

    def take_away() -> int:
        with transaction.atomic():
            grants.lock()
            wait_until(waits_for_advisory_lock, 60)
            if loss == "user":
                User.objects.filter(pk=manager.pk).update(is_active=False)
            else:
                lenders.permissions.clear()
                User.objects.filter(pk=manager.pk).update(is_superuser=False)
        return 0

    def give() -> int:
        wait_until(lock_is_held, 60)
        return change(client, clerk, user_permissions=given)

    _, status = run_concurrently(take_away, give)
    assert status == (403 if loss == "user" else 200)
    assert rights_of(clerk) == before


@pytest.mark.django_db(transaction=True)
def test_role_and_password_are_not_changed_with_rights_that_end_at_this_moment() -> None:
    """The page of a role and of a password wait as the page of a user does."""
    lenders, team = Group.objects.create(name="Lenders"), Group.objects.create(name="Team")
    lenders.permissions.set([permission("decide_approval")])
    manager, clerk = make("malee", *MANAGES), make("somsri", "decide_approval")
    client, wanted = login(manager), {"name": "Team", "permissions": [permission("decide_approval").pk]}
    before = rights_of(clerk)
    attempts = {
        f"{GROUPS}{team.pk}/change/": wanted,
        f"{GROUPS}add/": wanted | {"name": "New"},
        f"{USERS}{clerk.pk}/password/": NEW_PASSWORD,
    }
    for path, data in attempts.items():
        manager.groups.set([lenders])

        def take_away() -> int:
            with transaction.atomic():
                grants.lock()
                wait_until(waits_for_advisory_lock, 60)
                manager.groups.clear()
            return 0

        def give(path: str = path, data: Any = data) -> int:
            wait_until(lock_is_held, 60)
            return int(client.post(path, data).status_code)

        run_concurrently(take_away, give)
        assert team.permissions.count() == 0, path
        assert not Group.objects.filter(name="New").exists()
        assert rights_of(clerk) == before, path


def lock_is_held() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT EXISTS (SELECT FROM {LOCKS} WHERE locktype = 'advisory' AND granted)")
        return bool(cursor.fetchone()[0])
