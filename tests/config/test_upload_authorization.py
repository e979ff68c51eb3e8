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
from core import clock, uploads
from core.rate_limits import RateLimit
from reconciliation.slips.admin import CHECK_PERMISSION
from tests.concurrency import without_database

pytestmark = pytest.mark.django_db
IMPORT, CHECK = sorted(uploads.UPLOAD_PERMISSIONS, reverse=True)


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


@pytest.mark.parametrize("path", [IMPORT, CHECK])
def test_user_with_the_permission_may_upload(path: str) -> None:
    user = staff(uploads.UPLOAD_PERMISSIONS[path])
    assert uploader(session_of(user), path) == str(user.pk)


def test_upload_permissions_equal_the_page_permissions() -> None:
    assert uploads.UPLOAD_PERMISSIONS[CHECK] == CHECK_PERMISSION
    assert uploads.UPLOAD_PERMISSIONS[IMPORT] == "reconciliation.import_statement"


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
