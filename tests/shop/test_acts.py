"""What people of a merchant do: by the services of the API, with the rights of their role, on record."""

from io import BytesIO
from typing import Any
from zipfile import ZipFile

import pytest
from django.db import connection
from django.test import Client

from approvals.models import Approval, ApprovalStatus
from audit_trail.models import AuditRecord
from console.people import roles
from console.people.roles import ShopRole
from core import clock
from ledger import services as ledger
from merchants.models import ApiKey
from payments.models import Payment, PaymentException
from refunds.models import Refund
from shop.site import site
from tests.conftest import SandboxBankClient, Shop
from tests.settlements.conftest import acquirer
from tests.shop.people import FullShop, labels, list_url, person_of, quoted, row_url
from tests.staff_acts import REASON, act_form
from webhooks.models import Delivery
from withdrawals.models import Withdrawal

__all__ = ["acquirer"]  # a fixture
pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("acquirer")]


@pytest.fixture
def own(shop: Shop, bank: SandboxBankClient) -> FullShop:
    return FullShop(shop, bank)


@pytest.fixture
def rival(other_shop: Shop, bank: SandboxBankClient) -> FullShop:
    return FullShop(other_shop, bank)


def act(client: Client, row: Any, slug: str, **values: Any) -> Any:
    path = f"{list_url(row._meta.label_lower)}{quoted(row.pk)}/do/{slug}/"
    return client.post(path, act_form(**values), follow=True)


def acts(of: str = "object_acts") -> list[tuple[str, str, str]]:
    """The label of each page, and the slug and permission of each of its acts on rows, or on its list."""
    found = {model._meta.label_lower: page for model, page in site._registry.items()}
    return [
        (label, each.slug, each.permission) for label, page in found.items() for each in getattr(page, of, ())
    ]


def test_manager_refunds_and_the_record_names_the_person(own: FullShop) -> None:
    payment = own.rows["payments.payment"]
    page = act(person_of(own.shop, ShopRole.MANAGER), payment, "refund", amount="1.50", kind="other")
    assert page.status_code == 200
    refund = Refund.objects.latest("pk")
    assert (refund.amount, refund.actor) == (150, "person:manager-somtam")
    record = AuditRecord.objects.get(actor="person:manager-somtam", act="refund_created")
    assert (record.merchant_id, record.reason) == (own.shop.merchant.pk, REASON)


@pytest.mark.parametrize(
    ("label", "link", "roles_with_it"),
    [
        ("approvals.payoutaccount", "/do/add-payout-account/", {"owner", "manager"}),
        ("merchants.apikey", "/do/issue-key/", {"owner", "developer"}),
        (
            "withdrawals.withdrawal",
            'href="/shop/approvals/payoutaccount/">Withdraw to a',
            {"owner", "manager"},
        ),
    ],
)
def test_list_links_to_where_its_rows_begin(
    shop: Shop, label: str, link: str, roles_with_it: set[str]
) -> None:
    found = set()
    for role in ShopRole:
        page = person_of(shop, role).get(list_url(label))
        if page.status_code == 200 and link in page.text:
            found.add(role.value)
    assert found == roles_with_it


def test_state_of_an_exception_is_in_the_language_of_the_reader(own: FullShop) -> None:
    exception, owner = own.rows["payments.paymentexception"], person_of(own.shop)
    for page in (list_url("payments.paymentexception"), row_url(exception), row_url(exception.payment)):
        shown = owner.get(page, headers={"Accept-Language": "th"}).text
        assert "รอการตัดสินใจ" in shown.partition("<main")[2]
        assert ">open<" not in shown


@pytest.mark.parametrize("slug", ["accept", "send-back"])
def test_owner_decides_about_money_that_does_not_fit(own: FullShop, slug: str) -> None:
    exception, owner = own.rows["payments.paymentexception"], person_of(own.shop)
    page = owner.get(row_url(exception)).content.decode()
    assert f"/do/{slug}/" in page
    assert owner.get(row_url(exception).replace("/change/", f"/do/{slug}/")).status_code == 200
    assert act(owner, exception, slug).status_code == 200
    assert PaymentException.objects.get(pk=exception.pk).status != "open"


def test_withdrawal_goes_to_a_listed_account_after_its_waiting_period(own: FullShop, settings: Any) -> None:
    account, owner = own.rows["approvals.payoutaccount"], person_of(own.shop)
    before = Withdrawal.objects.count()
    assert "waiting period" in act(owner, account, "withdraw", amount="1").content.decode()
    assert Withdrawal.objects.count() == before
    _make_usable(account)
    settings.APPROVAL_ITEM_LIMIT = 100
    act(owner, account, "withdraw", amount="2")
    made = Withdrawal.objects.latest("pk")
    assert (made.amount, made.account_last4) == (200, "4567")
    approval = Approval.objects.get(subject_id=made.pk)  # which staff of the operator decide about
    assert (approval.status, approval.requested_by) == (ApprovalStatus.WAITING, "person:owner-somtam")
    available = ledger.balance(own.shop.merchant.pk).available
    act(owner, account, "withdraw", amount="999999")
    assert ledger.balance(own.shop.merchant.pk).available == available


