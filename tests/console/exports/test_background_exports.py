"""Files that a worker writes: what the page says, killed workers, whose file it is."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db.models.functions import Now
from django.test import Client

from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from console.exports import jobs
from console.models import Export, ExportFailure, ExportPart
from console.people import roles
from core import clock
from core.console.admin_exports import PERMISSION
from core.work.background_jobs import Abandoned, JobState
from payments.models import Payment
from tests.conftest import SandboxBankClient, Shop
from tests.console.exports.exported import ASKED, PAGE, ask, content, rows_of, sheet_of
from tests.reconciliation.builders import Seller, staff_client

pytestmark = pytest.mark.slow


@pytest.fixture
def pending(shop: Shop) -> list[str]:
    """Ids of pending payments, the newest first."""
    found = [shop.qr_code(amount=100 + number)["payment_id"] for number in range(5)]
    return sorted(found, reverse=True)


def table(client: Client, export: Export) -> list[dict[str, str]]:
    return rows_of(content(client, export))


def end_lease() -> None:
    """As if the worker was killed a while ago."""
    Export.objects.update(lease_until=Now() - timedelta(seconds=1))


def claimed() -> Export:
    """An export whose worker was killed after it began."""
    export: Export | None = jobs.QUEUE.claim(rows=0)
    assert export is not None
    return export


def test_page_says_what_an_export_waits_for_and_has_its_file(
    admin_client: Client, pending: list[str]
) -> None:
    export = ask(admin_client, query="status=pending")
    page = admin_client.get(PAGE).content.decode()
    assert "A worker begins in a moment." in page
    assert 'http-equiv="refresh" content="1"' in page
    assert jobs.run_due() == 1
    assert f'href="{PAGE}{export.pk}/"' in admin_client.get(PAGE).content.decode()
    assert [row["Id"] for row in table(admin_client, export)] == pending
    export.refresh_from_db()
    assert (export.state, export.rows, export.total) == (JobState.DONE, 5, 5)
    record = AuditRecord.objects.get(act=Act.EXPORTED)
    assert (record.actor, record.after["rows"]) == ("staff:admin", 5)


def test_download_begins_by_itself_once(admin_client: Client, pending: list[str]) -> None:
    export = ask(admin_client)
    begins = f'content="0; url={PAGE}{export.pk}/"'
    assert begins not in admin_client.get(PAGE).content.decode()
    jobs.run_due()
    assert begins in admin_client.get(PAGE).content.decode()
    assert begins not in admin_client.get(PAGE).content.decode()


def test_page_shows_the_progress(admin_client: Client, pending: list[str]) -> None:
    ask(admin_client)
    export = claimed()
    jobs.QUEUE.renew(export, total=1000, rows=250)
    page = admin_client.get(PAGE).content.decode()
    assert "250 / 1,000" in page
    assert '<progress max="1000" value="250"' in page
    assert 'http-equiv="refresh"' in page


def test_workbook_is_written_in_the_background(admin_client: Client, pending: list[str]) -> None:
    export = ask(admin_client, file_type="xlsx")
    jobs.run_due()
    assert pending[0] in sheet_of(content(admin_client, export))


def test_file_of_many_parts_is_whole(
    admin_client: Client, pending: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "PART_BYTES", 64)
    export = ask(admin_client)
    jobs.run_due()
    assert export.parts.count() > 2
    assert [row["Id"] for row in table(admin_client, export)] == pending


def test_export_of_a_killed_worker_begins_again(admin_client: Client, pending: list[str]) -> None:
    export = ask(admin_client)
    claimed()
    assert jobs.run_due() == 0, "another worker may still have it"
    end_lease()
    assert admin_client.get(f"{PAGE}{export.pk}/").status_code == 404
    assert jobs.run_due() == 1
    assert len(table(admin_client, export)) == 5


def test_export_that_kills_its_workers_fails(admin_client: Client, pending: list[str]) -> None:
    export = ask(admin_client)
    for _ in range(jobs.QUEUE.max_attempts):
        claimed()
        end_lease()
    assert jobs.run_due() == 0
    export.refresh_from_db()
    assert export.state == JobState.FAILED
    assert "Use narrower filters" in admin_client.get(PAGE).content.decode()
    ask(admin_client)


def test_worker_that_lost_its_lease_stores_nothing(admin_client: Client, pending: list[str]) -> None:
    export = ask(admin_client)
    slow = claimed()
    end_lease()
    claimed()
    with pytest.raises(Abandoned):
        jobs._write(slow)
    assert not ExportPart.objects.exists()
    export.refresh_from_db()
    assert export.state == JobState.RUNNING


def test_one_person_has_one_open_export(admin_client: Client, pending: list[str]) -> None:
    ask(admin_client)
    ask(admin_client)
    assert Export.objects.count() == 1


def test_two_exports_run_at_once(admin_client: Client, pending: list[str]) -> None:
    """A small file does not wait for a large one."""
    second, third = (staff_client(name, "view_payment", "export_lists") for name in ("second", "third"))
    for client in (admin_client, second, third):
        ask(client)
    claimed()
    claimed()
    assert jobs.run_due() == 0
    assert "It waits for the files of others: 2." in third.get(PAGE).content.decode()
    end_lease()
    assert jobs.run_due() == 3


def test_export_of_another_person_is_not_found(admin_client: Client, pending: list[str]) -> None:
    export = ask(admin_client)
    jobs.run_due()
    other = staff_client("other", "view_payment", "export_lists")
    assert other.get(f"{PAGE}{export.pk}/").status_code == 404
    assert "Download" not in other.get(PAGE).content.decode()


def test_exports_need_the_permission(pending: list[str]) -> None:
    assert staff_client("viewer", "view_payment").get(PAGE).status_code == 403
    assert staff_client("writer", "view_payment").post(PAGE, ASKED).status_code == 403
    assert staff_client("blind", "export_lists").post(PAGE, ASKED).status_code == 403
    assert not Export.objects.exists()


@pytest.mark.parametrize("lost", ["view_payment", "export_lists"])
def test_person_who_lost_the_permission_gets_no_file(pending: list[str], lost: str) -> None:
    client = staff_client("leaver", "view_payment", "export_lists")
    export = ask(client)
    user = User.objects.get(username="leaver")
    user.user_permissions.remove(user.user_permissions.get(codename=lost))
    jobs.run_due()
    export.refresh_from_db()
    assert export.state == JobState.FAILED
    assert client.get(f"{PAGE}{export.pk}/").status_code == (403 if lost == "export_lists" else 404)


def test_file_with_personal_data_needs_the_permission_at_the_download(
    shop: Shop, bank: SandboxBankClient, caplog: pytest.LogCaptureFixture
) -> None:
    Seller(shop, bank).paid()
    client = staff_client("leaver", "view_payment", "export_lists", "view_personal_data")
    export = ask(client)
    jobs.run_due()
    assert table(client, export)[0]["Payer name"] == "Somchai Jaidee"
    seen = [each for each in caplog.messages if "personal_data_viewed" in each and "payment:export" in each]
    assert len(seen) == 2  # written, and downloaded
    user = User.objects.get(username="leaver")
    user.user_permissions.remove(user.user_permissions.get(codename="view_personal_data"))
    assert client.get(f"{PAGE}{export.pk}/").status_code == 403
    page = client.get(PAGE).content.decode()
    assert f"{PAGE}{export.pk}/" not in page
    assert "names and accounts of customers, which you may no longer see" in page


@pytest.mark.parametrize("role", roles.Role)
def test_link_is_shown_to_whoever_may_fetch_the_file(
    shop: Shop, bank: SandboxBankClient, admin_client: Client, declared_roles: None, role: roles.Role
) -> None:
    """To others the page says why."""
    Seller(shop, bank).paid()
    for each in EXPORTED:
        ask(admin_client, list=each)
        jobs.run_due()
    admin = User.objects.get(username="admin")
    admin.groups.set(Group.objects.filter(name=role))
    User.objects.filter(pk=admin.pk).update(is_superuser=False)
    if PERMISSION not in roles.permissions_of(role):
        assert admin_client.get(PAGE).status_code == 403
        return
    rows = re.findall("<tr>.*?</tr>", admin_client.get(PAGE).content.decode(), re.DOTALL)[1:]
    exports = list(Export.objects.order_by("-pk"))
    assert len(rows) == len(exports) == len(EXPORTED)
    for row, export in zip(rows, exports, strict=True):
        may_fetch = admin_client.get(f"{PAGE}{export.pk}/").status_code == 200
        assert (f"{PAGE}{export.pk}/" in row, "you may no longer see" in row.lower()) == (
            may_fetch,
            not may_fetch,
        )


# One that each role sees, one that only admins see.
EXPORTED = ("payments.payment", "operations.heartbeat")


def test_file_without_personal_data_is_no_view_of_it(
    pending: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    client = staff_client("viewer", "view_payment", "export_lists")
    export = ask(client)
    jobs.run_due()
    assert len(table(client, export)) == len(pending)
    assert "personal_data_viewed" not in caplog.text


@pytest.mark.parametrize(
    "changes", [{"list": "auth.user"}, {"list": "x"}, {"file_type": "pdf"}, {"list": "\0"}]
)
def test_unknown_list_or_file_type_is_not_found(admin_client: Client, db: None, changes: Any) -> None:
    assert admin_client.post(PAGE, ASKED | changes).status_code == 404


@pytest.mark.parametrize(
    "query",
    [
        "amount__in=99999999999999999999999&payer_matches__exact=%00",
        "client_name__startswith=M",
        "payer_name__startswith=M",
        "qr_code__payment__client_name=M",
    ],
)
def test_filter_that_the_list_does_not_have_fails_the_export(
    admin_client: Client, pending: list[str], query: str
) -> None:
    """Staff who may not see a name cannot guess it letter by letter."""
    export = ask(admin_client, query=query)
    jobs.run_due()
    export.refresh_from_db()
    assert (export.state, export.failure) == (JobState.FAILED, ExportFailure.INVALID)
    assert "The filters are not valid." in admin_client.get(PAGE).content.decode()


def test_file_that_is_too_large_fails(
    admin_client: Client, pending: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MAX_FILE_BYTES", 10)
    export = ask(admin_client)
    jobs.run_due()
    export.refresh_from_db()
    assert (export.state, export.parts.count()) == (JobState.FAILED, 0)
    assert "The file would be too large." in admin_client.get(PAGE).content.decode()


def test_old_files_are_deleted(admin_client: Client, pending: list[str]) -> None:
    ask(admin_client)
    jobs.run_due()
    now = clock.now()
    jobs.delete_old(now + jobs.KEPT - timedelta(minutes=1))
    assert ExportPart.objects.exists()
    jobs.delete_old(now + jobs.KEPT + timedelta(minutes=1))
    assert not Export.objects.exists()
    assert not ExportPart.objects.exists()
    assert Payment.objects.count() == 5


def test_headers_are_in_the_language_of_the_person_who_asked(
    admin_client: Client, pending: list[str]
) -> None:
    export = ask(admin_client, language="th", query="status=pending")
    jobs.run_due()
    rows = table(admin_client, export)
    assert "สร้างเมื่อ (กรุงเทพฯ)" in rows[0]
    assert rows[0]["สถานะ"] == "pending", "values are those of the API"
    record = AuditRecord.objects.get(act=Act.EXPORTED, after__filter="status=pending")
    assert str(record.after).isascii()
