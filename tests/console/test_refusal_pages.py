"""Refused pages are pages of the console too: in the reader's language, with the menu and a way back."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from console.home import page
from console.people import page_limits

pytestmark = pytest.mark.django_db
THAI: Any = {"HTTP_ACCEPT_LANGUAGE": "th"}


def text_of(answer: Any) -> str:
    """The text of the sentence of a refusal. It also checks that the page leads back."""
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    page = answer.content.decode()
    assert 'class="button" href="/admin/"' in page
    found = re.search(r'<p class="lead wait">(.*?)</p>', page, re.DOTALL)
    assert found
    return found[1].strip()


def test_missing_page_is_said_in_the_language_of_the_reader(admin_client: Client) -> None:
    answer = admin_client.get("/admin/no-such-page/")
    assert answer.status_code == 404
    assert text_of(answer) == str(page_limits.NOT_FOUND)
    assert 'id="menu"' in answer.content.decode()
    thai = text_of(admin_client.get("/admin/no-such-page/", **THAI))
    assert thai != str(page_limits.NOT_FOUND)
    assert not thai.isascii()


def test_page_without_permission_says_whom_to_ask() -> None:
    client = Client()
    client.force_login(User.objects.create_user("malee", is_staff=True))
    answer = client.get("/admin/payments/payment/")
    assert answer.status_code == 403
    assert text_of(answer) == str(page_limits.NOT_ALLOWED)


def test_form_from_before_a_login_says_so(admin_user: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(admin_user)
    answer = client.post("/admin/account/end-sessions/")
    assert answer.status_code == 403
    assert text_of(answer) == str(page_limits.FORM_TOO_OLD)


def test_internal_error_shows_the_id_of_the_request(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(page, "context", fail)
    admin_client.raise_request_exception = False
    answer = admin_client.get("/admin/")
    assert answer.status_code == 500
    assert answer.headers["X-Request-Id"] in text_of(answer)
    assert "ZeroDivision" not in answer.content.decode()