def _make_usable(account: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("UPDATE approvals_payoutaccount SET usable_at = added_at")
        cursor.execute("SET LOCAL session_replication_role = origin")


def test_developer_issues_a_key_without_the_scope_to_withdraw(own: FullShop) -> None:
    merchant, developer = own.shop.merchant, person_of(own.shop, ShopRole.DEVELOPER)
    page = act(developer, merchant, "issue-key", scopes=["payments:read"])
    assert "tq_test_" in page.content.decode()
    refused = act(developer, merchant, "issue-key", scopes=["withdrawals:write"])
    assert "tq_test_" not in refused.content.decode()
    assert ApiKey.objects.filter(merchant=merchant).count() == 2
    sent = Delivery.objects.filter(endpoint__merchant=merchant).count()
    act(developer, own.rows["webhooks.delivery"], "resend")
    assert Delivery.objects.filter(endpoint__merchant=merchant).count() == sent + 1


@pytest.mark.parametrize("role", list(ShopRole))
def test_role_sees_its_lists_and_does_its_acts_and_no_others(own: FullShop, role: ShopRole) -> None:
    allowed, client = roles.permissions_of(role), person_of(own.shop, role)
    for label in labels():
        app_label, model = label.split(".")
        expected = 200 if f"{app_label}.view_{model}" in allowed else 403
        assert client.get(list_url(label)).status_code == expected, label
        assert client.get(row_url(own.rows[label])).status_code == expected, label
    for path, permission in (("month/", "shop.view_month"), ("people/", "shop.view_membership")):
        assert client.get(f"/shop/{path}").status_code == (200 if permission in allowed else 403), path
    for label, slug, permission in acts():
        path = f"{list_url(label)}{quoted(own.rows[label].pk)}/do/{slug}/"
        if permission not in allowed:
            assert client.get(path).status_code == 403, (label, slug)
            assert client.post(path, act_form()).status_code == 403, (label, slug)
    for label, slug, permission in acts("list_acts"):
        expected = 200 if permission in allowed else 403
        assert client.get(f"{list_url(label)}do/{slug}/").status_code == expected, (label, slug)
    page = client.get("/shop/").content.decode()
    assert ("Balance" in page) == ("shop.view_balance" in allowed)


def test_every_permission_of_shops_is_checked_by_a_page_or_an_act() -> None:
    declared = {permission for each in roles.SHOP_ACTS for permission in each.permissions}
    lists = {f"{label.split('.')[0]}.view_{label.split('.')[1]}" for label in labels()}
    inner = {
        *("shop.view_today", "shop.view_balance", "shop.view_month", "shop.view_membership"),
        *("shop.invite_person", "audit_trail.view_personal_data", "merchants.issue_withdrawal_key"),
        *("webhooks.view_deliveryattempt", "shop.use_till", "audit_trail.export_lists"),
        "operations.view_evidence",
    }
    assert declared == lists | inner | {
        permission for _label, _slug, permission in acts() + acts("list_acts")
    }


def test_nobody_acts_on_rows_of_a_rival(own: FullShop, rival: FullShop) -> None:
    owner, before = person_of(own.shop), AuditRecord.objects.count()
    for label, slug, _permission in acts():
        path = f"{list_url(label)}{quoted(rival.rows[label].pk)}/do/{slug}/"
        assert owner.get(path).status_code == 404, (label, slug)
        shown = owner.post(path, act_form(amount="1", kind="other"), follow=True)
        assert rival.shop.merchant.name not in shown.content.decode(), (label, slug)
    assert AuditRecord.objects.count() == before
    assert not Payment.objects.filter(merchant=rival.shop.merchant, amount_refunding__gt=100).exists()


def test_lists_change_nothing_by_post(own: FullShop) -> None:
    owner = person_of(own.shop)
    for label in labels():
        chosen = {"action": "delete_selected", "_selected_action": [own.rows[label].pk]}
        assert owner.post(list_url(label), chosen).status_code == 403, label
        assert owner.post(row_url(own.rows[label]), {"name": "x"}).status_code == 403, label
        key = quoted(own.rows[label].pk)
        for page in ("add/", f"{key}/delete/", f"{key}/history/"):
            assert owner.get(f"{list_url(label)}{page}").status_code in (302, 404), (label, page)
    assert owner.get("/shop/merchants/merchant/suggest/?q=L").status_code in (302, 404)


def test_accountant_downloads_the_month_of_this_shop_only(own: FullShop, rival: FullShop) -> None:
    accountant = person_of(own.shop, ShopRole.ACCOUNTANT)
    month = f"{own.rows['payments.payment'].created_at.astimezone(clock.BANGKOK):%Y-%m}"
    assert accountant.get(f"/shop/month/?month={month}").status_code == 200
    answer = accountant.get(f"/shop/month/?month={month}&file=zip&merchant={rival.shop.merchant.pk}")
    assert f'"month-{month}.zip"' in answer.headers["Content-Disposition"]
    with ZipFile(BytesIO(answer.content)) as archive:
        text = "".join(archive.read(name).decode() for name in archive.namelist())
    assert own.rows["payments.payment"].pk in text
    assert rival.rows["payments.payment"].pk not in text
    assert rival.shop.merchant.name not in text
    record = AuditRecord.objects.get(act="exported")
    assert (record.actor, record.object_id) == ("person:accountant-somtam", own.shop.merchant.pk)
    assert accountant.get("/shop/month/?month=1999-01").status_code == 200
    assert accountant.get(f"/shop/month/?month={month}&file=exe").status_code == 404


def test_names_of_customers_are_masked_for_roles_without_the_right(own: FullShop) -> None:
    for role in (ShopRole.OWNER, ShopRole.ACCOUNTANT):
        page = person_of(own.shop, role).get(row_url(own.rows["payments.payment"])).content.decode()
        may_see = "audit_trail.view_personal_data" in roles.permissions_of(role)
        assert ("Somchai Jaidee" in page) == may_see, role
