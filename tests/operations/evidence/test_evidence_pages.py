"""*Evidence* in the console and in shops: who gets it, and what they may see in it."""

import gzip
import io
import json
from datetime import datetime

import pytest
from pypdf import PdfReader
from pytest_django import Settings
from thaiqr.cli import evidence

from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from console.exports import jobs
from console.models import Export
from console.people.roles import ShopRole
from tests.conftest import SandboxBankClient, Shop
from tests.operations.evidence.builders import KEY, close_day, pay, read
from tests.reconciliation.builders import staff_client
from tests.shop.people import person_of

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
SEES_PAYMENTS = ("view_payment", "view_evidence")
PAGE = "/admin/payments/payment/{}/evidence/{}/"


@pytest.fixture(autouse=True)
def key(settings: Settings) -> None:
    settings.CLOSE_SIGNING_KEY = KEY


@pytest.fixture
def paid(shop: Shop, bank: SandboxBankClient, noon: datetime) -> str:
    payment_id = pay(shop, bank, noon)
    close_day(noon)
    return payment_id


def page(payment_id: str, format: str = "json") -> str:
    return PAGE.format(payment_id.replace("_", "_5F"), format)


def texts(file: bytes) -> set[str]:
    [payment] = evidence.verify(file).payments
    return set(payment.opened.values())


def test_staff_who_may_not_see_personal_data_get_true_evidence_with_masks(paid: str) -> None:
    seeing = staff_client("somsri", *SEES_PAYMENTS, "view_personal_data")
    masked = staff_client("prasit", *SEES_PAYMENTS)
    assert {"Somchai Jaidee", "1234567890", "Malee Srisuk"} < texts(seeing.get(page(paid)).content)
    file = masked.get(page(paid)).content
    assert texts(file) == {"S*** J***", "xxxxxxxxxx", "M*** S***"}
    assert b"Somchai" not in file
    records = AuditRecord.objects.filter(act=Act.EXPORTED, object_id=paid)
    assert [each.actor for each in records.order_by("pk")] == ["staff:somsri", "staff:prasit"]


def test_staff_without_the_permission_get_no_evidence(paid: str) -> None:
    clerk = staff_client("somsri", "view_payment")
    assert clerk.get(page(paid)).status_code == 403
    shown = clerk.get(page(paid).replace("evidence/json", "change")).content
    assert b"/evidence/" not in shown
    assert staff_client("prasit", *SEES_PAYMENTS).get(page("pay_unknown")).status_code == 404


def test_evidence_of_an_open_day_says_when_it_comes(
    shop: Shop, bank: SandboxBankClient, noon: datetime
) -> None:
    payment_id = pay(shop, bank, noon)
    answer = staff_client("somsri", *SEES_PAYMENTS).get(page(payment_id), follow=True)
    assert "after the nightly close" in answer.content.decode()


def test_pdf_in_thai_shows_order_message_and_proof(shop: Shop, paid: str) -> None:
    answer = read(shop, paid, format="pdf")
    assert answer["Content-Type"] == "application/pdf"
    pages = PdfReader(io.BytesIO(answer.content)).pages
    text = "".join(each.extract_text().replace("\n", "") for each in pages)
    seal = json.loads(read(shop, paid).json()["seals"][0]["body"])
    for part in (paid, "order-7", "1,500.00 THB", "Somchai Jaidee", "transaction_id", seal["root"]):
        assert part in text
    assert "หลักฐาน" in text
    assert answer.content == read(shop, paid, format="pdf").content


@pytest.mark.parametrize(
    ("role", "sees"),
    [
        (ShopRole.OWNER, {"Somchai Jaidee"}),
        (ShopRole.ACCOUNTANT, {"S*** J***"}),
        (ShopRole.CASHIER, None),
        (ShopRole.DEVELOPER, None),
    ],
)
def test_people_of_a_shop_get_evidence_of_their_payments(
    shop: Shop, other_shop: Shop, paid: str, role: ShopRole, sees: set[str] | None
) -> None:
    for each, is_own in ((shop, True), (other_shop, False)):
        answer = person_of(each, role).get(page(paid).replace("/admin/", "/shop/"))
        if sees is None:
            assert answer.status_code == 403
        elif is_own:
            assert sees <= texts(answer.content)
            assert ("Somchai Jaidee" in texts(answer.content)) == (role == ShopRole.OWNER)
        else:
            assert answer.status_code in (302, 404)


def test_people_of_a_shop_get_one_file_of_their_list(
    shop: Shop, other_shop: Shop, bank: SandboxBankClient, noon: datetime, paid: str
) -> None:
    asked = {"list": "payments.evidence", "query": "", "file_type": "json"}
    owner, cashier = person_of(shop), person_of(shop, ShopRole.CASHIER)
    assert {"Somchai Jaidee"} < texts(owner.post("/shop/exports/", asked).content)
    assert cashier.post("/shop/exports/", asked).status_code == 403
    assert owner.post("/shop/exports/", asked | {"file_type": "csv"}).status_code == 404
    pay(other_shop, bank, noon)
    assert person_of(other_shop).post("/shop/exports/", asked).status_code == 302


def test_list_becomes_one_file_of_evidence(
    shop: Shop, other_shop: Shop, bank: SandboxBankClient, noon: datetime
) -> None:
    wanted = [pay(shop, bank, noon, reference=f"order-{number}") for number in range(3)]
    pay(other_shop, bank, noon)
    shop.qr_code()
    close_day(noon)
    clerk = staff_client("somsri", *SEES_PAYMENTS, "export_lists")
    asked = {"list": "payments.evidence", "query": f"merchant={shop.merchant.pk}", "file_type": "json"}
    assert clerk.post("/admin/exports/", asked).status_code == 302
    assert jobs.run_due() == 1
    file = clerk.get(f"/admin/exports/{Export.objects.get().pk}/").content
    found = evidence.verify(gzip.decompress(file))
    assert {each.payment_id for each in found.payments} == set(wanted)
