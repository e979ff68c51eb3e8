"""Staff import a statement in the console and see its results; others cannot upload."""

import asyncio
import html
import io
import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError
from django.test import Client

from config import asgi
from core import clock, uploads
from core.http import MAX_BODY
from reconciliation.models import BankTransaction, Statement
from reconciliation.statements import importing
from tests.conftest import Shop, new_client
from tests.reconciliation.statements.statement_files import bot_file, credit_line, detail, trailer
from tests.staff_acts import acts_of_staff

IMPORT = "/admin/reconciliation/statement/import/"
SESSION = f"{settings.SESSION_COOKIE_NAME}=x"
LISTED = "/admin/reconciliation/statement/"
pytestmark = [pytest.mark.django_db]


def staff(*permissions: str) -> Client:
    user = User.objects.create_user("malee", is_staff=True)
    seen = ["view_statement", "view_statementline"]
    user.user_permissions.set(Permission.objects.filter(codename__in=[*seen, *permissions]))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def malee(db: None) -> Client:
    return staff("import_statement", "view_personal_data")


def upload(client: Client, body: bytes, *, bank: str = "sandbox", name: str = "day.txt") -> Any:
    return client.post(IMPORT, {"bank": bank, "file": SimpleUploadedFile(name, body)}, follow=True)


@pytest.mark.slow
def test_uploaded_statement_is_imported_and_the_page_shows_the_results(shop: Shop, malee: Client) -> None:
    code = shop.qr_code()
    shown = upload(malee, bot_file(credit_line(code, clock.now()), detail(), detail(amount="?")))
    text = shown.content.decode()
    assert shop.payment(code["payment_id"])["status"] == "succeeded"
    statement = Statement.objects.get()
    assert shown.redirect_chain == [(f"{LISTED}{statement.id}/change/", 302)]
    assert "has problems" in text
    assert 'http-equiv="refresh"' not in text
    assert [re.sub(",", "", count) for count in re.findall(r">([\d,]+ (?:new|unreadable))<", text)] == [
        "2 new",
        "1 unreadable",
    ]
    assert (statement.actor, statement.file_name, statement.bank) == ("staff:malee", "day.txt", "sandbox")
    assert acts_of_staff().get().object_id == statement.id


def test_statement_lines_are_listed_by_result_with_masked_numbers(shop: Shop, malee: Client) -> None:
    upload(malee, bot_file(detail(), detail(amount="?")))
    statement = Statement.objects.get()
    listed = malee.get(
        f"/admin/reconciliation/statementline/?statement__id__exact={statement.id}&result__exact=unreadable"
    )
    assert listed.status_code == 200
    assert "1 statement line" in listed.content.decode()
    line = statement.lines.get(result="new")
    shown = malee.get(f"/admin/reconciliation/statementline/{line.pk}/change/").content.decode()
    assert "สมชาย ใจดี" in shown
    assert "1,500.00 THB" in shown


def test_unreadable_line_shows_the_error_without_the_content(shop: Shop, malee: Client) -> None:
    upload(malee, bot_file(detail(), detail(amount="O'Hara Jai?")))
    line = Statement.objects.get().lines.get(result="unreadable")
    assert line.error == "the amount cannot be '…'"
    for page in (
        "/admin/reconciliation/statementline/",
        f"/admin/reconciliation/statementline/{line.pk}/change/",
    ):
        assert html.escape(line.error) in malee.get(page).content.decode()


def test_upload_in_unknown_format_is_refused_with_a_reason(shop: Shop, malee: Client) -> None:
    shown = upload(malee, b"PK\x03\x04 a spreadsheet")
    assert "neither a cross-bank bill payment file nor a CSV file" in shown.content.decode()
    assert not Statement.objects.exists()


