"""Login to the console: failures are limited before a password is hashed, and a lockout ends."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.conf import settings
from django.contrib.auth.hashers import get_hashers
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from django.test import Client, override_settings
from pytest_django import Settings

from console.models import SignInLimit
from core.console import passwords
from core.console.passwords import HashingBusyError, OneAtATimeHasher
from tests.concurrency import run_concurrently
from tests.security_lines import security_lines
from tests.staff_acts import acts_of_staff

pytestmark = pytest.mark.slow

LOGIN, LIFT = "/admin/login/", "/admin/lift-lockout/"
RIGHT, WRONG = "three-elephants-crossing", "not-the-password"
OF_A_USER, OF_AN_ADDRESS, OF_A_MINUTE = 10, 20, 30
PERIOD = timedelta(minutes=15)
REFUSED = "Too many failed logins"


@pytest.fixture
def somsri(db: None) -> User:
    return User.objects.create_user("somsri", password=RIGHT, is_staff=True)


def log_in(
    password: str, name: str = "somsri", *, browser: Client | None = None, address: str = "203.0.113.7"
) -> Any:
    client = browser or Client(raise_request_exception=False)
    return client.post(LOGIN, {"login": name, "password": password}, REMOTE_ADDR=address)


def is_refused(answer: Any) -> bool:
    """Whether the limits refuse a login before they know the password."""
    assert answer.status_code in (200, 302)
    return answer.status_code == 200 and REFUSED in answer.content.decode()


def fail(times: int, name: str = "somsri", address: str = "203.0.113.7") -> list[bool]:
    return [is_refused(log_in(WRONG, name, address=address)) for _ in range(times)]


def test_login_with_the_correct_password_forgets_the_failures_of_the_user(somsri: User) -> None:
    fail(OF_A_USER - 1)
    assert log_in(RIGHT).status_code == 302
    assert not any(fail(OF_A_USER, address="198.51.100.9"))


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example/", "javascript:alert(1)", ""])
def test_login_leads_to_the_home_of_the_console_unless_next_is_a_page_of_this_site(
    somsri: User, target: str
) -> None:
    sent = {"login": "somsri", "password": RIGHT, "next": target}
    assert Client().post(LOGIN, sent).headers["Location"] == "/admin/"
    assert Client().post(LOGIN, sent | {"next": "/admin/payments/"}).headers["Location"] == "/admin/payments/"
    assert log_in(RIGHT).headers["Location"] == "/admin/"


def test_too_many_failed_logins_lock_the_user_out_at_any_address(somsri: User, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False):
        assert not any(fail(OF_A_USER))
        assert is_refused(log_in(RIGHT, address="198.51.100.9"))


def test_lockout_ends_although_attempts_continue(somsri: User, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as now:
        fail(OF_A_USER)
        now.shift(PERIOD / 2)
        assert all(fail(5))
        now.shift(PERIOD / 2)
        assert log_in(RIGHT).status_code == 302


def test_too_many_failed_logins_lock_the_address_out_for_all_users(somsri: User) -> None:
    for number in range(OF_AN_ADDRESS):
        assert fail(1, f"guess-{number}") == [False]
    assert is_refused(log_in(RIGHT))
    assert log_in(RIGHT, address="198.51.100.9").status_code == 302


def test_addresses_of_one_ipv6_network_count_as_one(somsri: User) -> None:
    for number in range(OF_AN_ADDRESS):
        fail(1, f"guess-{number}", f"2001:db8::{number:x}")
    assert is_refused(log_in(RIGHT, address="2001:db8::ffff:1"))
    assert log_in(RIGHT, address="2001:db8:0:1::1").status_code == 302


def test_requests_of_an_address_are_limited_by_the_minute(somsri: User, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as now:
        answers = [log_in(WRONG, f"guess-{number}") for number in range(OF_A_MINUTE + 1)]
        assert [answer.status_code for answer in answers] == [200] * OF_A_MINUTE + [429]
        assert answers[-1].headers["Retry-After"] == "60"
        call_command("lift_lockout", "203.0.113.7")
        assert log_in(RIGHT).status_code == 302
        for number in range(OF_A_MINUTE):
            log_in(WRONG, f"guess-{number}")
        assert log_in(WRONG).status_code == 429
        now.shift(60)
        assert log_in(WRONG).status_code == 200


def test_unknown_users_are_counted_without_storing_names(
    somsri: User, caplog: pytest.LogCaptureFixture
) -> None:
    assert not any(fail(OF_A_USER, "my-password-by-mistake"))
    assert is_refused(log_in(WRONG, "my-password-by-mistake", address="198.51.100.9"))
    assert "mistake" not in str(list(SignInLimit._default_manager.values())) + caplog.text


def test_login_of_unknown_user_hashes_once(somsri: User, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed = []

    class Counting(OneAtATimeHasher):
        def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
            hashed.append(password)
            return super().encode(password, salt, 1)

    hasher = Counting()
    monkeypatch.setattr("django.contrib.auth.hashers.get_hashers", lambda: [hasher])
    monkeypatch.setattr(
        "django.contrib.auth.hashers.get_hashers_by_algorithm", lambda: {hasher.algorithm: hasher}
    )
    monkeypatch.setattr("django.contrib.auth.hashers.PBKDF2PasswordHasher.iterations", 1)
    somsri.set_password(RIGHT)
    somsri.save()
    for name in ("somsri", "nobody"):
        hashed.clear()
        log_in(WRONG, name)
        assert len(hashed) == 1, name


def test_login_lockout_does_not_affect_a_known_device(somsri: User) -> None:
    browser = Client()
    log_in(RIGHT, browser=browser)
    browser.cookies.pop(settings.SESSION_COOKIE_NAME)
    fail(OF_A_USER, address="198.51.100.9")
    assert is_refused(log_in(RIGHT, address="192.0.2.1"))
    assert log_in(RIGHT, browser=browser).status_code == 302


def test_known_device_stays_known_after_a_rotation_of_the_secret_key(
    somsri: User, settings: Settings
) -> None:
    browser = Client()
    log_in(RIGHT, browser=browser)
    browser.cookies.pop(settings.SESSION_COOKIE_NAME)
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "b" * 50
    fail(OF_A_USER, address="198.51.100.9")
    assert log_in(RIGHT, browser=browser).status_code == 302


def test_failed_logins_on_a_known_device_are_limited(somsri: User) -> None:
    browser = Client()
    log_in(RIGHT, browser=browser)
    browser.cookies.pop(settings.SESSION_COOKIE_NAME)
    refused = [is_refused(log_in(WRONG, browser=browser)) for _ in range(OF_A_USER + 1)]
    assert refused == [False] * OF_A_USER + [True]
    assert log_in(RIGHT, address="192.0.2.1").status_code == 302


@pytest.mark.parametrize("name", ["somsri", "malee"])
def test_forged_or_foreign_device_cookie_is_ignored(somsri: User, name: str) -> None:
    User.objects.create_user("malee", password=RIGHT, is_staff=True)
    browser = Client()
    log_in(RIGHT, "malee", browser=browser)
    browser.cookies.pop(settings.SESSION_COOKIE_NAME)
    if name == "malee":
        name_of_cookie = settings.DEVICE_COOKIE_NAME
        browser.cookies[name_of_cookie] = browser.cookies[name_of_cookie].value[:-1] + "x"
    fail(OF_A_USER, name, "198.51.100.9")
    assert is_refused(log_in(RIGHT, name, browser=browser, address="192.0.2.1"))


def test_login_during_another_hash_is_503(somsri: User) -> None:
    with ThreadPoolExecutor(1) as other, passwords.hashing_slot(), pytest.raises(HashingBusyError):
        other.submit(OneAtATimeHasher().encode, "x", "salt", 1).result()
    with ThreadPoolExecutor(1) as other:
        slot = passwords.hashing_slot()
        other.submit(slot.__enter__).result()
        response = log_in(RIGHT)
        other.submit(slot.__exit__, None, None, None).result()
    assert (response.status_code, response.headers["Retry-After"]) == (503, "2")
    assert log_in(RIGHT).status_code == 302


def test_every_password_is_hashed_by_the_limited_hasher() -> None:
    from config import settings

    with override_settings(PASSWORD_HASHERS=settings.PASSWORD_HASHERS):
        assert [type(hasher) for hasher in get_hashers()] == [OneAtATimeHasher]
    hasher = OneAtATimeHasher()
    assert hasher.verify(RIGHT, hasher.encode(RIGHT, "salt", 10))


@pytest.mark.django_db(transaction=True)
def test_concurrent_failed_logins_do_not_exceed_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    User.objects.create_user("somsri", password=RIGHT, is_staff=True)
    checked: list[str] = []
    check = User.check_password

    def counted(user: User, given: str) -> bool:
        checked.append(user.username)
        return check(user, given)

    monkeypatch.setattr(User, "check_password", counted)
    fail(OF_A_USER - 3)
    del checked[:]
    answers = run_concurrently(*[lambda: log_in(WRONG).status_code] * 8)
    assert set(answers) <= {200, 503}
    assert len(checked) <= 3


def test_right_logins_of_an_office_do_not_lock_it_out(somsri: User, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as now:
        for _ in range(OF_AN_ADDRESS + 2):
            assert log_in(RIGHT).status_code == 302
            now.shift(3)


def test_lifted_lockout_is_lifted_in_known_browsers_too(somsri: User) -> None:
    browser = Client()
    log_in(RIGHT, browser=browser)
    browser.cookies.pop(settings.SESSION_COOKIE_NAME)
    for _ in range(OF_A_USER):
        log_in(WRONG, browser=browser)
    assert is_refused(log_in(RIGHT, browser=browser))
    call_command("lift_lockout", "somsri")
    assert log_in(RIGHT, browser=browser).status_code == 302


def test_browser_that_changes_its_person_works(somsri: User) -> None:
    malee = User.objects.create_user("malee", is_staff=True)
    browser = Client()
    log_in(RIGHT, browser=browser)
    browser.force_login(malee)
    assert browser.get("/admin/").status_code == 200
    assert "malee" in browser.get("/admin/").content.decode()


def test_lockouts_are_in_the_security_log(somsri: User, caplog: pytest.LogCaptureFixture) -> None:
    fail(OF_A_USER + 5)
    [line] = security_lines(caplog, "lockout")
    assert (line["subject"], line["address"]) == ("user:somsri", "203.0.113.7")


def test_staff_with_permission_lift_a_login_lockout(somsri: User) -> None:
    fail(OF_A_USER)
    malee = User.objects.create_user("malee", is_staff=True)
    client = Client()
    client.force_login(malee)
    asked = {"username": "somsri", "reason": "Somsri called me."}
    assert client.post(LIFT, asked).status_code == 403
    malee.user_permissions.add(Permission.objects.get(codename="lift_lockout"))
    assert LIFT in client.get("/admin/").content.decode()
    unknown = client.post(LIFT, asked | {"username": "nobody"}).content.decode()
    assert "Nobody has this user name." in unknown
    assert is_refused(log_in(RIGHT, address="198.51.100.9"))
    done = client.post(LIFT, asked, follow=True).content.decode()
    assert "Somsri can log in again at once." in done
    assert log_in(RIGHT, address="198.51.100.9").status_code == 302
    record = acts_of_staff().get()
    assert (record.act, record.object_id, record.reason) == (
        "lockout_lifted",
        str(somsri.pk),
        "Somsri called me.",
    )


def test_lift_lockout_command_ends_the_lockouts_of_a_user_and_an_address(somsri: User) -> None:
    for number in range(OF_AN_ADDRESS - OF_A_USER):
        fail(1, f"guess-{number}")
    fail(OF_A_USER)
    call_command("lift_lockout", "somsri")
    assert is_refused(log_in(RIGHT))
    call_command("lift_lockout", "203.0.113.7")
    assert log_in(RIGHT).status_code == 302


def test_lift_lockout_command_for_nobody_is_refused(db: None) -> None:
    with pytest.raises(CommandError, match="no user name and no address"):
        call_command("lift_lockout", "somsri")
