"""Staff issue keys in the console; a key that can withdraw needs a permission of its own."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from core.scopes import Scope
from merchants.models import ApiKey
from tests.conftest import Shop

LIST = "/admin/merchants/merchant/"
SAFE = [scope.value for scope in Scope if scope != Scope.WITHDRAWALS_WRITE]


@pytest.fixture
def clerk(db: None) -> Client:
    return member("somsri", "view_merchant", "issue_key")


def member(name: str, *permissions: str) -> Client:
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


def issue(client: Client, shop: Shop, **fields: Any) -> str:
    form = {"action": "issue_key", "_selected_action": [shop.merchant.pk]} | fields
    answer = client.post(LIST, form)
    assert answer.status_code == 200
    return answer.content.decode()


def newest() -> ApiKey:
    return ApiKey.objects.latest("created_at")


def test_opening_the_key_form_issues_no_api_key(shop: Shop, clerk: Client) -> None:
    page = issue(clerk, shop)
    assert "payments:write" in page
    assert ApiKey.objects.count() == 1


def test_key_form_issues_api_key_with_chosen_scopes_and_networks(shop: Shop, clerk: Client) -> None:
    page = issue(
        clerk, shop, issue="1", scopes=["payments:write"], networks="127.0.0.1\n10.0.0.0/8", hours="2"
    )
    [secret] = re.findall(r"tq_test_[0-9A-Za-z]{46}", page)
    key = newest()
    assert (key.scopes, key.networks) == (["payments:write"], ["127.0.0.1/32", "10.0.0.0/8"])
    assert key.issued_by == "staff:somsri"
    assert key.expires_at is not None
    assert Shop(shop.merchant, secret, shop.http).get("/v1/balance").status_code == 403


@pytest.mark.slow
def test_issuing_a_key_with_withdrawal_scope_needs_a_separate_permission(shop: Shop, clerk: Client) -> None:
    assert "withdrawals:write" not in issue(clerk, shop)
    page = issue(clerk, shop, issue="1", scopes=Scope.values)
    assert "withdrawals:write is not one of the available choices" in page
    assert ApiKey.objects.count() == 1
    issue(
        member("malee", "view_merchant", "issue_key", "issue_withdrawal_key"),
        shop,
        issue="1",
        scopes=Scope.values,
    )
    assert newest().scopes == Scope.values


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"scopes": []}, "This field is required"),
        ({"scopes": SAFE, "networks": "everywhere"}, "everywhere"),
        ({"scopes": SAFE, "hours": "0"}, "greater than or equal to 1"),
    ],
)
def test_invalid_key_form_issues_no_api_key(shop: Shop, clerk: Client, fields: Any, complaint: str) -> None:
    assert complaint in issue(clerk, shop, issue="1", **fields)
    assert ApiKey.objects.count() == 1


def test_staff_without_permission_cannot_issue_api_keys(shop: Shop) -> None:
    form = {"action": "issue_key", "_selected_action": [shop.merchant.pk], "issue": "1", "scopes": SAFE}
    member("malee", "view_merchant").post(LIST, form)
    assert ApiKey.objects.count() == 1


def test_api_key_page_shows_scopes_and_issued_by(shop: Shop, admin_client: Client) -> None:
    issue(admin_client, shop, issue="1", scopes=["refunds:write"])
    page = admin_client.get(
        f"/admin/merchants/apikey/{newest().pk.replace('_', '_5F')}/change/"
    ).content.decode()
    assert "refunds:write" in page
    assert "staff:admin" in page
