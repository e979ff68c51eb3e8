"""Staff log in in two steps: a password, then a code of an app or a recovery code, each accepted once."""

import base64
import io
import re
from datetime import datetime, timedelta
from typing import Any

import pytest
import zxingcpp
from django.contrib.auth.models import Permission, User
from django.db import DatabaseError, connection, transaction
from django.test import Client
from PIL import Image
from pytest_django import Settings

from audit_trail.models import AuditRecord
from console.models import RecoveryCode, SecondFactor, StaffSession
from console.people import second_factors
from console.people.second_factors import AlreadyEnrolled, WrongCode
from core import clock as our_clock
from qrcodes import images
from tests.authenticator_app import APP, CODE, App, code_of, confirm, enrolled, secret_on, set_up
from tests.concurrency import run_concurrently
from tests.security_lines import security_lines
from tests.staff_acts import acts_of_staff

HOME, LOGIN, ACCOUNT = "/admin/", "/admin/login/", "/admin/account/"
PASSWORD = "three-elephants-crossing"
# RFC 6238, appendix B, as six digits.
RFC_SECRET = base64.b32encode(b"12345678901234567890").decode()
RFC_CODES = [(59, "287082"), (1111111109, "081804"), (1111111111, "050471"), (20000000000, "353130")]
pytestmark = pytest.mark.django_db


