"""Staff import a statement in the console and see its results; others cannot upload."""

import asyncio
import html
import re
import tracemalloc
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client

from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from config.asgi import AsgiApplication, ServiceRequest
from config.upload_authorization import FINDERS
from core import clock, vault
from core.http import uploads
from core.http.responses import MAX_BODY
from core.http.uploads import UploadKind
from core.work import decoders
from core.work.background_jobs import JobState
from reconciliation.models import (
    BankTransaction,
    Statement,
    StatementImport,
    StatementLine,
    StatementPart,
    StatementUpload,
)
from reconciliation.statements import import_jobs
from tests.concurrency import run_concurrently
from tests.config.asgi_messages import scope_of
from tests.conftest import Shop, new_client
from tests.reconciliation.statements.statement_files import (
    BILLER,
    HEADER,
    bot_file,
    credit_line,
    csv_file,
    detail,
    trailer,
)
from tests.reconciliation.statements.test_xlsx import NAMES, row, workbook
from tests.staff_acts import acts_of_staff

IMPORT = "/admin/reconciliation/statement/import/"
SESSION = f"{settings.SESSION_COOKIE_NAME}=x"
LISTED = "/admin/reconciliation/statement/"
REFRESH = 'http-equiv="refresh"'
pytestmark = [pytest.mark.slow, pytest.mark.django_db]


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


def preview(client: Client, body: bytes, *, bank: str = "sandbox", name: str = "day.txt") -> Any:
    """Upload a file: the page of what was understood, or the form with the reason of a refusal."""
    return client.post(IMPORT, {"bank": bank, "file": SimpleUploadedFile(name, body)})


def begin(client: Client, shown: Any) -> Any:
    """Press the button of that page."""
    found = re.search(rf'action="({IMPORT}\w+/)"', shown.content.decode())
    return client.post(found[1], follow=True) if found else shown


def send(client: Client, body: bytes, *, bank: str = "sandbox", name: str = "day.txt") -> Any:
    return begin(client, preview(client, body, bank=bank, name=name))


def upload(client: Client, body: bytes, *, bank: str = "sandbox", name: str = "day.txt") -> Any:
    """Upload a file, let a worker import it, and return the last page as it is then."""
    shown = send(client, body, bank=bank, name=name)
    import_jobs.run_due()
    return client.get(shown.redirect_chain[-1][0]) if hasattr(shown, "redirect_chain") else shown


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


@pytest.mark.django_db(transaction=True)
def test_same_file_sent_twice_at_once_is_imported_once(shop: Shop, malee: Client) -> None:
    file, clients = bot_file(detail()), [malee, staff("import_statement", name="somsri")]
    run_concurrently(*(partial(send, each, file) for each in clients))
    assert (Statement.objects.count(), StatementImport.objects.count()) == (1, 1)
    assert StatementPart.objects.filter(statement_id=Statement.objects.get().pk).count() == 1


def test_files_are_imported_one_after_another(shop: Shop, malee: Client) -> None:
    send(malee, bot_file(detail()))
    send(malee, bot_file(detail(ref1="NOBODYKNOWSTHAT00000")))
    assert (import_jobs.run_due(), import_jobs.run_due(), import_jobs.run_due()) == (1, 1, 0)
    assert StatementLine.objects.count() == 2


def test_too_many_waiting_imports_are_refused(
    shop: Shop, malee: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_jobs, "MAX_OPEN", 1)
    second = preview(staff("import_statement", name="somsri"), bot_file(detail()))
    send(malee, bot_file(detail()))
    for refused in (preview(malee, bot_file(detail(ref1="NOBODYKNOWSTHAT00000"))), begin(malee, second)):
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


SESSION_OF_32 = f"a=b; {settings.SESSION_COOKIE_NAME}={'x' * 32}"


def arriving(
    size: int, method: str = "POST", path: str = IMPORT, cookie: str = SESSION_OF_32
) -> ServiceRequest:
    """The request after a body of this size."""
    left = [size]

    async def receive() -> dict[str, Any]:
        chunk = min(left[0], 65_536)
        left[0] -= chunk
        return {"type": "http.request", "body": b"x" * chunk, "more_body": left[0] > 0}

    request = ServiceRequest(scope_of(method, path, cookie=cookie))

    async def take() -> None:
        staff = AsgiApplication(
            lambda request: HttpResponse(), threads=1, finders=FINDERS | {UploadKind.STAFF: lambda meta: "7"}
        )
        await staff.read_body(request, receive, ExitStack())

    asyncio.run(take())
    return request


def taken(request: ServiceRequest) -> tuple[bool, str, int]:
    """Whether the body was too large, the length that is reported, and the bytes that are there."""
    with request.body_file as body:
        return uploads.TOO_LARGE in request.META, request.META["CONTENT_LENGTH"], len(body.read())