@pytest.mark.logs_errors
@pytest.mark.slow
def test_database_failure_during_an_upload_is_reported(
    shop: Shop, malee: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise OperationalError("canceling statement due to lock timeout")

    monkeypatch.setattr(importing, "_apply", fail)
    shown = upload(malee, bot_file(detail()))
    assert "was interrupted (OperationalError): import it again" in shown.content.decode()
    assert Statement.objects.get().completed_at is None


def test_running_import_shows_progress(shop: Shop, malee: Client) -> None:
    Statement.objects.create(
        id="stm_1",
        bank="sandbox",
        file_name="day.txt",
        actor="staff:malee",
        created_at=clock.now(),
        line_count=1000,
        stored_count=250,
    )
    shown = malee.get(f"{LISTED}stm_1/change/").content.decode()
    assert "250 of 1,000" in shown
    assert 'http-equiv="refresh"' in shown


@pytest.mark.slow
def test_concurrent_second_import_is_refused(shop: Shop, malee: Client) -> None:
    with importing.console_import_lock():
        shown = upload(malee, bot_file(detail()))
        assert "Another import is running" in shown.content.decode()
        assert not Statement.objects.exists()
    upload(malee, bot_file(detail()))
    assert Statement.objects.get().completed_at


def test_failed_import_releases_the_import_lock(shop: Shop, malee: Client) -> None:
    assert "neither a cross-bank" in upload(malee, b"PK\x03\x04 a spreadsheet").content.decode()
    assert "1 lines imported" in upload(malee, bot_file(detail())).content.decode()


def test_import_needs_the_import_permission(shop: Shop) -> None:
    client = staff()
    assert "Import a statement" not in client.get(LISTED).content.decode()
    assert upload(client, bot_file(detail())).status_code == 403
    assert not BankTransaction.objects.exists()


def test_import_permission_shows_the_import_button(malee: Client) -> None:
    assert IMPORT in malee.get(LISTED).content.decode()


@pytest.mark.slow
def test_upload_of_many_megabytes_is_imported(shop: Shop, malee: Client) -> None:
    padding = b"\r\n" * 2_000_000
    shown = upload(malee, bot_file(detail(), end=padding + trailer(credit=150_000, credits=1)))
    assert "1 lines imported" in shown.content.decode()


@pytest.mark.parametrize(
    ("path", "name"), [(IMPORT, ""), ("/admin/login/", SESSION), ("/v1/payments", SESSION)]
)
def test_requests_other_than_uploads_keep_the_size_limit(db: None, path: str, name: str) -> None:
    answer = new_client().post(
        path, b"x" * (MAX_BODY + 1), content_type="text/plain", headers={"Cookie": name} if name else {}
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")


def environ(**changes: str) -> dict[str, Any]:
    return {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": IMPORT,
        "HTTP_COOKIE": f"a=b; {settings.SESSION_COOKIE_NAME}={'x' * 32}",
    } | changes


def arriving(reported: dict[str, Any], size: int) -> dict[str, Any]:
    """Return the WSGI environ after a body of this size."""
    left = [size]

    async def receive() -> dict[str, Any]:
        chunk = min(left[0], 65_536)
        left[0] -= chunk
        return {"type": "http.request", "body": b"x" * chunk, "more_body": left[0] > 0}

    async def take() -> None:
        answered = asyncio.get_running_loop().create_future()
        staff = asgi.WsgiAdapter(lambda environ, start: [], threads=1, find_uploader=lambda environ: "7")
        await staff._read_request_body(reported, receive, answered, has_arrived=False)

    asyncio.run(take())
    return reported


def test_web_server_writes_an_upload_to_disk() -> None:
    reported = arriving(environ(), 3_000_000)
    with reported["wsgi.input"] as body:
        assert Path(f"/proc/self/fd/{body.fileno()}").exists()
        assert (reported["CONTENT_LENGTH"], len(body.read())) == ("3000000", 3_000_000)


@pytest.mark.parametrize(
    "other", [{"HTTP_COOKIE": "a=b"}, {"PATH_INFO": "/admin/login/"}, {"REQUEST_METHOD": "GET"}]
)
def test_large_body_outside_uploads_is_not_read_by_the_web_server(other: dict[str, str]) -> None:
    reported = arriving(environ(**other), MAX_BODY + 1)
    assert reported[asgi.BODY_TOO_LARGE]
    assert isinstance(reported["wsgi.input"], io.BytesIO)


def test_upload_has_a_size_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MAX_FILE", 100_000)
    reported = arriving(environ(), 100_000 + MAX_BODY + 1)
    with reported["wsgi.input"] as body:
        assert (reported[asgi.BODY_TOO_LARGE], reported["CONTENT_LENGTH"], body.read()) == (True, "0", b"")