@pytest.fixture
def somsri() -> User:
    user = User.objects.create_user("somsri", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_payment"))
    return user


@pytest.fixture
def app(somsri: User, clock: Any) -> App:
    """The app of somsri. The clock stands; the code of this moment is not used."""
    return enrolled(somsri, our_clock.now() - timedelta(minutes=5))


def after_password(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def enter(client: Client, code: str, **fields: str) -> Any:
    return client.post(CODE, {"code": code, **fields})


def is_inside(client: Client) -> bool:
    return client.get("/admin/payments/payment/").status_code == 200


@pytest.mark.parametrize(("at", "code"), RFC_CODES)
def test_codes_are_those_of_the_rfc(somsri: User, at: int, code: str) -> None:
    now = datetime.fromtimestamp(at, tz=our_clock.now().tzinfo)
    assert code_of(RFC_SECRET, now) == code
    second_factors.enrol(somsri, RFC_SECRET, code, is_replacement=False, now=now)
    assert second_factors.is_enrolled(somsri)


@pytest.mark.slow
def test_code_of_the_app_completes_the_login(somsri: User, app: App) -> None:
    client = after_password(somsri)
    key = client.session.session_key
    answer = enter(client, app.code(), next="/admin/payments/payment/")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/admin/payments/payment/")
    assert is_inside(client)
    assert client.session.session_key != key


@pytest.mark.slow
def test_password_leads_to_the_page_of_the_code(somsri: User, app: App) -> None:
    somsri.set_password(PASSWORD)
    somsri.save()
    answer = Client().post(
        f"{LOGIN}?next=/admin/payments/payment/", {"username": "somsri", "password": PASSWORD}, follow=True
    )
    assert answer.redirect_chain[-1][0] == f"{CODE}?next=%2Fadmin%2Fpayments%2Fpayment%2F"
    assert "authenticator app" in answer.content.decode()


@pytest.mark.slow
def test_session_without_second_step_reaches_nothing(somsri: User, app: App) -> None:
    client = after_password(somsri)
    paths = [HOME, "/admin/payments/payment/", "/admin/search/?q=1", ACCOUNT, "/admin/password_change/",
             "/admin/jsi18n/", "/admin/autocomplete/"]  # fmt: skip
    for path in paths:
        assert client.get(path).status_code == 302, path
        assert client.post(path, {"x": "y"}).status_code == 302, path
    assert client.post("/admin/account/remove-app/").status_code == 302
    assert client.post("/admin/account/recovery-codes/").status_code == 302
    assert client.get(APP).headers["Location"].startswith(CODE)
    assert client.post(APP, {"code": "123456"}).headers["Location"].startswith(CODE)
    assert second_factors.unused_recovery_codes(somsri) == 10
    assert client.post("/admin/logout/").status_code == 200
    assert client.get(CODE).status_code == 302


def test_page_of_the_code_shows_no_menu(somsri: User, app: App) -> None:
    page = after_password(somsri).get(CODE).content.decode()
    assert 'id="menu"' not in page
    assert 'action="/admin/logout/"' in page


@pytest.mark.parametrize("next_page", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_second_step_leads_to_no_other_site(somsri: User, app: App, next_page: str) -> None:
    assert enter(after_password(somsri), app.code(), next=next_page).headers["Location"] == HOME


@pytest.mark.slow
def test_code_is_accepted_once(somsri: User, app: App) -> None:
    assert enter(after_password(somsri), app.code()).status_code == 302
    other = after_password(somsri)
    page = enter(other, app.code())
    assert (page.status_code, "was used before" in page.content.decode()) == (200, True)
    assert not is_inside(other)


@pytest.mark.slow
def test_code_before_the_last_accepted_one_is_refused(somsri: User, app: App) -> None:
    earlier = app.code(our_clock.now() - timedelta(seconds=30))
    assert enter(after_password(somsri), app.code()).status_code == 302
    assert enter(after_password(somsri), earlier).status_code == 200


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
def test_recovery_code_works_once_and_warns(somsri: User, app: App) -> None:
    client = after_password(somsri)
    assert enter(client, app.recovery_codes[0].upper()).status_code == 302
    assert "9 are left" in client.get(HOME).content.decode()
    assert enter(after_password(somsri), app.recovery_codes[0]).status_code == 200
    assert enter(after_password(somsri), app.recovery_codes[1].replace("-", "")).status_code == 302


@pytest.mark.slow
def test_recovery_code_of_somebody_else_is_refused(somsri: User, app: App) -> None:
    malee = User.objects.create_user("malee", is_staff=True)
    enrolled(malee)
    assert enter(after_password(malee), app.recovery_codes[0]).status_code == 200


def test_code_of_somebody_else_is_refused(somsri: User, app: App) -> None:
    malee = User.objects.create_user("malee", is_staff=True)
    enrolled(malee, our_clock.now() - timedelta(minutes=5))
    assert enter(after_password(malee), app.code()).status_code == 200


@pytest.mark.slow
def test_wrong_codes_lock_the_second_step(somsri: User, app: App, clock: Any) -> None:
    limit = second_factors.FAILURES_PER_USER
    statuses = [enter(after_password(somsri), "000000").status_code for _ in range(limit)]
    assert statuses == [200] * limit
    refused = enter(after_password(somsri), app.code())
    assert (refused.status_code, "Retry-After" in refused.headers) == (429, True)
    assert enter(after_password(somsri), app.recovery_codes[0]).status_code == 429
    clock.shift(timedelta(minutes=15))
    assert enter(after_password(somsri), app.code()).status_code == 302


@pytest.mark.slow
def test_lockout_of_the_second_step_is_lifted_by_the_command(somsri: User, app: App) -> None:
    from django.core.management import call_command

    for _ in range(second_factors.FAILURES_PER_USER):
        enter(after_password(somsri), "000000")
    call_command("lift_lockout", "somsri")
    assert enter(after_password(somsri), app.code()).status_code == 302


@pytest.mark.slow
def test_accepted_code_forgets_earlier_failures(somsri: User, app: App) -> None:
    for _ in range(second_factors.FAILURES_PER_USER - 1):
        enter(after_password(somsri), "000000")
    enter(after_password(somsri), app.code())
    for _ in range(second_factors.FAILURES_PER_USER - 1):
        assert enter(after_password(somsri), "000000").status_code == 200


@pytest.mark.slow
def test_second_steps_are_in_the_security_log(
    somsri: User, app: App, caplog: pytest.LogCaptureFixture
) -> None:
    client = after_password(somsri)
    wrong = "000000" if app.code() != "000000" else "111111"
    enter(client, wrong)
    enter(client, app.code())
    enter(after_password(somsri), app.recovery_codes[0])
    assert [line["subject"] for line in security_lines(caplog, "second_factor_failed")] == ["staff:somsri"]
    accepted = [line["code"] for line in security_lines(caplog, "second_factor_accepted")]
    assert accepted == ["app", "recovery_code"]
    for secret in (app.secret, app.code(), *app.recovery_codes):
        assert secret not in caplog.text


# --- required or not -----------------------------------------------------------------------------------


def test_second_step_is_optional_without_the_setting(somsri: User) -> None:
    client = after_password(somsri)
    assert is_inside(client)
    assert "Set up an authenticator app" in client.get(ACCOUNT).content.decode()


@pytest.mark.slow
def test_required_second_step_is_set_up_at_the_first_login(somsri: User, settings: Settings) -> None:
    settings.REQUIRE_TWO_FACTOR = True
    client = after_password(somsri)
    assert client.get(HOME, follow=True).redirect_chain[-1][0].startswith(APP)
    app, shown = set_up(client)
    assert shown.headers["Cache-Control"].startswith("max-age=0, no-cache, no-store")
    assert (len(app.recovery_codes), is_inside(client)) == (10, True)
    assert enter(after_password(somsri), app.next_code()).status_code == 302


@pytest.mark.slow
def test_required_second_step_cannot_be_removed(somsri: User, settings: Settings) -> None:
    settings.REQUIRE_TWO_FACTOR = True
    client = after_password(somsri)
    set_up(client)
    assert "Remove the second step" not in client.get(ACCOUNT).content.decode()
    client.post("/admin/account/remove-app/")
    assert second_factors.is_enrolled(somsri)


@pytest.mark.slow
def test_second_factor_can_be_removed_where_it_is_optional(somsri: User) -> None:
    client = after_password(somsri)
    set_up(client)
    client.post("/admin/account/remove-app/")
    assert is_inside(after_password(somsri))
    assert not RecoveryCode.objects.exists()


# --- setting up ------------------------------------------------------------------------------------------


def test_qr_code_has_the_secret(somsri: User) -> None:
    page = after_password(somsri).get(APP).content.decode()
    [picture] = re.findall(r"base64,([A-Za-z0-9+/=]+)", page)
    address = second_factors.address_for_app(somsri, secret_on(page))
    assert base64.b64decode(picture) == images.svg(address)
    [read] = zxingcpp.read_barcodes(Image.open(io.BytesIO(images.png(address))))
    assert read.text == (
        f"otpauth://totp/qr.example.test%3Asomsri?secret={secret_on(page)}&issuer=qr.example.test"
    )


@pytest.mark.slow
def test_app_with_a_wrong_code_is_not_stored_and_keeps_the_secret(somsri: User) -> None:
    client = after_password(somsri)
    page = client.get(APP).content.decode()
    sealed = re.findall(r'name="sealed_secret" value="([^"]+)"', page)[0]
    again = client.post(APP, {"sealed_secret": sealed, "code": "1"}).content.decode()
    assert secret_on(again) == secret_on(page)
    assert not SecondFactor.objects.exists()
    confirm(client, again)
    assert second_factors.is_enrolled(somsri)


@pytest.mark.parametrize("sealed", ["", "x", "sealed:abc"])
def test_app_with_a_forged_secret_is_not_stored(somsri: User, sealed: str) -> None:
    client = after_password(somsri)
    code = code_of(RFC_SECRET, our_clock.now())
    assert client.post(APP, {"sealed_secret": sealed, "code": code}).status_code == 200
    assert not SecondFactor.objects.exists()


def test_secret_of_another_session_is_not_stored(somsri: User) -> None:
    page = after_password(somsri).get(APP).content.decode()
    confirm(after_password(User.objects.create_user("malee", is_staff=True)), page)
    assert not SecondFactor.objects.exists()


@pytest.mark.slow
def test_new_app_replaces_the_old_one_and_ends_other_sessions(somsri: User) -> None:
    client = after_password(somsri)
    old, _ = set_up(client)
    elsewhere = after_password(somsri)
    enter(elsewhere, old.next_code())
    new, _ = set_up(client)
    assert (is_inside(client), is_inside(elsewhere)) == (True, False)
    assert SecondFactor.objects.get().secret == new.secret
    assert enter(after_password(somsri), old.recovery_codes[0]).status_code == 200


@pytest.mark.slow
def test_new_recovery_codes_replace_the_old_ones(somsri: User) -> None:
    client = after_password(somsri)
    app, _ = set_up(client)
    page = client.post("/admin/account/recovery-codes/", {"next": ACCOUNT}).content.decode()
    new = re.findall(r"<code>([a-z2-7-]{19})</code>", page)
    assert len(set(new) - set(app.recovery_codes)) == 10
    assert enter(after_password(somsri), app.recovery_codes[0]).status_code == 200
    assert enter(after_password(somsri), new[0]).status_code == 302


@pytest.mark.slow
def test_secrets_are_stored_sealed_and_codes_as_digests(somsri: User) -> None:
    app, _ = set_up(after_password(somsri))
    stored = str(list(SecondFactor.objects.values())) + str(list(RecoveryCode.objects.values()))
    stored += str(list(AuditRecord.objects.values())) + str(list(StaffSession.objects.values()))
    stored += "".join(str(row.get_decoded()) for row in StaffSession.objects.all())
    for secret in (app.secret, *app.recovery_codes):
        assert secret not in stored


@pytest.mark.slow
def test_changes_of_the_own_second_factor_are_recorded(somsri: User) -> None:
    client = after_password(somsri)
    set_up(client)
    client.post("/admin/account/recovery-codes/")
    client.post("/admin/account/remove-app/")
    found = [(record.act, record.object_id, record.actor) for record in acts_of_staff()]
    acts = ["second_factor_added", "recovery_codes_renewed", "second_factor_removed"]
    assert found == [(act, str(somsri.pk), "staff:somsri") for act in acts]


# --- races and the database ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_one_of_many_requests_with_the_same_code_passes() -> None:
    user = User.objects.create_user("somsri", is_staff=True)
    app = enrolled(user, our_clock.now() - timedelta(minutes=5))
    clients, code = [after_password(user) for _ in range(4)], app.code()
    answers = run_concurrently(*[lambda client=client: enter(client, code) for client in clients])
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 302]
    assert sum(is_inside_home(client) for client in clients) == 1


def is_inside_home(client: Client) -> bool:
    return client.get(HOME).status_code == 200


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_one_of_many_requests_with_the_same_recovery_code_passes() -> None:
    user = User.objects.create_user("somsri", is_staff=True)
    code = enrolled(user).recovery_codes[0]
    clients = [after_password(user) for _ in range(4)]
    answers = run_concurrently(*[lambda client=client: enter(client, code) for client in clients])
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 302]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_one_of_two_first_enrolments_passes() -> None:
    user, now = User.objects.create_user("somsri", is_staff=True), our_clock.now()

    def enrol() -> bool:
        secret = second_factors.new_secret()
        try:
            second_factors.enrol(user, secret, code_of(secret, now), is_replacement=False, now=now)
        except AlreadyEnrolled:
            return False
        return True

    assert sorted(run_concurrently(*[enrol] * 4)) == [False, False, False, True]
    assert RecoveryCode.objects.count() == 10


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE console_secondfactor SET last_step = last_step - 1",
        "UPDATE console_secondfactor SET secret_sealed = 'x'",
        "UPDATE console_recoverycode SET digest = 'x'",
        "UPDATE console_recoverycode SET used_at = NULL",
    ],
)
def test_database_refuses_to_make_a_code_valid_again(somsri: User, app: App, sql: str) -> None:
    RecoveryCode.objects.update(used_at=our_clock.now())
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql)


