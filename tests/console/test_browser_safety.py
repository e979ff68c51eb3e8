"""Protection of staff in their browsers: headers, cookies and password rules."""

import os
import re
import subprocess
import sys

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.test import Client
from pytest_django import Settings

from core.http.middleware import CONSOLE_POLICY
from tests.conftest import SandboxBankClient, Shop
from tests.stack import ROOT

# Inline scripts and event attributes, which the content security policy forbids.
INLINE_SCRIPT = re.compile(
    r"<script(?![^>]*\bsrc=)(?![^>]*type=\"application/json\")|\son[a-z]+=|javascript:", re.I
)


@pytest.mark.slow
def test_pages_of_the_console_need_no_inline_scripts(
    shop: Shop, bank: SandboxBankClient, admin_client: Client
) -> None:
    code = shop.qr_code()
    bank.notify(code, satang=1)
    bank.post(b"garbage")
    payment = f"/admin/payments/payment/{code['payment_id'].replace('_', '_5F')}/change/"
    lists = [
        "/admin/reconciliation/reconciliationexception/",
        "/admin/merchants/merchant/",
        "/admin/auth/user/",
        "/admin/auth/user/add/",
    ]
    for path in [
        "/admin/",
        payment,
        "/admin/password_change/",
        "/admin/reconciliation/slipcheck/check/",
        *lists,
    ]:
        response = admin_client.get(path)
        assert response.status_code == 200, path
        assert response.headers["Content-Security-Policy"] == CONSOLE_POLICY
        assert not INLINE_SCRIPT.search(response.content.decode()), path
    scripts = dict(part.strip().split(" ", 1) for part in CONSOLE_POLICY.split(";"))["script-src"]
    assert scripts == "'self'"


@pytest.mark.parametrize("path", ["/admin/login/", "/healthz", "/docs", "/sandbox/bank", "/v1/balance"])
def test_responses_have_hsts_and_referrer_policy(client: Client, db: None, path: str) -> None:
    headers = client.get(path).headers
    assert headers["Strict-Transport-Security"] == "max-age=31536000"
    assert headers["Referrer-Policy"] == "same-origin"
    assert "Content-Security-Policy" in headers


def test_plain_http_has_no_hsts(client: Client, settings: Settings) -> None:
    settings.SESSION_COOKIE_SECURE = False
    assert "Strict-Transport-Security" not in client.get("/healthz").headers


def test_cookies_have_host_prefix(client: Client, db: None) -> None:
    User.objects.create_superuser("somsri", password="three-elephants-crossing")
    client.post("/admin/login/", {"login": "somsri", "password": "three-elephants-crossing"})
    assert set(client.cookies) == {"__Host-sessionid", "__Host-csrftoken", "__Host-device"}
    for cookie in client.cookies.values():
        assert (cookie["secure"], cookie["path"], cookie["domain"]) == (True, "/", "")
        assert cookie["samesite"] == "Strict"


@pytest.mark.slow
def test_cookies_of_plain_http_have_no_prefix() -> None:
    names = "s.SESSION_COOKIE_NAME, s.CSRF_COOKIE_NAME, s.DEVICE_COOKIE_NAME"
    show = f"from django.conf import settings as s; print({names})"
    environ = os.environ | {"BASE_URL": "http://127.0.0.1:8000"}
    shown = subprocess.check_output([sys.executable, "-c", show], cwd=ROOT, env=environ, text=True)
    assert shown.split() == ["sessionid", "csrftoken", "device"]
    assert settings.SESSION_COOKIE_NAME == "__Host-sessionid"


@pytest.mark.parametrize(
    "password", ["short-11chr", "password1234", "qwertyuiop123", "123456789012345", "somsri.jaidee"]
)
def test_weak_passwords_are_refused(password: str) -> None:
    staff = User(username="somsri", first_name="Somsri", last_name="Jaidee", email="somsri.jaidee@x.th")
    with pytest.raises(ValidationError):
        validate_password(password, staff)


def test_strong_password_is_accepted() -> None:
    validate_password("three-elephants-crossing", User(username="somsri"))
