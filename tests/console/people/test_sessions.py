"""Sessions end when nobody uses them. Staff see their own, and end them."""

import re
from datetime import timedelta
from typing import Any

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.auth.models import Permission, User
from django.contrib.sessions.models import Session
from django.test import Client
from pytest_django import Settings

from console.people.account_pages import browser_name
from core import clock as our_clock
from tests.console.people.test_second_factor import admin_of_staff, reset
from tests.security_lines import security_lines
from tests.staff_acts import acts_of_staff

HOME, ACCOUNT, END = "/admin/", "/admin/account/", "/admin/account/end-sessions/"
PASSWORD = "three-elephants-crossing"
FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0"
CHROME = (
    "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0 Mobile Safari/537.36"
)
pytestmark = [pytest.mark.slow, pytest.mark.django_db]


@pytest.fixture
def somsri() -> User:
    return User.objects.create_user("somsri", password=PASSWORD, is_staff=True)


@pytest.fixture
def idle_minutes(settings: Settings) -> int:
    settings.SESSION_IDLE_MINUTES = 30
    return 30


def session_of(user: User, browser: str = FIREFOX, address: str = "203.0.113.7") -> Client:
    """Logged in by the page, as a person does."""
    client = Client(headers={"User-Agent": browser}, REMOTE_ADDR=address)
    client.post("/admin/login/", {"login": user.username, "password": PASSWORD})
    assert is_alive(client)
    return client


def is_alive(client: Client) -> bool:
    return client.get(HOME).status_code == 200


def shown_ids(page: str) -> list[str]:
    return re.findall(r'name="session" value="(\d+)"', page)


def test_session_without_requests_ends(somsri: User, clock: Any, idle_minutes: int) -> None:
    client = session_of(somsri)
    clock.shift(timedelta(minutes=idle_minutes, seconds=-1))
    assert is_alive(client)
    clock.shift(timedelta(minutes=idle_minutes))
    assert not is_alive(client)