def test_web_server_writes_an_upload_to_disk() -> None:
    tracemalloc.start()
    try:
        request = arriving(30_000_000)
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()
    assert taken(request) == (False, "30000000", 30_000_000)


@pytest.mark.parametrize("other", [{"cookie": "a=b"}, {"path": "/admin/login/"}, {"method": "GET"}])
def test_large_body_outside_uploads_is_not_read_by_the_web_server(other: dict[str, str]) -> None:
    assert taken(arriving(MAX_BODY + 1, **other)) == (True, "0", 0)


def test_upload_has_a_size_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MAX_FILE", 100_000)
    assert taken(arriving(100_000 + MAX_BODY + 1)) == (True, "0", 0)


CSV = csv_file(
    f'7/11/2569,9:05:00,{BILLER},REF1,,,"1,500.5",CR,สมชาย ใจดี,4',
    f"8/11/2569,9:05:00,{BILLER},REF2,,,2,DR,สมชาย ใจดี,004",
    f"9/11/2569,O'Hara Jai,{BILLER},REF3,,,x,CR,,",
    header=HEADER.replace("date", "วันที่").replace("reference1", "Ref. 1") + ",สาขา",
)


def texts(answer: Any) -> str:
    return html.unescape(re.sub(r"\s*<[^>]+>\s*", " ", answer.content.decode()))


def test_preview_shows_what_was_understood_and_imports_nothing(shop: Shop, malee: Client) -> None:
    shown = texts(preview(malee, CSV, name="พฤศจิกายน.csv"))
    for part in (
        "Nothing of พฤศจิกายน.csv is imported yet",
        "CSV, UTF-8", "in line 1", "Credit 1: 1,500.50 THB", "Debit 1: 2.00 THB",
        "2 7 November 2026, 09:05:00 Credit 1,500.50 THB REF1 099400016550100 สมชาย ใจดี, 004",
        "4 Unreadable the amount cannot be '…'",
        "Date วันที่", "Reference 1 Ref. 1", "Ignored สาขา",
    ):  # fmt: skip
        assert re.sub(r"\s+", " ", part) in re.sub(r"\s+", " ", shown)
    assert "O'Hara" not in shown
    import_jobs.run_due()
    for model in (Statement, StatementImport, StatementLine, BankTransaction):
        assert not model._default_manager.exists()
    assert all(vault.can_open(part.content_sealed) for part in StatementPart.objects.all())


def test_preview_says_how_many_lines_were_imported_before(shop: Shop, malee: Client) -> None:
    first, second = detail(ref1="NOBODYKNOWSTHAT00000"), detail(ref1="NOBODYKNOWSTHAT00001")

    def shown(*lines: bytes) -> str:
        return " ".join(texts(preview(malee, bot_file(*lines))).split())

    unknown, known = "Exceptions: unknown reference 1: 1,500.00 THB", "Imported before: nothing changes 1:"
    assert unknown in shown(first)
    upload(malee, bot_file(first))
    assert "All lines were imported before: the import would change nothing." in shown(first)
    assert unknown in shown(first, second)
    assert known in shown(first, second)
    assert StatementLine.objects.count() == 1  # a preview stores nothing


def test_preview_names_the_payments_that_would_succeed(shop: Shop, malee: Client) -> None:
    code = shop.qr_code()
    shown = texts(preview(malee, bot_file(credit_line(code, clock.now()), detail(amount="?"))))
    for part in (
        "Payments that succeed 1: 1,500.00 THB",
        code["payment_id"],
        "Exceptions: unreadable lines 1",
    ):
        assert part in " ".join(shown.split())
    assert shop.payment(code["payment_id"])["status"] == "pending"


def test_import_is_undone_on_its_page(shop: Shop, malee: Client) -> None:
    upload(malee, bot_file(detail()))
    page = f"{LISTED}{Statement.objects.get().pk}"
    asked = texts(malee.get(f"{page}/do/undo/"))
    assert "Lines that go: 1. Unknown money that leaves suspense: 1,500.00 THB (1)." in asked
    token = re.search(r'name="token" value="([^"]+)"', malee.get(f"{page}/do/undo/").content.decode())
    assert token
    done = malee.post(f"{page}/do/undo/", {"reason": "Another shop", "token": token[1]}, follow=True)
    assert "The import is undone." in texts(done)
    assert not StatementLine.objects.exists()
    assert "Undo the import" not in texts(malee.get(f"{page}/change/"))
    assert staff(name="somsri").post(f"{page}/do/undo/").status_code == 403


def test_page_says_which_line_prevents_the_undo(shop: Shop, malee: Client) -> None:
    upload(malee, bot_file(credit_line(code := shop.qr_code(), clock.now())))
    shown = malee.get(f"{LISTED}{Statement.objects.get().pk}/do/undo/", follow=True)
    assert f"The money of line 2 was credited to payment {code['payment_id']}." in texts(shown)


