"""Lists that people of a merchant download as CSV and Excel."""

import csv
import io
from typing import Any

import pytest
from django.test import Client

from audit_trail.models import AuditRecord
from console.people.roles import ShopRole
from merchants import csv_lists
from payments.models import Payment
from tests.conftest import SandboxBankClient, Shop
from tests.console.exports.exported import sheet_of
from tests.settlements.conftest import acquirer
from tests.shop.people import FullShop, labels, list_url, person_of

__all__ = ["acquirer"]  # a fixture
pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("acquirer")]
FILES = "/shop/exports/"
LISTS = (
    *("payments.payment", "links.paymentlink", "payments.paymentexception", "refunds.refund"),
    *("withdrawals.withdrawal", "settlements.settlement", "transactions.transaction"),
)


@pytest.fixture
def own(shop: Shop, bank: SandboxBankClient) -> FullShop:
    return FullShop(shop, bank)


@pytest.fixture
def rival(other_shop: Shop, bank: SandboxBankClient) -> FullShop:
    return FullShop(other_shop, bank)


def download(client: Client, label: str = "payments.payment", file: str = "csv", query: str = "") -> Any:
    return client.post(FILES, {"list": label, "file_type": file, "query": query})


def rows(answer: Any) -> list[dict[str, str]]:
    assert answer.status_code == 200, answer.status_code
    return list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))


def test_headers_are_in_the_language_of_the_reader(own: FullShop) -> None:
    given = {"list": "payments.payment", "file_type": "csv", "query": ""}
    file = person_of(own.shop).post(FILES, given, headers={"Accept-Language": "th"})
    assert "สุทธิ (THB)" in rows(file)[0]


@pytest.mark.parametrize("role", [ShopRole.OWNER, ShopRole.MANAGER, ShopRole.ACCOUNTANT])
def test_each_list_of_money_has_the_rows_of_the_shop_only(
    own: FullShop, rival: FullShop, role: ShopRole
) -> None:
    client = person_of(own.shop, role)
    for label in LISTS:
        assert f'name="list" value="{label}"' in client.get(list_url(label)).text, label
        found = download(client, label, query=f"merchant={rival.shop.merchant.pk}")
        assert found.status_code == 404, label  # the list has no such filter
        text = download(client, label).content.decode()
        assert own.rows[label].pk in text, label
        assert rival.rows[label].pk not in text, label
        sheet = sheet_of(download(client, label, "xlsx").content)
        assert own.rows[label].pk in sheet, label
        assert rival.rows[label].pk not in sheet, label
    record = AuditRecord.objects.filter(act="exported").latest("id")
    assert (record.object_id, record.after["list"], record.after["file"]) == (
        *(own.shop.merchant.pk, "transaction", "xlsx"),
    )


def test_money_is_in_baht_and_names_are_for_those_who_may_see_them(own: FullShop) -> None:
    (paid,) = [
        row for row in rows(download(person_of(own.shop))) if row["Id"] == own.rows["payments.payment"].pk
    ]
    assert (paid["Amount (THB)"], paid["Status"], paid["Currency"]) == ("1500.00", "succeeded", "THB")
    assert paid["Payer name"] == "Somchai Jaidee"
    accountant = download(person_of(own.shop, ShopRole.ACCOUNTANT)).content.decode()
    assert "Somchai Jaidee" not in accountant
    assert "S*** J***" in accountant


@pytest.mark.parametrize("role", [ShopRole.CASHIER, ShopRole.DEVELOPER])
def test_others_get_no_file(own: FullShop, role: ShopRole) -> None:
    client = person_of(own.shop, role)
    for label in LISTS:
        assert download(client, label).status_code == 403, label
    assert not AuditRecord.objects.filter(act="exported").exists()


def test_lists_that_are_not_of_money_have_no_file(own: FullShop) -> None:
    owner = person_of(own.shop)
    for label in {*labels(), "auth.user", "x", ""} - {*LISTS}:
        assert download(owner, label).status_code == 404, label
    assert download(owner, file="exe").status_code == 404
    assert owner.get(FILES).status_code == 404
    assert FILES not in owner.get(list_url("merchants.apikey")).text


def test_cell_that_a_spreadsheet_would_run_is_a_text(shop: Shop) -> None:
    shop.qr_code(reference="=HYPERLINK(1)")
    owner = person_of(shop)
    assert rows(download(owner))[0]["Reference"] == "'=HYPERLINK(1)"
    sheet = sheet_of(download(owner, file="xlsx").content)
    assert "HYPERLINK" in sheet
    assert "<f>" not in sheet


def test_file_has_what_the_filters_find(shop: Shop) -> None:
    for reference in "AB":
        shop.qr_code(reference=reference)
    owner = person_of(shop)
    assert {row["Reference"] for row in rows(download(owner))} == {"A", "B"}
    assert [row["Reference"] for row in rows(download(owner, query="q=A"))] == ["A"]
    assert rows(download(owner, query="date=yesterday")) == []
    assert download(owner, query="payer_name__startswith=S").status_code == 404
    assert download(owner, query="q=%00").status_code == 404


def test_list_that_is_too_long_gives_no_part_of_it(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_lists, "MAX_ROWS", 1)
    shop.qr_code()
    owner = person_of(shop)
    assert len(rows(download(owner))) == 1
    shop.qr_code()
    answer = owner.post(FILES, {"list": "payments.payment", "file_type": "csv", "query": "q="}, follow=True)
    assert "at most 1 rows" in answer.text
    assert answer.redirect_chain == [("/shop/payments/payment/?q=", 302)]
    assert Payment.objects.count() == 2


def test_second_file_of_a_shop_waits_for_the_first(shop: Shop) -> None:
    shop.qr_code()
    with csv_lists.slot(shop.merchant.pk):
        answer = person_of(shop).post(FILES, {"list": "payments.payment", "file_type": "csv"}, follow=True)
    assert "Try again in a second" in answer.text