def test_secret_copied_to_another_person_does_not_open(somsri: User, app: App) -> None:
    malee = User.objects.create_user("malee", is_staff=True)
    sealed = SecondFactor.objects.get(user=somsri).secret_sealed
    SecondFactor.objects.create(user=malee, secret_sealed=sealed, created_at=our_clock.now(), last_step=0)
    with pytest.raises(ValueError, match="another place"):
        second_factors.check_code(malee, app.code(), now=our_clock.now())


def test_wrong_first_code_is_refused(somsri: User) -> None:
    with pytest.raises(WrongCode):
        second_factors.enrol(somsri, RFC_SECRET, "12", is_replacement=False, now=our_clock.now())


# --- colleagues --------------------------------------------------------------------------------------------


def admin_of_staff(name: str = "admin", *permissions: str) -> Client:
    user = User.objects.create_user(name, is_staff=True)
    wanted = ["view_user", "change_user", "reset_second_factor", "end_sessions", *permissions]
    user.user_permissions.set(Permission.objects.filter(codename__in=wanted))
    return after_password(user)


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
    assert not SecondFactor.objects.exists()
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
    assert second_factors.is_enrolled(somsri)


@pytest.mark.parametrize("slug", ["reset-second-step", "end-sessions"])
@pytest.mark.slow
def test_nobody_acts_on_the_login_of_a_person_who_holds_more(somsri: User, app: App, slug: str) -> None:
    client = admin_of_staff("prasit")
    path = f"/admin/auth/user/{somsri.pk}/do/{slug}/"
    assert client.post(path, {"reason": "x", "token": "x"}).status_code == 403
    assert reset(client, somsri, slug).status_code == 403
    assert slug not in client.get(f"/admin/auth/user/{somsri.pk}/change/").content.decode()
    assert second_factors.is_enrolled(somsri)


@pytest.mark.parametrize("slug", ["reset-second-step", "end-sessions"])
def test_nobody_acts_on_the_own_login_by_the_page_of_colleagues(db: None, slug: str) -> None:
    client = admin_of_staff("prasit")
    assert reset(client, User.objects.get(username="prasit"), slug).status_code == 403


def test_upload_needs_the_second_step(somsri: User, app: App) -> None:
    from django.http import HttpRequest

    from config.upload_authorization import _permitted_user_id

    somsri.user_permissions.add(Permission.objects.get(codename="import_statement"))
    client = after_password(somsri)
    permission = "reconciliation.import_statement"
    assert _permitted_user_id(HttpRequest(), str(client.session.session_key), permission) is None
    enter(client, app.code())
    assert _permitted_user_id(HttpRequest(), str(client.session.session_key), permission) == str(somsri.pk)