def test_preview_of_problems_names_them(shop: Shop, malee: Client) -> None:
    shown = texts(preview(malee, bot_file(detail(), end=trailer())))
    assert "Cross-bank bill payment file" in shown
    assert "The trailer in line 3 states 0 credits" in shown
    assert "The file has no lines." in texts(preview(malee, bot_file()))


def test_import_page_names_the_columns(shop: Shop, malee: Client) -> None:
    shown = malee.get(IMPORT).content.decode()
    assert all(f"<code>{name}</code>" in shown for name in HEADER.split(","))
    assert "หมายเลขอ้างอิง 1" in shown


def test_seen_preview_is_recorded_with_the_id_of_the_statement(shop: Shop, malee: Client) -> None:
    shown = preview(malee, CSV)
    (viewed,) = AuditRecord.objects.filter(act=Act.VIEWED)
    begin(malee, shown)
    assert (viewed.object_type, viewed.object_id) == (
        "reconciliation.statement", Statement.objects.get().pk,
    )  # fmt: skip
    assert viewed.actor == "staff:malee"


def test_preview_hides_names_from_staff_who_may_not_see_them(shop: Shop) -> None:
    shown = texts(preview(staff("import_statement"), CSV))
    assert "สมชาย" not in shown
    assert "REF1" in shown
    assert not AuditRecord.objects.filter(act=Act.VIEWED).exists()


def test_upload_is_begun_by_its_owner_once_and_within_an_hour(shop: Shop, malee: Client) -> None:
    shown = preview(malee, CSV)
    gone = "The file is not kept any more. Upload it again."
    other = staff("import_statement", name="somsri")
    assert gone in texts(begin(other, shown))
    assert begin(other, shown).redirect_chain == [(IMPORT, 302)]
    assert begin(malee, shown).redirect_chain[-1][0].startswith(f"{LISTED}{Statement.objects.get().pk}/")
    assert gone in texts(begin(malee, shown))
    old = preview(malee, CSV)
    StatementUpload.objects.update(created_at=clock.now() - import_jobs.KEPT - timedelta(seconds=1))
    import_jobs.run_due()
    assert not StatementPart.objects.exists()
    assert gone in texts(begin(malee, old))
    assert Statement.objects.count() == 1


def test_later_upload_takes_the_place_of_the_former(shop: Shop, malee: Client) -> None:
    first = preview(malee, CSV)
    preview(staff("import_statement", name="somsri"), CSV)
    preview(malee, bot_file(detail()))
    assert StatementUpload.objects.count() == 2
    begin(malee, first)
    assert not Statement.objects.exists()


def test_begin_needs_the_permission_and_a_button(shop: Shop, malee: Client) -> None:
    address = f"{IMPORT}{preview(malee, CSV).context_data['upload'].pk}/"
    assert staff(name="somsri").post(address).status_code == 403
    assert malee.get(address).headers["Location"] == IMPORT
    assert not Statement.objects.exists()


def test_excel_file_of_the_console_is_imported(shop: Shop, malee: Client) -> None:
    shown = preview(malee, workbook(NAMES, row(), row(reference1=12)), name="day.xlsx")
    assert "Excel, Sheet1" in texts(shown)
    statement_page = begin(malee, shown).redirect_chain[-1][0]
    import_jobs.run_due()
    assert "1 new" in texts(malee.get(statement_page))
    assert "1 unreadable" in texts(malee.get(statement_page))


def test_excel_file_waits_for_a_busy_reader_until_a_deadline(
    shop: Shop, malee: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoders.WORKBOOK, "wait_seconds", 0.2)
    body = workbook(NAMES, row())
    with decoders.WORKBOOK.taken():
        refused = preview(malee, body, name="day.xlsx")
    assert "Another Excel file is being read. Try again in a minute." in texts(refused)
    assert not StatementUpload.objects.exists()
    begin(malee, preview(malee, body, name="day.xlsx"))
    with decoders.WORKBOOK.taken():
        assert import_jobs.run_due() == 0
    assert StatementImport.objects.get().state == JobState.RUNNING
    StatementImport.objects.update(lease_until=clock.now())
    assert import_jobs.run_due() == 1
    assert Statement.objects.get().stored_count == 1


@pytest.mark.django_db(transaction=True)
def test_upload_begun_twice_at_once_is_imported_once(shop: Shop, malee: Client) -> None:
    shown, again = preview(malee, CSV), Client()
    again.cookies = malee.cookies
    run_concurrently(partial(begin, malee, shown), partial(begin, again, shown))
    import_jobs.run_due()
    assert (Statement.objects.count(), StatementLine.objects.count()) == (1, 3)
