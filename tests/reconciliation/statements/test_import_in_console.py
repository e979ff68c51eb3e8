"""Staff import a statement in the console and see its results; others cannot upload."""

import asyncio
import html
import io
import re
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from config import asgi
from core import clock, uploads, vault
from core.background_jobs import JobState
from core.http import MAX_BODY
from reconciliation.models import (
    BankTransaction,
    Statement,
    StatementImport,
    StatementLine,
    StatementPart,
)
from reconciliation.statements import import_jobs
from tests.concurrency import run_concurrently
from tests.conftest import Shop, new_client
from tests.reconciliation.statements.statement_files import bot_file, credit_line, detail, trailer
from tests.staff_acts import acts_of_staff

IMPORT = "/admin/reconciliation/statement/import/"
SESSION = f"{settings.SESSION_COOKIE_NAME}=x"
LISTED = "/admin/reconciliation/statement/"
REFRESH = 'http-equiv="refresh"'
pytestmark = [pytest.mark.django_db]


def staff(*permissions: str, name: str = "malee") -> Client:
    user = User.objects.create_user(name, is_staff=True)
    seen = ["view_statement", "view_statementline"]
    user.user_permissions.set(Permission.objects.filter(codename__in=[*seen, *permissions]))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def malee(db: None) -> Client:
    return staff("import_statement", "view_personal_data")


def send(client: Client, body: bytes, *, bank: str = "sandbox", name: str = "day.txt") -> Any:
    return client.post(IMPORT, {"bank": bank, "file": SimpleUploadedFile(name, body)}, follow=True)


def upload(client: Client, body: bytes, *, bank: str = "sandbox", name: str = "day.txt") -> Any:
    """Upload a file, let a worker import it, and return the last page as it is then."""
    shown = send(client, body, bank=bank, name=name)
    import_jobs.run_due()
    return shown if not shown.redirect_chain else client.get(shown.redirect_chain[-1][0])


@pytest.mark.slow
def test_uploaded_statement_is_imported_and_the_page_shows_the_results(shop: Shop, malee: Client) -> None:
    code = shop.qr_code()
    file = bot_file(credit_line(code, clock.now()), detail(), detail(amount="?"))
    waiting = send(malee, file)
    statement = Statement.objects.get()
    assert waiting.redirect_chain == [(f"{LISTED}{statement.id}/change/", 302)]
    assert "0 of 3" in waiting.content.decode()
    assert "Waiting" in waiting.content.decode()
    assert REFRESH in waiting.content.decode()
    assert import_jobs.run_due() == 1
    text = malee.get(waiting.redirect_chain[0][0]).content.decode()
    assert shop.payment(code["payment_id"])["status"] == "succeeded"
    assert REFRESH not in text
    assert [re.sub(",", "", count) for count in re.findall(r">([\d,]+ (?:new|unreadable))<", text)] == [
        "2 new",
        "1 unreadable",
    ]
    assert "1 matched" in text
    assert "1 wait for a decision" in text
    assert f"Line 4: {html.escape('the amount cannot be')}" in text
    assert (statement.actor, statement.file_name, statement.bank) == ("staff:malee", "day.txt", "sandbox")
    assert acts_of_staff().get().object_id == statement.id
    assert not StatementPart.objects.exists()


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
    shown = upload(malee, b"%PDF-1.7")
    assert "neither a cross-bank bill payment file nor a CSV file" in shown.content.decode()
    assert not Statement.objects.exists()


@pytest.mark.parametrize(("state", "is_refreshed"), [("running", True), ("failed", False)])
def test_page_shows_the_progress(shop: Shop, malee: Client, state: str, is_refreshed: bool) -> None:
    send(malee, bot_file(detail()))
    statement = Statement.objects.get()
    Statement.objects.update(stored_count=1)
    StatementImport.objects.update(state=state)
    shown = malee.get(f"{LISTED}{statement.id}/change/").content.decode()
    assert "1 of 1" in shown
    assert (REFRESH in shown) == is_refreshed
    assert ("it failed, import the file again" in shown) != is_refreshed
    assert "1 of 1" in malee.get(LISTED).content.decode()


def test_import_by_a_command_shows_its_progress(shop: Shop, malee: Client) -> None:
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
    assert "250 of 1,000; if it stops" in shown
    assert REFRESH in shown


def test_same_file_is_refused_while_it_is_imported_and_recognised_after(shop: Shop, malee: Client) -> None:
    file = bot_file(detail(), detail(seq="000003", ref1="NOBODYKNOWSTHAT00000"))
    send(malee, file)
    again = send(malee, file)
    statement = Statement.objects.get()
    assert again.redirect_chain == [(f"{LISTED}{statement.id}/change/", 302)]
    assert "This file is being imported already." in again.content.decode()
    import_jobs.run_due()
    assert "2 imported before" in upload(malee, file).content.decode()
    assert (Statement.objects.count(), StatementLine.objects.count()) == (2, 2)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_same_file_sent_twice_at_once_is_imported_once(shop: Shop, malee: Client) -> None:
    file, clients = bot_file(detail()), [malee, staff("import_statement", name="somsri")]
    run_concurrently(*(partial(send, each, file) for each in clients))
    assert (Statement.objects.count(), StatementImport.objects.count()) == (1, 1)
    assert StatementPart.objects.count() == 1


def test_files_are_imported_one_after_another(shop: Shop, malee: Client) -> None:
    send(malee, bot_file(detail()))
    send(malee, bot_file(detail(ref1="NOBODYKNOWSTHAT00000")))
    assert (import_jobs.run_due(), import_jobs.run_due(), import_jobs.run_due()) == (1, 1, 0)
    assert StatementLine.objects.count() == 2


def test_too_many_waiting_imports_are_refused(
    shop: Shop, malee: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_jobs, "MAX_OPEN", 1)
    send(malee, bot_file(detail()))
    refused = send(malee, bot_file(detail(ref1="NOBODYKNOWSTHAT00000")))
    assert "Too many imports wait." in refused.content.decode()
    assert Statement.objects.count() == 1


def test_file_is_stored_sealed_until_it_is_imported(shop: Shop, malee: Client) -> None:
    send(malee, bot_file(detail()) + b"\r\n" * import_jobs.PART_BYTES)
    parts = StatementPart.objects.order_by("number")
    assert len(parts) == 3
    assert all(vault.can_open(part.content_sealed) for part in parts)
    import_jobs.run_due()
    assert (StatementPart.objects.count(), StatementLine.objects.count()) == (0, 1)


@pytest.mark.logs_errors
def test_import_whose_file_cannot_be_opened_fails(shop: Shop, malee: Client) -> None:
    send(malee, bot_file(detail()))
    StatementPart.objects.update(content_sealed="as if its key were lost")
    assert import_jobs.run_due() == 1
    assert StatementImport.objects.get().state == JobState.FAILED
    assert (StatementPart.objects.count(), StatementLine.objects.count()) == (0, 0)
    assert "it failed, import the file again" in malee.get(LISTED).content.decode()
    assert "1 new" in upload(malee, bot_file(detail())).content.decode()


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
    assert "1 new" in shown.content.decode()


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
        staff = asgi.WsgiAdapter(lambda environ, start: [], threads=1, find_uploader=lambda environ: "7")
        await staff.read_body(reported, receive, ExitStack())

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
