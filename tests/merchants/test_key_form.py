"""Staff issue keys in the console; a key that can withdraw needs a permission of its own."""

import re
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.utils import quote
from django.test import Client

from core import clock
from core.http.scopes import Scope
from merchants import services
from merchants.models import ApiKey, Merchant
from tests.concurrency import run_concurrently
from tests.conftest import Shop
from tests.reconciliation.builders import staff_client
from tests.staff_acts import REASON, acts_of_staff, run_act, send_act

SAFE = [scope.value for scope in Scope if scope != Scope.WITHDRAWALS_WRITE]


@pytest.fixture
def clerk(db: None) -> Client:
    return staff_client("somsri", "view_merchant", "issue_key")


def issue(client: Client, shop: Shop, **fields: Any) -> str:
    return run_act(client, Merchant, shop.merchant.pk, "issue-key", **fields)


def key_form(client: Client, shop: Shop) -> str:
    page = client.get(f"/admin/merchants/merchant/{quote(shop.merchant.pk)}/do/issue-key/")
    assert page.status_code == 200
    return page.content.decode()


def newest() -> ApiKey:
    return ApiKey.objects.latest("created_at")


def test_opening_the_key_form_issues_no_api_key(shop: Shop, clerk: Client) -> None:
    page = key_form(clerk, shop)
    assert "payments:write" in page
    assert ApiKey.objects.count() == 1


def test_key_form_issues_api_key_with_chosen_scopes_and_networks(shop: Shop, clerk: Client) -> None:
    page = issue(clerk, shop, scopes=["payments:write"], networks="127.0.0.1\n10.0.0.0/8", hours="2")
    [secret] = set(re.findall(r"tq_test_[0-9A-Za-z]{46}", page))
    key = newest()
    assert (key.scopes, key.networks) == (["payments:write"], ["127.0.0.1/32", "10.0.0.0/8"])
    assert key.issued_by == "staff:somsri"
    assert key.expires_at is not None
    assert Shop(shop.merchant, secret, shop.http).get("/v1/balance").status_code == 403


@pytest.mark.slow
def test_issuing_a_key_with_withdrawal_scope_needs_a_separate_permission(shop: Shop, clerk: Client) -> None:
    assert "withdrawals:write" not in key_form(clerk, shop)
    page = issue(clerk, shop, scopes=Scope.values)
    assert "withdrawals:write is not one of the available choices" in page
    assert ApiKey.objects.count() == 1
    issue(
        staff_client("malee", "view_merchant", "issue_key", "issue_withdrawal_key"),
        shop,
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
    assert complaint in issue(clerk, shop, **fields)
    assert ApiKey.objects.count() == 1


def test_staff_without_permission_cannot_issue_api_keys(shop: Shop) -> None:
    answer = send_act(
        staff_client("malee", "view_merchant"), Merchant, shop.merchant.pk, "issue-key", scopes=SAFE
    )
    assert answer.status_code == 403
    assert ApiKey.objects.count() == 1


@pytest.mark.slow
def test_api_key_page_shows_scopes_and_issued_by(shop: Shop, admin_client: Client) -> None:
    issue(admin_client, shop, scopes=["refunds:write"])
    page = admin_client.get(
        f"/admin/merchants/apikey/{newest().pk.replace('_', '_5F')}/change/"
    ).content.decode()
    assert "refunds:write" in page
    assert "staff:admin" in page


# --- shown once, recorded once ----------------------------------------------------------------------------


def test_issued_key_has_one_record_with_reason_and_key(shop: Shop, clerk: Client) -> None:
    issue(clerk, shop, scopes=["payments:read"])
    record = acts_of_staff().get()
    assert (record.act, record.object_id, record.reason) == ("key_issued", newest().pk, REASON)
    assert record.merchant_id == shop.merchant.id


@pytest.mark.slow
def test_secret_is_on_one_page_that_no_cache_keeps(shop: Shop, clerk: Client) -> None:
    token = str(uuid4())
    first = send_act(clerk, Merchant, shop.merchant.pk, "issue-key", scopes=SAFE, token=token)
    assert "no-store" in first.headers["Cache-Control"]
    [secret] = set(re.findall(r"tq_test_[0-9A-Za-z]{46}", first.content.decode()))
    again = issue(clerk, shop, scopes=SAFE, token=token)
    assert "This was done already" in again
    assert secret not in again
    assert ApiKey.objects.count() == 2
    assert secret not in str(list(acts_of_staff().values()))


def roller(*permissions: str) -> Client:
    return staff_client("malee", "view_merchant", "view_apikey", "roll_key", *permissions)


def test_staff_roll_a_key(shop: Shop) -> None:
    old = newest()
    page = run_act(roller("issue_withdrawal_key"), ApiKey, old.pk, "roll", overlap_hours="0")
    [secret] = set(re.findall(r"tq_test_[0-9A-Za-z]{46}", page))
    assert shop.get("/v1/payments").status_code == 401
    assert Shop(shop.merchant, secret, shop.http).get("/v1/payments").status_code == 200
    rolled, issued = acts_of_staff()
    assert (rolled.act, rolled.object_id, rolled.reason) == ("key_rolled", old.pk, REASON)
    assert (issued.act, issued.object_id) == ("key_issued", newest().pk)


@pytest.mark.parametrize(
    ("permissions", "hours", "complaint"),
    [
        ([], "1", "You do not have the permission to issue such a key."),
        (["issue_withdrawal_key"], "169", "less than or equal to 168"),
        (["issue_withdrawal_key"], "-1", "greater than or equal to 0"),
        (["issue_withdrawal_key"], "", "This field is required"),
    ],
)
def test_refused_roll_changes_no_key(shop: Shop, permissions: list[str], hours: str, complaint: str) -> None:
    assert complaint in run_act(roller(*permissions), ApiKey, newest().pk, "roll", overlap_hours=hours)
    assert ApiKey.objects.get().expires_at is None
    assert not acts_of_staff().exists()


def test_revoked_key_cannot_be_rolled(shop: Shop) -> None:
    services.revoke_key(key_id=newest().pk, now=clock.now())
    page = run_act(roller("issue_withdrawal_key"), ApiKey, newest().pk, "roll", overlap_hours="1")
    assert "is expired or revoked" in page
    assert ApiKey.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_double_click_issues_one_key(shop: Shop) -> None:
    cookies, token = staff_client("malee", "view_merchant", "issue_key").cookies, str(uuid4())

    def click() -> str:
        client = Client()
        client.cookies = cookies
        return run_act(client, Merchant, shop.merchant.pk, "issue-key", scopes=SAFE, token=token)

    pages = run_concurrently(*[click] * 4)
    assert sum("tq_test_" in page for page in pages) == 1
    assert ApiKey.objects.count() == 2
    assert acts_of_staff().count() == 1
