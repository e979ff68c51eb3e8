"""Login to the console: failures are limited before a password is hashed, and a lockout ends."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest
import time_machine
from django.conf import settings
from django.contrib.auth.hashers import get_hashers
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client, override_settings
from pytest_django import Settings

from console import lockouts
from console.lockouts import LOCKOUT_PERIOD, LockedOutError, LoginSubject
from console.login import FAILURES_PER_ADDRESS, FAILURES_PER_USER
from console.models import LoginThrottle
from core import clock, passwords
from core.passwords import HashingBusyError, OneAtATimeHasher
from tests.concurrency import run_concurrently
from tests.security_lines import security_lines
from tests.staff_acts import REASON, acts_of_staff, run_act

pytestmark = pytest.mark.slow

LOGIN = "/admin/login/"
RIGHT, WRONG = "three-elephants-crossing", "not-the-password"


@pytest.fixture
def somsri(db: None) -> User:
    return User.objects.create_user("somsri", password=RIGHT, is_staff=True)


def log_in(
    password: str, name: str = "somsri", *, browser: Client | None = None, address: str = "203.0.113.7"
) -> Any:
    client = browser or Client(raise_request_exception=False)
    return client.post(LOGIN, {"username": name, "password": password}, REMOTE_ADDR=address)


def fail(times: int, name: str = "somsri", address: str = "203.0.113.7") -> list[int]:
    return [log_in(WRONG, name, address=address).status_code for _ in range(times)]


def test_login_with_the_correct_password_succeeds(somsri: User) -> None:
    fail(FAILURES_PER_USER - 1)
    assert log_in(RIGHT).status_code == 302
    assert not LoginThrottle.objects.filter(subject="user:somsri").exists()


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example/", "javascript:alert(1)", ""])
def test_login_leads_to_the_home_of_the_console_unless_next_is_a_page_of_this_site(
    somsri: User, target: str
) -> None:
    sent = {"username": "somsri", "password": RIGHT, "next": target}
    assert Client().post(LOGIN, sent).headers["Location"] == "/admin/"
    assert Client().post(LOGIN, sent | {"next": "/admin/payments/"}).headers["Location"] == "/admin/payments/"
    without_next = {"username": "somsri", "password": RIGHT}
    assert Client().post(LOGIN, without_next).headers["Location"] == "/admin/"


def test_too_many_failed_logins_lock_the_user_out_at_any_address(somsri: User, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False):
        assert fail(FAILURES_PER_USER) == [200] * FAILURES_PER_USER
        response = log_in(RIGHT, address="198.51.100.9")
    assert response.status_code == 429
    assert int(response.headers["Retry-After"]) == LOCKOUT_PERIOD.total_seconds()
    assert "Try again in 15 minutes" in response.content.decode()


def test_lockout_ends_although_attempts_continue(somsri: User, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as now:
        fail(FAILURES_PER_USER)
        now.shift(LOCKOUT_PERIOD / 2)
        assert set(fail(5)) == {429}
        now.shift(LOCKOUT_PERIOD / 2)
        assert log_in(RIGHT).status_code == 302


def test_too_many_failed_logins_lock_the_address_out_for_all_users(somsri: User) -> None:
    for number in range(FAILURES_PER_ADDRESS):
        assert fail(1, f"guess-{number}") == [200]
    assert log_in(RIGHT).status_code == 429
    assert log_in(RIGHT, address="198.51.100.9").status_code == 302


def test_addresses_of_one_ipv6_network_count_as_one(somsri: User) -> None:
    for number in range(FAILURES_PER_ADDRESS):
        fail(1, f"guess-{number}", f"2001:db8::{number:x}")
    assert log_in(RIGHT, address="2001:db8::ffff:1").status_code == 429
    assert log_in(RIGHT, address="2001:db8:0:1::1").status_code == 302


def test_successful_login_does_not_reset_other_failures_of_the_address(somsri: User) -> None:
    fail(3, "guess")
    log_in(RIGHT)
    assert LoginThrottle.objects.get(subject="address:203.0.113.7/32").failure_count == 3


def test_unknown_users_are_counted_without_storing_names(somsri: User) -> None:
    assert fail(FAILURES_PER_USER, "my-password-by-mistake") == [200] * FAILURES_PER_USER
    assert log_in(WRONG, "my-password-by-mistake", address="198.51.100.9").status_code == 429
    assert not LoginThrottle.objects.filter(subject__contains="mistake").exists()


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
    fail(FAILURES_PER_USER, address="198.51.100.9")
    assert log_in(RIGHT, address="192.0.2.1").status_code == 429
    assert log_in(RIGHT, browser=browser).status_code == 302


def test_known_device_stays_known_after_a_rotation_of_the_secret_key(
    somsri: User, settings: Settings
) -> None:
    browser = Client()
    log_in(RIGHT, browser=browser)
    browser.cookies.pop(settings.SESSION_COOKIE_NAME)
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "b" * 50
    fail(FAILURES_PER_USER, address="198.51.100.9")
    assert log_in(RIGHT, browser=browser).status_code == 302


def test_failed_logins_on_a_known_device_are_limited(somsri: User) -> None:
    browser = Client()
    log_in(RIGHT, browser=browser)
    statuses = [log_in(WRONG, browser=browser).status_code for _ in range(FAILURES_PER_USER + 1)]
    assert statuses == [200] * FAILURES_PER_USER + [429]
    assert log_in(RIGHT, address="192.0.2.1").status_code == 302


@pytest.mark.parametrize("name", ["somsri", "malee"])
def test_forged_or_foreign_device_cookie_is_ignored(somsri: User, name: str) -> None:
    User.objects.create_user("malee", password=RIGHT, is_staff=True)
    browser = Client()
    log_in(RIGHT, "malee", browser=browser)
    if name == "malee":
        name_of_cookie = settings.DEVICE_COOKIE_NAME
        browser.cookies[name_of_cookie] = browser.cookies[name_of_cookie].value[:-1] + "x"
    fail(FAILURES_PER_USER, name, "198.51.100.9")
    assert log_in(RIGHT, name, browser=browser, address="192.0.2.1").status_code == 429


def test_login_during_another_hash_is_503_and_not_counted(somsri: User) -> None:
    with ThreadPoolExecutor(1) as other, passwords.hashing_slot(), pytest.raises(HashingBusyError):
        other.submit(OneAtATimeHasher().encode, "x", "salt", 1).result()
    with ThreadPoolExecutor(1) as other:
        slot = passwords.hashing_slot()
        other.submit(slot.__enter__).result()
        response = log_in(RIGHT)
        other.submit(slot.__exit__, None, None, None).result()
    assert (response.status_code, response.headers["Retry-After"]) == (503, "2")
    assert not LoginThrottle.objects.exists()
    assert log_in(RIGHT).status_code == 302


def test_every_password_is_hashed_by_the_limited_hasher() -> None:
    from config import settings

    with override_settings(PASSWORD_HASHERS=settings.PASSWORD_HASHERS):
        assert [type(hasher) for hasher in get_hashers()] == [OneAtATimeHasher]
    hasher = OneAtATimeHasher()
    assert hasher.verify(RIGHT, hasher.encode(RIGHT, "salt", 10))


@pytest.mark.django_db(transaction=True)
def test_concurrent_failed_logins_do_not_exceed_the_limit() -> None:
    subject, now = LoginSubject("user:somsri", 3), clock.now()

    def attempt() -> bool:
        try:
            lockouts.count_attempt([subject, LoginSubject("address:x", 100)], now=now)
        except LockedOutError:
            return False
        return True

    assert sorted(run_concurrently(*[attempt] * 8)) == [False] * 5 + [True] * 3


def test_expired_login_failures_are_removed(somsri: User, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as now:
        fail(1, "guess", "198.51.100.9")
        now.shift(LOCKOUT_PERIOD)
        fail(1)
    assert set(LoginThrottle.objects.values_list("subject", flat=True)) == {
        "user:somsri", "address:203.0.113.7/32",
    }  # fmt: skip


def test_login_lockout_is_in_the_security_log_once(somsri: User, caplog: pytest.LogCaptureFixture) -> None:
    fail(FAILURES_PER_USER + 3)
    (line,) = security_lines(caplog, "lockout")
    assert (line["subject"], line["address"]) == ("user:somsri", "203.0.113.7")


def test_staff_with_permission_lift_a_login_lockout(somsri: User, admin_client: Client) -> None:
    fail(FAILURES_PER_USER)
    run_act(admin_client, LoginThrottle, "user:somsri", "lift")
    assert log_in(RIGHT).status_code == 302
    record = acts_of_staff().get()
    assert (record.act, record.object_id) == ("lockout_lifted", "user:somsri")
    assert record.reason == REASON


def test_second_click_after_a_lifted_lockout_changes_nothing(somsri: User, admin_client: Client) -> None:
    fail(FAILURES_PER_USER)
    token = str(uuid4())
    first, second = (
        run_act(admin_client, LoginThrottle, "user:somsri", "lift", token=token) for _ in range(2)
    )
    assert "Lift the lockout: done." in first
    assert "It does not exist any more. Nothing changed." in second
    assert acts_of_staff().count() == 1


@pytest.mark.parametrize("subject", ["somsri", "203.0.113.7/32"])
def test_lift_lockout_command_ends_a_login_lockout(somsri: User, subject: str) -> None:
    fail(FAILURES_PER_USER)
    for number in range(FAILURES_PER_ADDRESS - FAILURES_PER_USER):
        fail(1, f"guess-{number}")
    call_command("lift_lockout", "somsri")
    call_command("lift_lockout", "203.0.113.7/32")
    assert log_in(RIGHT).status_code == 302


def test_lift_lockout_command_without_failed_logins_is_refused(db: None) -> None:
    with pytest.raises(CommandError, match="No failed logins"):
        call_command("lift_lockout", "somsri")
