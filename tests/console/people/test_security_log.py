"""The security log records logins, role changes, keys and views of personal data in the console."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from approvals.models import Approval
from core import request_context
from core.thai.slips import Slip, slip_payload
from merchants import secret_keys
from merchants.models import ApiKey, Merchant
from payments.models import Payment
from reconciliation.models import BankNotification, BankTransaction, ReconciliationException, SlipCheck
from tests.conftest import SandboxBankClient, Shop
from tests.security_lines import security_lines
from tests.staff_acts import run_act
from tests.webhooks.builders import make_endpoint
from tests.withdrawals.builders import withdrawn
from webhooks.models import Event

PASSWORD = "rambutan-durian-42"
HOLDS_NAMES = {"payer_name", "client_name", "account_name"}
"""Columns with names of customers."""
Lines = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture, db: None) -> Iterator[Lines]:
    request_context.begin()
    yield lambda event: security_lines(caplog, event)


@pytest.fixture
def committed(django_capture_on_commit_callbacks: Any) -> Any:
    return lambda: django_capture_on_commit_callbacks(execute=True)


def sign_in(client: Client, name: str, password: str) -> Any:
    return client.post("/admin/login/", {"login": name, "password": password}, REMOTE_ADDR="203.0.113.7")


def test_login_and_logout_are_recorded(lines: Lines) -> None:
    User.objects.create_superuser("somsri", password=PASSWORD)
    client = Client()
    assert sign_in(client, "somsri", PASSWORD).status_code == 302
    client.post("/admin/logout/")
    [login], [logout] = lines("login"), lines("logout")
    assert (login["actor"], login["subject"]) == ("staff:somsri", "staff:somsri")
    assert login["address"] == "203.0.113.7"
    assert login["request_id"] != logout["request_id"]
    assert logout["actor"] == "staff:somsri"


@pytest.mark.parametrize(
    ("name", "subject"), [("somsri", "staff:somsri"), (PASSWORD, "staff:?"), ("x" * 150, "staff:?")]
)
def test_failed_login_is_recorded_with_the_user_name_of_existing_users_only(
    lines: Lines, name: str, subject: str
) -> None:
    User.objects.create_superuser("somsri", password=PASSWORD)
    sign_in(Client(), name, "guess")
    [line] = lines("login_failed")
    assert (line["subject"], line["actor"], line["address"]) == (subject, None, "203.0.113.7")


def test_password_change_is_in_the_security_log(lines: Lines, admin_client: Client) -> None:
    clerk = User.objects.create_user("somsri", is_staff=True)
    form = {"password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}
    admin_client.post(f"/admin/auth/user/{clerk.pk}/password/", form)
    assert lines("password_changed")[-1]["subject"] == "staff:somsri"
    assert lines("password_changed")[-1]["actor"] == "staff:admin"


def user_form(user: User, **changes: Any) -> dict[str, Any]:
    joined = user.date_joined
    return {
        "is_active": "on",
        "is_staff": "on",
        "date_joined_0": f"{joined:%Y-%m-%d}",
        "date_joined_1": f"{joined:%H:%M:%S}",
    } | changes


@pytest.mark.slow
def test_role_change_is_in_the_security_log(lines: Lines, admin_client: Client, committed: Any) -> None:
    clerk = User.objects.create_user("somsri", is_staff=True)
    may_decide = Permission.objects.get(codename="cancel_withdrawal")
    cashiers = Group.objects.create(name="Cashiers")
    page = f"/admin/auth/user/{clerk.pk}/change/"
    form = user_form(clerk, is_superuser="on", groups=[cashiers.pk], user_permissions=[may_decide.pk])
    with committed():
        assert admin_client.post(page, form).status_code == 302
    with committed():
        admin_client.post(page, user_form(clerk))
    given, taken = lines("role_changed")
    assert (given["actor"], given["subject"]) == ("staff:admin", "staff:somsri")
    assert given["changes"] == [
        "+is_superuser",
        "+group Cashiers",
        "+permission withdrawals.cancel_withdrawal",
    ]
    assert taken["changes"] == [
        "-is_superuser",
        "-group Cashiers",
        "-permission withdrawals.cancel_withdrawal",
    ]


def test_form_without_role_change_is_not_in_the_security_log(
    lines: Lines, admin_client: Client, committed: Any
) -> None:
    clerk = User.objects.create_user("somsri", is_staff=True)
    with committed():
        admin_client.post(f"/admin/auth/user/{clerk.pk}/change/", user_form(clerk, email="s@shop.example"))
    clerk.refresh_from_db()
    assert clerk.email == "s@shop.example"
    assert lines("role_changed") == []


@pytest.mark.slow
def test_new_users_and_groups_are_recorded(lines: Lines, admin_client: Client, committed: Any) -> None:
    new = {"username": "somsri", "password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}
    view = Permission.objects.get(codename="view_payment")
    with committed():
        admin_client.post("/admin/auth/user/add/", new)
        admin_client.post("/admin/auth/group/add/", {"name": "Readers", "permissions": [view.pk]})
        readers = Group.objects.get(name="Readers")
        admin_client.post(f"/admin/auth/group/{readers.pk}/delete/", {"post": "yes"})
    user, group, deleted = lines("role_changed")
    assert (user["subject"], user["changes"]) == ("person:somsri", ["+user"])  # no staff yet
    assert group["subject"] == "group:Readers"
    assert group["changes"] == ["+group", "+permission payments.view_payment"]
    assert deleted["changes"] == ["-group"]


@pytest.mark.slow
def test_keys_issued_and_revoked_in_the_console_are_recorded(
    shop: Shop, lines: Lines, admin_client: Client, committed: Any
) -> None:
    old = ApiKey.objects.get()
    with committed():
        run_act(admin_client, Merchant, shop.merchant.pk, "issue-key", scopes=["payments:read"])
        run_act(admin_client, ApiKey, old.pk, "revoke")
    new = ApiKey.objects.exclude(pk=old.pk).get()
    [issued], [revoked] = lines("key_issued"), lines("key_revoked")
    assert (issued["subject"], revoked["subject"]) == (f"key:{new.public_id}", f"key:{old.public_id}")
    assert issued["changes"] == ["payments:read"]
    assert issued["merchant"] == revoked["merchant"] == shop.merchant.id
    assert issued["actor"] == revoked["actor"] == "staff:admin"


def test_key_commands_are_recorded(
    shop: Shop, lines: Lines, committed: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    request_context.begin(actor="command:roll_key")
    public_id = secret_keys.public_id(shop.secret_key)
    with committed():
        call_command("roll_key", public_id)
    [rolled], [issued] = lines("key_rolled"), lines("key_issued")
    assert (rolled["subject"], rolled["actor"]) == (f"key:{public_id}", "command:roll_key")
    assert issued["subject"] != rolled["subject"]
    secret = capsys.readouterr().out
    assert "tq_test_" in secret
    assert "tq_test_" not in str([rolled, issued])


def test_webhook_secret_revealed_or_rotated_is_recorded(shop: Shop, lines: Lines, committed: Any) -> None:
    endpoint = make_endpoint(shop)
    secret = shop.get(f"/v1/webhooks/{endpoint.id}/secret").json()["secret"]
    with committed():
        assert shop.post(f"/v1/webhooks/{endpoint.id}/secret/rotate").status_code == 200
    [revealed], [rotated] = lines("secret_revealed"), lines("secret_rotated")
    for line in (revealed, rotated):
        assert (line["subject"], line["merchant"]) == (endpoint.id, shop.merchant.id)
        assert line["actor"] == f"key:{secret_keys.public_id(shop.secret_key)}"
    assert secret not in str([revealed, rotated])


def test_secret_of_another_merchant_is_not_revealed(shop: Shop, other_shop: Shop, lines: Lines) -> None:
    assert other_shop.get(f"/v1/webhooks/{make_endpoint(shop).id}/secret").status_code == 404
    assert lines("secret_revealed") == []


def test_views_of_models_with_customer_names_are_recorded() -> None:
    sandbox_is_invented = {"sandbox"}
    models = [
        model
        for model in apps.get_models()
        if HOLDS_NAMES & {field.name for field in model._meta.get_fields()}
        and model._meta.app_label not in sandbox_is_invented
    ]
    assert len(models) >= 4
    pages: Any = admin.site._registry
    for model in [*models, Event, BankNotification]:
        assert pages[model].shows_personal_data, model
        assert not HOLDS_NAMES & set(pages[model].list_display), model


@pytest.mark.slow
def test_list_of_approvals_shows_no_customer_names(
    shop: Shop, bank: SandboxBankClient, admin_client: Client, settings: Settings
) -> None:
    settings.APPROVAL_ITEM_LIMIT = 100
    bank.notify(shop.qr_code())
    made = withdrawn(shop, amount=101, account_name="Malee Srisuk")
    approval = Approval.objects.get(subject_id=made["withdrawal_id"])
    url = reverse("admin:approvals_approval_changelist")
    text = admin_client.get(url).content.decode()
    assert (approval.account_last4 in text, "Malee Srisuk" in text) == (True, False)
    page = admin_client.get(reverse("admin:approvals_approval_change", args=[quote(approval.pk)]))
    assert "Malee Srisuk" in page.content.decode()


@pytest.mark.slow
def test_opened_page_with_personal_data_is_recorded(
    shop: Shop, bank: SandboxBankClient, lines: Lines, admin_client: Client
) -> None:
    code = shop.qr_code()
    bank.notify(code)
    bank_transaction = BankTransaction.objects.get()
    for row in (Payment.objects.get(), bank_transaction):
        meta = row._meta
        admin_client.get(reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[quote(row.pk)]))
    viewed = lines("personal_data_viewed")
    assert [line["subject"] for line in viewed] == [
        f"payment:{code['payment_id']}",
        f"banktransaction:{bank_transaction.pk}",
    ]
    assert {line["actor"] for line in viewed} == {"staff:admin"}


@pytest.mark.slow
def test_exception_and_slip_pages_are_recorded(
    shop: Shop, bank: SandboxBankClient, lines: Lines, admin_client: Client
) -> None:
    bank.notify(shop.qr_code(), reference1="NOBODYKNOWSTHIS00000")
    waiting = ReconciliationException.objects.get()
    admin_client.get(f"/admin/reconciliation/reconciliationexception/{quote(waiting.pk)}/change/")
    assert lines("personal_data_viewed")[-1]["subject"] == f"reconciliationexception:{waiting.pk}"
    slip = {"text": slip_payload(Slip("014", "0123456789ABCDEF0123"))}
    assert admin_client.post("/admin/reconciliation/slipcheck/check/", slip).status_code == 200
    assert lines("personal_data_viewed")[-1]["subject"] == f"slipcheck:{SlipCheck.objects.get().pk}"


def test_unknown_or_forbidden_page_is_not_recorded_as_viewed(shop: Shop, lines: Lines) -> None:
    code = shop.qr_code()
    stranger = Client()
    clerk = User.objects.create_user("somsri", is_staff=True)
    stranger.force_login(clerk)
    page = f"/admin/payments/payment/{quote(code['payment_id'])}/change/"
    assert stranger.get(page).status_code == 403
    assert lines("personal_data_viewed") == []
    [refused] = lines("request_refused")
    assert (refused["actor"], refused["status"]) == ("staff:somsri", 403)