def test_session_with_requests_ends_only_after_eight_hours(
    somsri: User, clock: Any, idle_minutes: int
) -> None:
    client = session_of(somsri)
    for _ in range(8 * 60 // 20 - 1):
        clock.shift(timedelta(minutes=20))
        assert is_alive(client)
    clock.shift(timedelta(minutes=20))
    assert not is_alive(client)


def test_requests_of_one_minute_write_once(somsri: User, clock: Any) -> None:
    client = session_of(somsri)
    first = UserSession.objects.get().last_seen_at
    clock.shift(timedelta(seconds=59))
    assert is_alive(client)
    assert UserSession.objects.get().last_seen_at == first
    clock.shift(timedelta(seconds=1))
    assert is_alive(client)
    assert UserSession.objects.get().last_seen_at == our_clock.now()


def test_login_removes_sessions_that_have_ended(somsri: User, clock: Any) -> None:
    session_of(somsri)
    clock.shift(timedelta(hours=8, seconds=1))
    session_of(somsri)
    assert (Session.objects.count(), UserSession.objects.count()) == (1, 1)


def test_session_that_nobody_used_is_not_listed(somsri: User, clock: Any, idle_minutes: int) -> None:
    session_of(somsri)
    clock.shift(timedelta(minutes=idle_minutes))
    assert shown_ids(session_of(somsri).get(ACCOUNT).content.decode()) == []


def test_account_lists_the_own_sessions(somsri: User, clock: Any) -> None:
    client = session_of(somsri)
    session_of(somsri, CHROME, "198.51.100.9")
    session_of(User.objects.create_user("malee", password=PASSWORD, is_staff=True), address="192.0.2.1")
    page = client.get(ACCOUNT).content.decode()
    for text in ("Firefox, Windows", "Chrome, Android", "203.0.113.7", "198.51.100.9", "this session"):
        assert text in page
    assert "192.0.2.1" not in page
    assert len(shown_ids(page)) == 1
    keys = list(UserSession.objects.values_list("session_key", flat=True))
    assert not [key for key in keys if key in page]


def test_one_other_session_is_ended(somsri: User) -> None:
    client, other = session_of(somsri), session_of(somsri, CHROME)
    [shown] = shown_ids(client.get(ACCOUNT).content.decode())
    client.post(END, {"session": shown})
    assert (is_alive(client), is_alive(other)) == (True, False)
    record = acts_of_staff().get()
    assert (record.act, record.after) == ("sessions_ended", {"sessions": 1})


def test_all_other_sessions_are_ended(somsri: User, caplog: pytest.LogCaptureFixture) -> None:
    client, others = session_of(somsri), [session_of(somsri) for _ in range(2)]
    assert "2 sessions ended" in client.post(END, follow=True).content.decode()
    assert [is_alive(each) for each in (client, *others)] == [True, False, False]
    [line] = security_lines(caplog, "sessions_ended")
    assert line["subject"] == "staff:somsri"


@pytest.mark.parametrize("shown", ["", "x", "\0", "0", "9" * 30, "9" * 5000, "๑"])
def test_unknown_session_ends_nothing(somsri: User, shown: str) -> None:
    client, other = session_of(somsri), session_of(somsri)
    assert client.post(END, {"session": shown}).status_code == 302
    assert is_alive(other)


def test_nobody_ends_the_session_of_somebody_else_by_its_id(somsri: User) -> None:
    malee = User.objects.create_user("malee", password=PASSWORD, is_staff=True)
    theirs = session_of(malee)
    session_of(malee, CHROME)
    [shown] = shown_ids(theirs.get(ACCOUNT).content.decode())
    session_of(somsri).post(END, {"session": shown})
    assert UserSession.objects.filter(user=malee).count() == 2


def test_current_session_is_not_ended_by_its_id(somsri: User) -> None:
    client = session_of(somsri)
    client.post(END, {"session": str(UserSession.objects.get().pk)})
    assert is_alive(client)


def test_new_password_ends_the_other_sessions(somsri: User) -> None:
    client, other = session_of(somsri), session_of(somsri)
    form = {
        "old_password": PASSWORD,
        "new_password1": "four-geckos-asleep",
        "new_password2": "four-geckos-asleep",
    }
    assert client.post("/admin/password_change/", form).status_code == 302
    assert (is_alive(client), is_alive(other)) == (True, False)
    assert UserSession.objects.filter(user=somsri).count() == 1


def test_new_password_by_an_admin_ends_all_sessions(somsri: User) -> None:
    client = session_of(somsri)
    form = {"password1": "four-geckos-asleep", "password2": "four-geckos-asleep", "usable_password": "true"}
    answer = admin_of_staff("prasit").post(f"/admin/auth/user/{somsri.pk}/password/", form)
    assert answer.status_code == 302
    assert not is_alive(client)
    assert not UserSession.objects.filter(user=somsri).exists()


def test_admin_ends_the_sessions_of_a_colleague(somsri: User) -> None:
    client = session_of(somsri)
    assert reset(admin_of_staff("prasit"), somsri, "end-sessions").status_code == 302
    assert not is_alive(client)
    assert acts_of_staff().get().act == "sessions_ended"


def test_admin_without_the_permission_ends_no_session(somsri: User) -> None:
    Client().force_login(somsri)
    client = admin_of_staff("prasit")
    User.objects.get(username="prasit").user_permissions.remove(
        Permission.objects.get(codename="end_sessions")
    )
    assert reset(client, somsri, "end-sessions").status_code == 403
    assert UserSession.objects.filter(user=somsri).exists()


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (FIREFOX, "Firefox, Windows"),
        (CHROME, "Chrome, Android"),
        (CHROME + " Edg/156.0", "Edge, Android"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 19_0) Version/19.0 Mobile Safari/604.1", "Safari, iPhone"),
        (CHROME.replace("Chrome", "HeadlessChrome"), "Chrome, Android"),
        ("curl/8.0", ""),
        ("", ""),
    ],
)
def test_browsers_are_named(user_agent: str, name: str) -> None:
    assert browser_name(user_agent) == name
