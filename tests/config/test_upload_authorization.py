"""Only a user who is logged in and has the permission for a page may upload there."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from config import upload_authorization
from config.concurrency import OverloadedError
from console.people import roles
from console.people.roles import ShopRole
from core import clock
from core.http import uploads
from core.http.rate_limits import RateLimit
from merchants import services
from merchants.errors import AuthenticationFailed, RateLimitExceeded
from merchants.merchant_acts import MERCHANT_ACTS
from merchants.models import ApiKey
from reconciliation.slips.admin import CHECK_PERMISSION
from refunds import claims
from shop.models import Membership
from shop.till.urls import USE
from tests.concurrency import without_database
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.claims.builders import Claim, claim_of
from tests.shop.people import person_of

pytestmark = pytest.mark.django_db
TILL, IMPORT, CHECK = sorted(uploads.UPLOAD_PERMISSIONS, reverse=True)
LOGO = f"/admin/merchants/merchant/mch_5F{'x' * 27}/do/page-settings/"


@pytest.fixture(autouse=True)
def kept_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test and its transaction share the connection that a gate of its own would close."""
    monkeypatch.setattr("config.upload_authorization.connections.close_all", lambda: None)


def staff(*permissions: str, **fields: Any) -> User:
    user = User.objects.create_user("staff", password="correct horse", is_staff=True, **fields)
    names = [permission.partition(".")[2] for permission in permissions]
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    return user


def session_of(user: User) -> str:
    client = Client()
    client.force_login(user)
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def environ(session: str, path: str = IMPORT, **changes: str) -> dict[str, Any]:
    cookie = f"{settings.SESSION_COOKIE_NAME}={session}"
    return {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": path,
        "HTTP_COOKIE": cookie,
        "REMOTE_ADDR": "203.0.113.7",
    } | changes


def uploader(session: str, path: str = IMPORT, **changes: str) -> str | None:
    return upload_authorization.find_uploader(environ(session, path, **changes))


@pytest.mark.parametrize("path", [IMPORT, CHECK, LOGO])
def test_user_with_the_permission_may_upload(path: str) -> None:
    user = staff(str(uploads.permission_of(path)))
    assert uploader(session_of(user), path) == str(user.pk)


def test_other_acts_of_a_merchant_take_no_upload() -> None:
    for path in (LOGO.replace("page-settings", "rename"), f"{LOGO}x", LOGO.replace("x", "/")):
        assert uploads.permission_of(path) is None


@pytest.mark.parametrize("role", ShopRole)
def test_person_of_a_shop_may_upload_by_the_role_there(shop: Shop, role: ShopRole) -> None:
    client = person_of(shop, role)
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    assert (uploader(session, TILL) is not None) is (USE in roles.permissions_of(role))
    assert uploader(session, CHECK) is None
    Membership.objects.update(ended_at=clock.now())
    assert uploader(session, TILL) is None


def test_staff_may_not_upload_to_a_shop() -> None:
    assert uploader(session_of(staff(*uploads.UPLOAD_PERMISSIONS.values(), is_superuser=True)), TILL) is None


def test_upload_permissions_equal_the_page_permissions() -> None:
    assert uploads.UPLOAD_PERMISSIONS[TILL] == USE
    assert uploads.UPLOAD_PERMISSIONS[CHECK] == CHECK_PERMISSION
    assert uploads.UPLOAD_PERMISSIONS[IMPORT] == "reconciliation.import_statement"
    assert uploads.permission_of(LOGO) in [act.permission for act in MERCHANT_ACTS]


def test_user_without_the_permission_may_not_upload() -> None:
    session = session_of(staff("reconciliation.check_slip"))
    assert (uploader(session, IMPORT), uploader(session, CHECK) is None) == (None, False)


def test_session_that_does_not_exist_may_not_upload() -> None:
    assert uploader("x" * 32) is None


def test_session_that_has_ended_may_not_upload() -> None:
    user = staff("reconciliation.import_statement")
    session = session_of(user)
    later = clock.now() + timedelta(seconds=settings.SESSION_COOKIE_AGE + 1)
    with time_machine.travel(later):
        assert uploader(session) is None
    assert uploader(session) == str(user.pk)
    user.set_password("battery staple")
    user.save()
    assert uploader(session) is None


def test_upload_check_does_not_renew_session_of_former_secret_key(settings: Settings) -> None:
    user = staff("reconciliation.import_statement")
    session = session_of(user)
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "b" * 50
    for _ in range(2):
        assert uploader(session) == str(user.pk)


def test_upload_during_database_outage_is_503() -> None:
    session = session_of(staff("reconciliation.import_statement"))
    with pytest.raises(OverloadedError):
        without_database(lambda: uploader(session))


@pytest.mark.parametrize("change", [{"is_active": False}, {"is_staff": False}])
def test_inactive_user_may_not_upload(change: dict[str, Any]) -> None:
    user = staff("reconciliation.import_statement")
    session = session_of(user)
    User.objects.filter(pk=user.pk).update(**change)
    assert uploader(session) is None


