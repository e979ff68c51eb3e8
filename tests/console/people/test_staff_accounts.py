"""Staff are deactivated, never deleted or renamed, so that records name them."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import DatabaseError, connection, transaction
from django.test import Client

from merchants.models import Merchant
from tests.conftest import Shop
from tests.reconciliation.builders import staff_client
from tests.staff_acts import REASON, acts_of_staff, run_act

PAGE = "/admin/auth/user/"


def form_of(user: User, **changes: Any) -> dict[str, Any]:
    joined = user.date_joined
    given = {
        "is_active": "on",
        "is_staff": "on",
        "date_joined_0": f"{joined:%Y-%m-%d}",
        "date_joined_1": f"{joined:%H:%M:%S}",
    }
    return given | changes


def issuer(shop: Shop) -> User:
    """A user who issued a key."""
    client = staff_client("somsri", "view_merchant", "issue_key")
    run_act(client, Merchant, shop.merchant.pk, "issue-key", scopes=["payments:read"])
    return User.objects.get(username="somsri")


@pytest.mark.parametrize("is_superuser", [False, True])
@pytest.mark.slow
def test_console_has_no_delete_action_for_staff_users(admin_client: Client, is_superuser: bool) -> None:
    clerk = User.objects.create_user("somsri", is_staff=True, is_superuser=is_superuser)
    assert admin_client.get(f"{PAGE}{clerk.pk}/delete/").status_code == 403
    assert admin_client.post(f"{PAGE}{clerk.pk}/delete/", {"post": "yes"}).status_code == 403
    admin_client.post(PAGE, {"action": "delete_selected", "_selected_action": [clerk.pk], "post": "yes"})
    assert User.objects.filter(pk=clerk.pk).exists()
    assert "deletelink" not in admin_client.get(f"{PAGE}{clerk.pk}/change/").content.decode()


def test_staff_user_with_recorded_actions_cannot_be_deleted(shop: Shop) -> None:
    clerk = issuer(shop)
    history = list(acts_of_staff().filter(actor="staff:somsri").values())
    assert history
    with pytest.raises(DatabaseError), transaction.atomic():
        clerk.delete()
    for sql in (
        "DELETE FROM auth_user",
        "UPDATE auth_user SET username = 'somebody'",
    ):
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql)
    assert list(acts_of_staff().filter(actor="staff:somsri").values()) == history


def test_staff_user_name_cannot_be_changed(admin_client: Client) -> None:
    """Records name staff by user name, so a name is never used again."""
    clerk = User.objects.create_user("somsri", is_staff=True)
    admin_client.post(f"{PAGE}{clerk.pk}/change/", form_of(clerk, username="malee"))
    clerk.refresh_from_db()
    assert clerk.username == "somsri"


@pytest.mark.slow
def test_deactivated_staff_user_is_signed_out_and_recorded_actions_stay(
    shop: Shop, admin_client: Client
) -> None:
    clerk, client = issuer(shop), Client()
    client.force_login(clerk)
    assert client.get("/admin/").status_code == 200
    run_act(admin_client, User, clerk.pk, "disable")
    assert client.get("/admin/").status_code == 302
    assert acts_of_staff().filter(actor="staff:somsri").exists()


def test_login_is_disabled_and_enabled_with_a_reason(admin_client: Client, db: None) -> None:
    clerk = User.objects.create_user("somsri", is_staff=True)
    active = User.objects.filter(pk=clerk.pk, is_active=True)
    run_act(admin_client, User, clerk.pk, "disable")
    assert not active.exists()
    assert "This login is disabled." in admin_client.get(f"{PAGE}{clerk.pk}/change/").text
    admin_client.post(f"{PAGE}{clerk.pk}/change/", form_of(clerk))  # the form cannot enable it
    assert not active.exists()
    run_act(admin_client, User, clerk.pk, "enable")
    assert active.exists()
    disabled, *_changed, enabled = acts_of_staff()
    assert (disabled.act, enabled.act, enabled.reason) == ("login_disabled", "login_enabled", REASON)


def test_list_of_people_shows_role_second_step_last_login_and_state(
    admin_client: Client, declared_roles: None
) -> None:
    clerk = User.objects.create_user("somsri", is_staff=True, first_name="Somsri", is_active=False)
    clerk.groups.set(Group.objects.filter(name="finance"))
    row = re.search(r"<tr[^>]*>(?:(?!</tr>).)*somsri.*?</tr>", admin_client.get(PAGE).text, re.DOTALL)
    assert row is not None
    words = re.sub(r"<[^>]+>|\s+", " ", row[0])
    for shown in ("Somsri", "finance", "none", "Disabled"):
        assert shown in words


@pytest.mark.slow
def test_page_of_a_person_shows_sessions_and_what_they_did(shop: Shop, admin_client: Client) -> None:
    clerk = issuer(shop)
    page = admin_client.get(f"{PAGE}{clerk.pk}/change/").text
    assert "Issued a key" in page
    assert "Last login:" in page
    assert "What this person did" in page
    onlooker = staff_client("malee", "view_user")  # who may not read the audit trail
    assert "Issued a key" not in onlooker.get(f"{PAGE}{clerk.pk}/change/").text


def test_audit_trail_names_the_merchant(shop: Shop, admin_client: Client) -> None:
    issuer(shop)
    Merchant.objects.filter(pk=shop.merchant.pk).update(name="Somtam House")
    run_act(admin_client, Merchant, shop.merchant.pk, "suspend")
    assert "Merchant Somtam House" in admin_client.get("/admin/audit_trail/auditrecord/").text


def test_last_login_and_permissions_of_a_staff_user_can_change(db: None) -> None:
    clerk = User.objects.create_user("somsri", is_staff=True)
    Client().force_login(clerk)
    clerk.refresh_from_db()
    assert clerk.last_login is not None
