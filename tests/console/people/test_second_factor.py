"""Staff log in in two steps: a password, then a code of an app or a recovery code, each accepted once."""

import base64
import io
import re
from datetime import timedelta
from typing import Any

import pytest
import zxingcpp
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.http import HttpRequest
from django.test import Client
from PIL import Image
from pytest_django import Settings

from audit_trail.models import AuditRecord
from config.upload_authorization import _permitted_user_id
from core import clock as our_clock
from qrcodes import images
from tests.authenticator_app import (
    APP,
    CODE,
    NEW_CODES,
    App,
    code_of,
    codes_on,
    enrolled,
    is_enrolled,
    secret_on,
    set_up,
)
from tests.concurrency import run_concurrently
from tests.security_lines import security_lines
from tests.staff_acts import acts_of_staff

HOME, LOGIN, ACCOUNT, PAYMENTS = "/admin/", "/admin/login/", "/admin/account/", "/admin/payments/payment/"
REMOVE, RENEW = "/admin/account/app/remove/", "/admin/account/recovery-codes/new/"
PASSWORD, FAILURES = "three-elephants-crossing", 5
pytestmark = pytest.mark.django_db


def colleague(name: str, *permissions: str) -> User:
    user = User.objects.create_user(name, password=PASSWORD, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return user


@pytest.fixture
def somsri() -> User:
    return colleague("somsri", "view_payment")


@pytest.fixture
def app(somsri: User, clock: Any) -> App:
    """The app of somsri. The clock stands; the code of this moment is not used."""
    return enrolled(somsri)


def after_password(user: User, page: str = "") -> Client:
    client = Client()
    client.post(f"{LOGIN}?next={page}", {"login": user.username, "password": PASSWORD})
    return client


def enter(client: Client, code: str) -> Any:
    return client.post(CODE, {"code": code})


def is_inside(client: Client) -> bool:
    return client.get(PAYMENTS).status_code == 200


@pytest.mark.slow
def test_code_of_the_app_completes_the_login(somsri: User, app: App) -> None:
    client = after_password(somsri, PAYMENTS)
    assert not is_inside(client)
    key = client.session.session_key
    answer = enter(client, app.code())
    assert (answer.status_code, answer.headers["Location"]) == (302, PAYMENTS)
    assert is_inside(client)
    assert client.session.session_key != key


@pytest.mark.slow
def test_password_leads_to_the_page_of_the_code(somsri: User, app: App) -> None:
    answer = Client().post(f"{LOGIN}?next={PAYMENTS}", {"login": "somsri", "password": PASSWORD}, follow=True)
    assert answer.redirect_chain[-1][0] == CODE
    assert "authenticator app" in answer.content.decode()


@pytest.mark.slow
def test_session_without_second_step_reaches_nothing(somsri: User, app: App) -> None:
    client = after_password(somsri)
    paths = [HOME, PAYMENTS, "/admin/search/?q=1", ACCOUNT, "/admin/password_change/", APP, REMOVE, RENEW,
             NEW_CODES, "/admin/jsi18n/", "/admin/autocomplete/", "/admin/account/passkeys/add/"]  # fmt: skip
    for path in paths:
        for answer in (client.get(path), client.post(path, {"code": "123456"})):
            assert (answer.status_code, answer.headers["Location"][:13]) == (302, LOGIN), path
    assert is_enrolled(somsri)
    assert client.post("/admin/logout/").status_code == 302
    assert client.get(CODE).headers["Location"] == LOGIN


def test_page_of_the_code_shows_no_menu(somsri: User, app: App) -> None:
    page = after_password(somsri).get(CODE).content.decode()
    assert 'id="menu"' not in page
    assert 'action="/admin/logout/"' in page


@pytest.mark.parametrize("next_page", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_second_step_leads_to_no_other_site(somsri: User, app: App, next_page: str) -> None:
    assert enter(after_password(somsri, next_page), app.code()).headers["Location"] == HOME


@pytest.mark.slow
def test_code_is_accepted_once(somsri: User, app: App) -> None:
    assert enter(after_password(somsri), app.code()).status_code == 302
    other = after_password(somsri)
    page = enter(other, app.code())
    assert (page.status_code, "was used before" in page.content.decode()) == (200, True)
    assert not is_inside(other)


@pytest.mark.parametrize(("seconds", "status"), [(-60, 200), (-30, 302), (30, 302), (60, 200)])
def test_clock_of_the_phone_may_differ_by_one_step(somsri: User, app: App, seconds: int, status: int) -> None:
    code = app.code(our_clock.now() + timedelta(seconds=seconds))
    assert enter(after_password(somsri), code).status_code == status


@pytest.mark.parametrize(
    "code", ["", "12345", "1234567", "abcdef", "\0", "๑๒๓๔๕๖", "1" * 1000, "１２３４５６"]
)
@pytest.mark.slow
def test_malformed_code_is_refused(somsri: User, app: App, code: str) -> None:
    client = after_password(somsri)
    assert enter(client, code).status_code == 200
    assert not is_inside(client)


def test_code_with_spaces_is_accepted(somsri: User, app: App) -> None:
    code = app.code()
    assert enter(after_password(somsri), f" {code[:3]} {code[3:]} ").status_code == 302


@pytest.mark.slow
def test_recovery_code_works_once(somsri: User, app: App) -> None:
    client = after_password(somsri)
    assert enter(client, app.recovery_codes[0]).status_code == 302
    assert "You used a recovery code. 9 are left." in client.get(HOME).content.decode()
    assert "9 recovery codes are left" in client.get(ACCOUNT).content.decode()
    assert enter(after_password(somsri), app.recovery_codes[0]).status_code == 200
    assert enter(after_password(somsri), app.recovery_codes[1]).status_code == 302


@pytest.mark.slow
def test_codes_of_somebody_else_are_refused(somsri: User, app: App) -> None:
    malee = colleague("malee")
    enrolled(malee)
    for code in (app.recovery_codes[0], app.code()):
        assert enter(after_password(malee), code).status_code == 200


@pytest.mark.slow
def test_wrong_codes_lock_the_second_step(somsri: User, app: App, clock: Any) -> None:
    for _ in range(FAILURES):
        assert "The code is wrong" in enter(after_password(somsri), "000000").content.decode()
    for code in (app.code(), app.recovery_codes[0]):
        refused = enter(after_password(somsri), code)
        assert (refused.status_code, "Too many" in refused.content.decode()) == (200, True)
    clock.shift(timedelta(minutes=15))
    assert enter(after_password(somsri), app.code()).status_code == 302


@pytest.mark.slow
def test_lockout_of_the_second_step_is_lifted_by_the_command(somsri: User, app: App) -> None:
    for _ in range(FAILURES):
        enter(after_password(somsri), "000000")
    call_command("lift_lockout", "somsri")
    assert enter(after_password(somsri), app.code()).status_code == 302


@pytest.mark.slow
def test_second_steps_are_in_the_security_log(
    somsri: User, app: App, caplog: pytest.LogCaptureFixture
) -> None:
    client = after_password(somsri)
    enter(client, "000000" if app.code() != "000000" else "111111")
    enter(client, app.code())
    [failed], [accepted] = (
        security_lines(caplog, f"second_factor_{result}") for result in ("failed", "accepted")
    )
    assert (failed["subject"], accepted["subject"], accepted["code"]) == ("staff:somsri",) * 2 + ("totp",)
    for _ in range(FAILURES):
        enter(after_password(somsri), "000000")
    assert [line["subject"] for line in security_lines(caplog, "lockout")] == ["staff:somsri"]
    assert app.secret not in caplog.text
    assert app.code() not in caplog.text


# --- who needs it ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_required_second_step_is_set_up_at_the_first_login(somsri: User, settings: Settings) -> None:
    settings.REQUIRE_TWO_FACTOR = True
    client = after_password(somsri)
    for path in (HOME, PAYMENTS, ACCOUNT, "/admin/password_change/"):
        assert client.get(path).headers["Location"] == APP, path
    app, answer = set_up(client)
    assert answer.headers["Location"] == NEW_CODES
    assert (len(set(app.recovery_codes)), is_inside(client)) == (10, True)
    assert not is_inside(after_password(somsri))
    assert enter(after_password(somsri), app.next_code()).status_code == 302


@pytest.mark.slow
def test_session_without_app_is_locked_when_the_second_step_becomes_required(
    somsri: User, settings: Settings
) -> None:
    client = after_password(somsri)
    assert is_inside(client)
    settings.REQUIRE_TWO_FACTOR = True
    assert not is_inside(client)


@pytest.mark.slow
def test_second_factor_can_be_removed_where_it_is_optional(somsri: User, settings: Settings) -> None:
    client = after_password(somsri)
    set_up(client)
    settings.REQUIRE_TWO_FACTOR = True
    refused = client.post(REMOVE)
    assert (refused.status_code, "You need a second step" in refused.content.decode()) == (400, True)
    assert (is_enrolled(somsri), is_inside(client)) == (True, True)
    settings.REQUIRE_TWO_FACTOR = False
    assert client.post(REMOVE).headers["Location"] == ACCOUNT
    assert not Authenticator.objects.exists()
    assert is_inside(after_password(somsri))
    settings.REQUIRE_TWO_FACTOR = True
    assert client.get(ACCOUNT).headers["Location"] == APP


@pytest.mark.slow
def test_guesser_who_waits_for_the_second_step_of_its_owner_does_not_get_in(
    somsri: User, settings: Settings
) -> None:
    settings.REQUIRE_TWO_FACTOR = True
    guesser, owner = after_password(somsri), after_password(somsri)
    set_up(owner)
    assert guesser.get(HOME).headers["Location"].startswith(LOGIN)
    assert is_inside(owner)


@pytest.mark.slow
def test_login_that_waits_for_its_code_ends_with_a_new_password(somsri: User, app: App) -> None:
    client = after_password(somsri)
    somsri.set_password("four-geckos-asleep")
    somsri.save()
    assert enter(client, app.code()).headers["Location"] == LOGIN
    assert not is_inside(client)


def test_account_that_is_not_of_staff_gets_a_reason_and_the_logout(db: None) -> None:
    client = Client()
    client.force_login(User.objects.create_user("payer"))
    for path in (HOME, ACCOUNT, PAYMENTS):
        page = client.get(path)
        assert (page.status_code, "does not include the console" in page.content.decode()) == (403, True)
    assert client.post("/admin/logout/").status_code == 302


# --- setting up ------------------------------------------------------------------------------------------


def test_qr_code_has_the_secret(somsri: User) -> None:
    page = after_password(somsri).get(APP).content.decode()
    [picture] = re.findall(r"base64,([A-Za-z0-9+/=]+)", page)
    address = f"otpauth://totp/qr.example.test%3Asomsri?secret={secret_on(page)}&issuer=qr.example.test"
    assert base64.b64decode(picture) == images.svg(address)
    [read] = zxingcpp.read_barcodes(Image.open(io.BytesIO(images.png(address))))
    assert read.text == address


@pytest.mark.slow
def test_app_with_a_wrong_code_is_not_stored_and_keeps_the_secret(somsri: User) -> None:
    client = after_password(somsri)
    secret = secret_on(client.get(APP).content.decode())
    again = client.post(APP, {"code": "1"}).content.decode()
    assert secret_on(again) == secret
    assert not Authenticator.objects.exists()
    client.post(APP, {"code": code_of(secret, our_clock.now())})
    assert is_enrolled(somsri)


def test_secret_of_another_session_is_not_stored(somsri: User) -> None:
    secret = secret_on(after_password(somsri).get(APP).content.decode())
    client = after_password(colleague("malee"))
    client.get(APP)
    client.post(APP, {"code": code_of(secret, our_clock.now())})
    assert not Authenticator.objects.exists()


@pytest.mark.slow
def test_new_app_replaces_the_old_one_and_ends_other_sessions(somsri: User) -> None:
    client = after_password(somsri)
    old, _ = set_up(client)
    elsewhere = after_password(somsri)
    enter(elsewhere, old.next_code())
    new, _ = set_up(client)
    assert (is_inside(client), is_inside(elsewhere)) == (True, False)
    assert enter(after_password(somsri), old.recovery_codes[0]).status_code == 200
    assert enter(after_password(somsri), new.next_code()).status_code == 302


@pytest.mark.slow
def test_new_recovery_codes_replace_the_old_ones_and_are_shown_once(somsri: User) -> None:
    client = after_password(somsri)
    app, _ = set_up(client)
    client.post(RENEW)
    new = codes_on(client.get(NEW_CODES).content.decode())
    assert len(set(new) - set(app.recovery_codes)) == 10
    assert codes_on(client.get(NEW_CODES).content.decode()) == []
    assert enter(after_password(somsri), app.recovery_codes[0]).status_code == 200
    assert enter(after_password(somsri), new[0]).status_code == 302


@pytest.mark.slow
def test_secrets_are_stored_sealed(somsri: User) -> None:
    client = after_password(somsri)
    shown = secret_on(client.get(APP).content.decode())
    app, _ = set_up(client)
    stored = str(list(Authenticator.objects.values())) + str(list(AuditRecord.objects.values()))
    sessions = [row.session_data for row in Session.objects.all()]
    for secret in (shown, app.secret, *app.recovery_codes):
        assert secret not in stored
    assert [data[:7] for data in sessions] == ["sealed:"]
    assert stored.count("sealed:") == 2


@pytest.mark.slow
def test_changes_of_the_own_second_factor_are_recorded(
    somsri: User, caplog: pytest.LogCaptureFixture, django_capture_on_commit_callbacks: Any
) -> None:
    client = after_password(somsri)
    with django_capture_on_commit_callbacks(execute=True):
        set_up(client)
        client.post(RENEW)
        client.post(REMOVE)
    found = [(record.act, record.object_id, record.actor) for record in acts_of_staff()]
    acts = ["second_factor_added", "recovery_codes_renewed", "second_factor_removed"]
    assert found == [(act, str(somsri.pk), "staff:somsri") for act in acts]
    changes = [line["changes"] for line in security_lines(caplog, "second_factor_changed")]
    assert changes == [["+app"], ["+recovery_codes"], ["-app"]]


# --- races -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["app", "recovery code"])
def test_one_of_many_requests_with_the_same_code_passes(kind: str) -> None:
    user = colleague("somsri")
    app = enrolled(user)
    code = app.code() if kind == "app" else app.recovery_codes[0]
    clients = [after_password(user) for _ in range(4)]
    answers = run_concurrently(*[lambda client=client: enter(client, code) for client in clients])
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 302]
    assert sum(client.get(HOME).status_code == 200 for client in clients) == 1


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_one_of_several_first_enrolments_passes() -> None:
    user = colleague("somsri")
    clients = [after_password(user) for _ in range(4)]
    codes = [code_of(secret_on(each.get(APP).content.decode()), our_clock.now()) for each in clients]
    run_concurrently(
        *[
            lambda client=client, code=code: client.post(APP, {"code": code})
            for client, code in zip(clients, codes, strict=True)
        ]
    )
    assert Authenticator.objects.filter(type=Authenticator.Type.TOTP).count() == 1
    assert acts_of_staff().count() == 1


# --- colleagues --------------------------------------------------------------------------------------------


def admin_of_staff(name: str = "admin", *permissions: str) -> Client:
    wanted = ["view_user", "change_user", "reset_second_factor", "end_sessions", *permissions]
    return after_password(colleague(name, *wanted))


def reset(client: Client, person: User, slug: str = "reset-second-step") -> Any:
    path = f"/admin/auth/user/{person.pk}/do/{slug}/"
    page = client.get(path)
    if page.status_code != 200:
        return page
    token = re.findall(r'name="token" value="([^"]+)"', page.content.decode())[0]
    return client.post(path, {"reason": "Lost the phone; we met in person.", "token": token})


@pytest.mark.slow
def test_admin_resets_the_second_factor_of_a_colleague(somsri: User, app: App) -> None:
    client, theirs = admin_of_staff("prasit", "view_payment"), after_password(somsri)
    enter(theirs, app.code())
    assert reset(client, somsri).status_code == 302
    assert not Authenticator.objects.exists()
    assert not is_inside(theirs)
    record = acts_of_staff().get()
    assert (record.act, record.object_id) == ("second_factor_reset", str(somsri.pk))
    assert record.reason == "Lost the phone; we met in person."


def test_reset_needs_its_permission(somsri: User, app: App) -> None:
    client = admin_of_staff("prasit", "view_payment")
    User.objects.get(username="prasit").user_permissions.remove(
        Permission.objects.get(codename="reset_second_factor")
    )
    assert reset(client, somsri).status_code == 403
    assert is_enrolled(somsri)


@pytest.mark.parametrize("slug", ["reset-second-step", "end-sessions", "disable"])
@pytest.mark.slow
def test_nobody_acts_on_the_login_of_a_person_who_holds_more(somsri: User, app: App, slug: str) -> None:
    client = admin_of_staff("prasit")
    path = f"/admin/auth/user/{somsri.pk}/do/{slug}/"
    assert client.post(path, {"reason": "x", "token": "x"}).status_code == 403
    assert reset(client, somsri, slug).status_code == 403
    assert slug not in client.get(f"/admin/auth/user/{somsri.pk}/change/").content.decode()
    assert is_enrolled(somsri)


@pytest.mark.parametrize("slug", ["reset-second-step", "end-sessions", "disable"])
def test_nobody_acts_on_the_own_login_by_the_page_of_colleagues(db: None, slug: str) -> None:
    client = admin_of_staff("prasit")
    assert reset(client, User.objects.get(username="prasit"), slug).status_code == 403


def test_upload_needs_the_second_step(somsri: User, app: App) -> None:
    somsri.user_permissions.add(Permission.objects.get(codename="import_statement"))
    client = after_password(somsri)
    assert _permitted_user_id(upload(client)) is None
    enter(client, app.code())
    assert _permitted_user_id(upload(client)) == str(somsri.pk)


def upload(client: Client) -> HttpRequest:
    """A request of the client to import a statement."""
    request = HttpRequest()
    request.META = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/admin/reconciliation/statement/import/",
        "HTTP_COOKIE": f"{settings.SESSION_COOKIE_NAME}={client.session.session_key}",
    }
    return request
