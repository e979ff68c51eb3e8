"""Lists of the console as files: which rows and columns, who may, and what spreadsheets do with the cells."""

import csv
import io
from decimal import Decimal
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from audit_trail.pages import ReadOnlyAdmin
from console.exports import jobs
from console.people import roles
from console.people.roles import Role
from core.console import spreadsheets
from payments.models import Payment
from tests.conftest import SandboxBankClient, Shop
from tests.console.exports.exported import ASKED, PAGE, rows_of, sheet_of, written
from tests.reconciliation.builders import Seller, staff_client

PAYMENTS = "/admin/payments/payment/"
FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://x")']


def exported(client: Client, **asked: Any) -> list[dict[str, str]]:
    return rows_of(written(client, **asked))


def test_export_has_whole_ids_states_amounts_in_baht_and_both_times(
    admin_client: Client, shop: Shop, bank: SandboxBankClient
) -> None:
    payment = Payment.objects.get(pk=Seller(shop, bank).paid())
    [row] = exported(admin_client)
    assert row["Id"] == payment.pk
    assert (row["Merchant"], row["Status"]) == (shop.merchant.pk, "succeeded")
    assert (row["Amount (THB)"], row["Currency"]) == (f"{payment.amount / 100:.2f}", "THB")
    utc, bangkok = row["Created at (UTC)"], row["Created at (Bangkok)"]
    assert utc == f"{payment.created_at:%Y-%m-%d %H:%M:%S}"
    assert int(bangkok[11:13]) == (int(utc[11:13]) + 7) % 24


@pytest.mark.slow
def test_export_has_exactly_the_rows_of_the_filtered_list(admin_client: Client, shop: Shop) -> None:
    for number in range(7):
        shop.qr_code(amount=100 + number, reference=f"table {number % 2}")
    for query in ("", "q=table+1", "status=pending", "status=succeeded", "q=table+0&status=pending"):
        shown = [row.pk for row in admin_client.get(f"{PAYMENTS}?{query}").context["cl"].result_list]
        assert [row["Id"] for row in exported(admin_client, query=query)] == shown


@pytest.mark.slow
def test_list_offers_the_export_of_its_rows(admin_client: Client, shop: Shop) -> None:
    shop.qr_code(amount=100)
    page = admin_client.get(f"{PAYMENTS}?status=pending&payer_matches__isnull=True&p=1").content.decode()
    assert 'name="list" value="payments.payment"' in page
    assert 'name="query" value="status=pending&amp;payer_matches__isnull=True"' in page
    assert 'name="file_type" value="csv"' in page
    assert 'name="file_type" value="xlsx"' in page


@pytest.mark.slow
def test_every_list_can_be_exported(admin_client: Client, shop: Shop, bank: SandboxBankClient) -> None:
    Seller(shop, bank).mismatch()
    for model, page in admin.site._registry.items():
        if isinstance(page, ReadOnlyAdmin):
            exported(admin_client, list=model._meta.label_lower)
            assert sheet_of(written(admin_client, list=model._meta.label_lower, file_type="xlsx"))


def test_export_continues_after_the_last_key(
    admin_client: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.exports.sources.PAGE_ROWS", 2)
    for number in range(5):
        shop.qr_code(amount=100 + number)
    found = [row["Id"] for row in exported(admin_client)]
    assert found == list(Payment.objects.order_by("-pk").values_list("pk", flat=True))
    assert len(found) == 5


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_of_a_csv_file_is_a_formula(text: str) -> None:
    file = io.BytesIO()
    spreadsheets.write(file, spreadsheets.CSV, [text], [[text]])
    table = list(csv.reader(io.StringIO(file.getvalue().decode("utf-8-sig"), newline="")))
    assert table == [[f"'{text}"], [f"'{text}"]]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_of_a_workbook_is_a_formula_or_a_link(text: str) -> None:
    file = io.BytesIO()
    spreadsheets.write(file, spreadsheets.XLSX, [text], [[text], ["http://x"]])
    sheet = sheet_of(file.getvalue())
    assert 't="inlineStr"' in sheet
    assert "<f>" not in sheet
    assert "<hyperlink" not in sheet


def test_negative_amount_stays_a_number() -> None:
    file = io.BytesIO()
    spreadsheets.write(file, spreadsheets.CSV, ["amount"], [[Decimal("-5.00")]])
    assert file.getvalue().decode("utf-8-sig") == '"amount"\r\n"-5.00"\r\n'


def test_reference_that_is_a_formula_is_exported_as_text(admin_client: Client, shop: Shop) -> None:
    shop.qr_code(amount=100, reference="=1+1")
    assert exported(admin_client)[0]["Reference"] == "'=1+1"
    assert "<f>" not in sheet_of(written(admin_client, file_type="xlsx"))


def test_thai_text_stays_readable(admin_client: Client, shop: Shop) -> None:
    shop.qr_code(amount=100, reference="โต๊ะ 5")
    assert exported(admin_client)[0]["Reference"] == "โต๊ะ 5"
    assert "โต๊ะ 5" in sheet_of(written(admin_client, file_type="xlsx"))


@pytest.mark.slow
def test_personal_data_is_masked_without_the_permission(shop: Shop, bank: SandboxBankClient) -> None:
    Seller(shop, bank).paid()
    hidden = staff_client("viewer", "view_payment", "export_lists")
    assert exported(hidden)[0]["Payer name"] == "S*** J***"
    seeing = staff_client("seer", "view_payment", "export_lists", "view_personal_data")
    assert exported(seeing)[0]["Payer name"] == "Somchai Jaidee"


def test_export_is_recorded_with_list_filter_and_rows(admin_client: Client, shop: Shop) -> None:
    shop.qr_code(amount=100)
    exported(admin_client, query="status=pending")
    record = AuditRecord.objects.get(act=Act.EXPORTED)
    assert record.actor == "staff:admin"
    assert record.object_type == "payments.payment"
    assert record.after == {
        "list": "payments.payment", "file": "csv", "rows": 1, "filter": "status=pending",
    }  # fmt: skip


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.slow
def test_only_roles_with_the_permission_export(declared_roles: None, role: Role) -> None:
    user = User.objects.create_user(f"a-{role}", is_staff=True)
    user.groups.set([Group.objects.get(name=role)])
    client = Client()
    client.force_login(user)
    may_export = "audit_trail.export_lists" in roles.permissions_of(role)
    for label in ("payments.payment", "refunds.refund", "operations.heartbeat"):
        page = client.get(reverse(f"admin:{label.replace('.', '_')}_changelist"))
        may_see = page.status_code == 200
        answer = client.post(PAGE, ASKED | {"list": label})
        assert answer.status_code == (302 if may_see and may_export else 403), label
        assert may_see is False or (f'action="{PAGE}"' in page.content.decode()) == may_export
        jobs.run_due()
    assert (AuditRecord.objects.filter(act=Act.EXPORTED).count() > 0) == may_export


@pytest.mark.slow
def test_merchants_of_unknown_references_are_found_by_one_statement(
    admin_client: Client, shop: Shop, bank: SandboxBankClient
) -> None:
    seller, counts = Seller(shop, bank), []
    for _ in range(2):
        for _ in range(3):
            seller.unmatched()
        with CaptureQueriesContext(connection) as asked:
            found = exported(admin_client, list="reconciliation.reconciliationexception", query="")
        assert {row["Merchant"] for row in found} == {shop.merchant.pk}
        counts.append(len(asked))
    assert counts[0] == counts[1]
