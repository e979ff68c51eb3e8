"""The console registers every model, shows money read-only, and shows no secrets."""

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from audit_trail.pages import ReadOnlyAdmin
from core.http.scopes import Scope
from merchants import secret_keys
from merchants.models import ApiKey, Merchant
from payments.models import Payment
from reconciliation.models import BankNotification
from tests.conftest import SandboxBankClient, Shop
from tests.staff_acts import acts_of_staff, run_act, send_act
from tests.withdrawals.builders import withdrawn

OURS = {
    "approvals", "audit_trail", "console", "counts", "idempotency", "ledger", "merchants", "operations",
    "payments", "qrcodes", "reconciliation", "refunds", "sandbox", "transactions", "transfers", "webhooks",
    "withdrawals",
}  # fmt: skip
# Staff cannot view a model without permissions.
MODELS = [
    model for model in apps.get_models() if model._meta.app_label in OURS and model._meta.default_permissions
]


def page(model: Any, name: str, *arguments: str) -> str:
    meta = model._meta
    quoted = [quote(each) for each in arguments]
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_{name}", args=quoted)


def test_every_model_is_registered_and_read_only() -> None:
    for model in MODELS:
        assert isinstance(admin.site._registry.get(model), ReadOnlyAdmin), model


@pytest.mark.slow
def test_every_admin_list_and_page_opens(shop: Shop, bank: SandboxBankClient, admin_client: Client) -> None:
    code = shop.qr_code(client_bank_account="1234567890")
    shop.post("/Thai/v1/qr-codes", {"amount": 100, "currency": "THB"}, key="k")
    bank.notify(code)
    bank.post(b"garbage")
    withdrawn(shop, bank_account="1234567890")
    shop.post("/v1/refunds", {"payment_id": code["payment_id"], "amount": 1})
    for model in MODELS:
        listed = admin_client.get(page(model, "changelist"))
        assert listed.status_code == 200, model
        for row in model._default_manager.all()[:3]:
            shown = admin_client.get(page(model, "change", row.pk))
            assert shown.status_code == 200, model
            text = shown.content.decode()
            assert "1234567890" not in text, model
            assert shop.secret_key[16:] not in text, model
            assert 'name="_save"' not in text, model


@pytest.mark.slow
def test_staff_issue_and_revoke_keys_with_log_entries(shop: Shop, admin_client: Client) -> None:
    response = send_act(admin_client, Merchant, shop.merchant.pk, "issue-key", scopes=Scope.values)
    shown = set(re.findall(r"tq_test_[0-9A-Za-z]{46}", response.content.decode()))
    assert [Shop(shop.merchant, key, shop.http).get("/v1/payments").status_code for key in shown] == [200]
    assert "no-store" in response.headers["Cache-Control"]
    key = ApiKey.objects.get(public_id=secret_keys.public_id(shop.secret_key))
    run_act(admin_client, ApiKey, key.pk, "revoke")
    assert shop.get("/v1/payments").status_code == 401
    assert acts_of_staff().count() == 2


@pytest.mark.parametrize("path", ["/admin/", "/admin/login/", "/sandbox/bank", "/docs"])
def test_session_cookie_with_null_character_is_ignored(db: None, path: str) -> None:
    client = Client(raise_request_exception=False)
    response = client.get(path, headers={"Cookie": f'{settings.SESSION_COOKIE_NAME}="aaaaaaaaaa\\000bbbb"'})
    assert response.status_code in (200, 302)


def test_admin_without_slash_redirects(client: Client) -> None:
    assert client.get("/admin").headers["Location"] == "/admin/"


def test_console_redirects_to_login(client: Client, db: None) -> None:
    assert client.get("/admin/").status_code == 302


@pytest.mark.slow
def test_overdue_payment_is_shown_as_expired(shop: Shop, admin_client: Client, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        code = shop.qr_code(expiry_minutes=1)
        clock.move_to(noon + timedelta(minutes=2))
        payments = page(Payment, "changelist")
        assert code["payment_id"] in admin_client.get(f"{payments}?status=expired").content.decode()
        assert code["payment_id"] not in admin_client.get(f"{payments}?status=pending").content.decode()
        detail = admin_client.get(page(Payment, "change", code["payment_id"])).content.decode()
    assert "Expired" in detail
    assert "Pending<" not in detail


@pytest.mark.slow
def test_unreadable_notification_is_shown_with_masked_account(
    bank: SandboxBankClient, admin_client: Client
) -> None:
    bank.post(b'{"account": "1234567890", "hello": "world"}')
    notification = BankNotification.objects.get()
    text = admin_client.get(page(BankNotification, "change", notification.pk)).content.decode()
    assert "world" in text
    assert "1234567890" not in text