def test_rate_limited_address_makes_no_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_authorization, "LOOKUP_RATE", RateLimit(per_second=0.01, burst=3))
    session = session_of(staff("reconciliation.import_statement"))
    for _ in range(3):
        assert uploader("x" * 32) is None
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert uploader("x" * 32) is None
        assert uploader(session) is None
    assert len(queries) == 0
    assert uploader(session, REMOTE_ADDR="198.51.100.9") is not None


def claim_environ(path: str, **changes: str) -> dict[str, Any]:
    form = {"CONTENT_TYPE": "multipart/form-data; boundary=x"}
    return {"REQUEST_METHOD": "POST", "PATH_INFO": path, "REMOTE_ADDR": "203.0.113.7"} | form | changes


@pytest.fixture
def claim(shop: Shop, bank: SandboxBankClient) -> Claim:
    return claim_of(shop, bank)


@pytest.mark.slow
def test_form_of_an_open_claim_link_may_have_a_picture(claim: Claim) -> None:
    sent = claim_environ(claim.path)
    assert uploads.kind_of(sent) is uploads.UploadKind.CLAIM
    assert uploads.limit_of(sent) > uploads.MAX_PICTURE
    assert str(upload_authorization.find_claim_link(sent)).startswith("clm_")


@pytest.mark.parametrize("ended", ["unknown", "revoked", "used", "blocked"])
@pytest.mark.slow
def test_claim_link_that_takes_no_account_may_not_have_a_picture(claim: Claim, ended: str) -> None:
    if ended == "revoked":
        claims.revoke(refund_id=claim.refund["refund_id"], now=clock.now())
    elif ended == "used":
        assert claim.send(last_digits="7890").status_code == 303
    elif ended == "blocked":
        for _ in range(5):
            claim.send(last_digits="0000")
    path = claim.path if ended != "unknown" else "/claim/clt_" + 32 * "0"
    assert upload_authorization.find_claim_link(claim_environ(path)) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"REQUEST_METHOD": "GET"},
        {"CONTENT_TYPE": "application/x-www-form-urlencoded"},
        {"CONTENT_TYPE": ""},
        {"PATH_INFO": "/claim/clt_" + 31 * "0"},
        {"PATH_INFO": "/claim/clt_" + 32 * "0" + "/"},
        {"PATH_INFO": "/v1/refunds"},
    ],
)
def test_other_requests_at_claim_pages_have_small_bodies(changes: dict[str, str]) -> None:
    sent = claim_environ("/claim/clt_" + 32 * "0", **changes)
    assert (uploads.kind_of(sent), uploads.limit_of(sent)) == (None, 65_536)


def test_rate_limited_visitor_of_claim_pages_makes_no_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_authorization, "CLAIM_LOOKUP_RATE", RateLimit(per_second=0.01, burst=1))
    sent = claim_environ("/claim/clt_" + 32 * "0", REMOTE_ADDR="203.0.113.77")
    upload_authorization.find_claim_link(sent)
    with CaptureQueriesContext(connection) as queries:
        assert upload_authorization.find_claim_link(sent) is None
    assert len(queries) == 0


def slip_environ(secret: str, path: str = "/v1/slips", **changes: str) -> dict[str, Any]:
    return claim_environ(path, HTTP_AUTHORIZATION=f"Bearer {secret}", **changes)


@pytest.mark.parametrize("path", ["/v1/slips", "/Thai/v1/slips"])
def test_form_of_a_valid_key_may_have_the_picture_of_a_slip(shop: Shop, path: str) -> None:
    sent = slip_environ(shop.secret_key, path)
    assert uploads.kind_of(sent) is uploads.UploadKind.SLIP
    assert uploads.limit_of(sent) == 10_000_000 + 65_536
    assert upload_authorization.find_merchant(sent) == shop.merchant.id
    assert uploads.limit_of(sent | {"CONTENT_TYPE": "application/json"}) == 65_536
    assert uploads.limit_of(sent | {"PATH_INFO": "/v1/slips/"}) == 65_536


def test_keys_of_a_merchant_share_its_place(shop: Shop) -> None:
    _, second = services.issue_key(merchant=shop.merchant, now=clock.now())
    sent = [slip_environ(secret) for secret in (shop.secret_key, second)]
    assert len({upload_authorization.find_merchant(each) for each in sent}) == 1


def test_picture_without_a_usable_key_is_refused_before_it_is_read(shop: Shop) -> None:
    ApiKey.objects.update(revoked_at=clock.now())
    for secret in ("x", shop.secret_key):
        with pytest.raises(AuthenticationFailed):
            upload_authorization.find_merchant(slip_environ(secret))


def test_address_with_too_many_pictures_is_told_and_makes_no_query(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_authorization, "SLIP_LOOKUP_RATE", RateLimit(per_second=0.01, burst=1))
    sent = slip_environ(shop.secret_key, REMOTE_ADDR="203.0.113.78")
    upload_authorization.find_merchant(sent)
    with CaptureQueriesContext(connection) as queries, pytest.raises(RateLimitExceeded):
        upload_authorization.find_merchant(sent)
    assert len(queries) == 0


def test_picture_during_a_database_outage_is_503(shop: Shop) -> None:
    with pytest.raises(OverloadedError):
        without_database(lambda: upload_authorization.find_merchant(slip_environ(shop.secret_key)))
