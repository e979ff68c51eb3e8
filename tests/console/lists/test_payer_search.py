"""The one search finds payers by name and by the end of their account, for staff who may. It is recorded."""

import pytest
from django.contrib.admin.utils import quote
from django.test import Client

from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from core import clock
from payments.models import Payment
from reconciliation.exceptions import payer_names
from reconciliation.matching import intake
from reconciliation.models import BankTransaction
from reconciliation.slips import checking
from tests.conftest import SandboxBankClient, Shop
from tests.console.lists.query_plans import unbounded
from tests.reconciliation.builders import parse, staff_client
from tests.withdrawals.builders import fund, withdrawn

pytestmark = pytest.mark.slow

MAY_SEE = ("view_banktransaction", "view_payment", "view_personal_data")


@pytest.fixture
def clerk(db: None) -> Client:
    return staff_client("malee", *MAY_SEE)


def pay(shop: Shop, bank: SandboxBankClient, name: str) -> BankTransaction:
    code = shop.qr_code()
    bank.notify(code, payer_name=name)
    return BankTransaction.objects.get(payment_id=code["payment_id"])


def is_found(client: Client, bank_transaction: BankTransaction, text: str) -> bool:
    answer = client.get("/admin/search/", {"q": text})
    assert answer.status_code in (200, 302)
    page = f"/admin/reconciliation/banktransaction/{quote(bank_transaction.id)}/change/"
    return answer.headers.get("Location") == page or page in answer.content.decode()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Somchai Jaidee", "Somchai Jaidee"),
        ("SOMCHAI JAIDEE", "somchai j"),
        ("Mr. Somchai Jaidee", " somchai   jaidee "),
        ("นาย สมชาย ใจดี", "สมชาย"),
        ("นางสาวสมหญิง ใจดี", "สมหญิง ใจดี"),
        ("น.ส. สมหญิง ใจดี", "สมหญิง"),
        ("นาย สมชาย ใจดี", "นาย สมชาย"),
        ("สมชาย ใจดี", "นายสมชาย"),
        ("น.ส.สมหญิง ใจดี", "นางสาว สมหญิง"),
        ("MISS SOMYING JAIDEE", "น.ส. somying"),
        ("mr.somchai jaidee", "Mr Somchai"),
        ("น\u0e49\u0e33ฝน ใจดี", "น\u0e49\u0e4d\u0e32ฝน"),
        ("น\u0e4d\u0e49\u0e32ฝน ใจดี", "น\u0e49\u0e33ฝน"),
        ("สม\u200bชาย \ufeff ใจดี", "สมชาย ใจ"),
        ("สมชาย ใจดี", "\ufeffสม\u200bชาย\xa0 ใจดี"),
        ("JEAN\u2013LUC ROY", "jean-luc"),
        ("Jean-Luc Roy", "jean\u2011luc"),
        ("Mr. Somchai Jaidee", "JAIDEE"),
        ("Somchai Jaidee", "jaid"),
        ("นาย สมชาย ใจดี", "ใจดี"),
        ("นาย สมชาย ณ อยุธยา", "ณ อยุธยา"),
        ("นาย สมชาย ณ อยุธยา", "อยุธ"),
    ],
)
def test_payer_is_found_by_the_beginning_of_the_name_or_the_family_name(
    shop: Shop, bank: SandboxBankClient, clerk: Client, name: str, text: str
) -> None:
    bank_transaction, other = pay(shop, bank, name), pay(shop, bank, "Anong Suk")
    assert is_found(clerk, bank_transaction, text)
    assert not is_found(clerk, other, text)


@pytest.mark.parametrize("text", ["So", "haidee", "Somchai%", "%", "_omchai", "Somchai1", "\0omchai"])
def test_what_is_no_beginning_of_a_name_finds_nobody(
    shop: Shop, bank: SandboxBankClient, clerk: Client, text: str
) -> None:
    assert not is_found(clerk, pay(shop, bank, "Somchai Jaidee"), text)


def test_staff_without_the_permission_find_nobody_by_name(shop: Shop, bank: SandboxBankClient) -> None:
    bank_transaction = pay(shop, bank, "Somchai Jaidee")
    client = staff_client("onlooker", "view_banktransaction", "view_payment")
    for path in ("/admin/search/", "/admin/reconciliation/banktransaction/"):
        answer = client.get(path, {"q": "Somchai Jaidee"})
        assert bank_transaction.id not in answer.content.decode()
    assert not AuditRecord.objects.filter(act=Act.SEARCHED).exists()


def test_search_that_finds_names_is_recorded(shop: Shop, bank: SandboxBankClient, clerk: Client) -> None:
    pay(shop, bank, "Somchai Jaidee")
    clerk.get("/admin/search/", {"q": "somchai jai"})
    found = AuditRecord.objects.get(act=Act.SEARCHED)
    assert (found.actor, found.object_type) == ("staff:malee", "payments.payment")
    assert found.after == {"name": "s*** j***", "rows": 1}
    assert "somchai" not in str(AuditRecord.objects.values_list("after", "before", "reason"))


def test_search_that_finds_no_name_is_not_recorded(
    shop: Shop, bank: SandboxBankClient, clerk: Client
) -> None:
    bank_transaction = pay(shop, bank, "Somchai Jaidee")
    for text in ("Wichai", bank_transaction.id, "1500.00"):
        clerk.get("/admin/search/", {"q": text})
    assert not AuditRecord.objects.filter(act=Act.SEARCHED).exists()


def test_slip_reference_finds_its_bank_transaction(
    shop: Shop, bank: SandboxBankClient, clerk: Client
) -> None:
    code = shop.qr_code()
    bank.notify(code, slip_reference="SLIP20261125XYZ")
    bank_transaction = BankTransaction.objects.get(payment_id=code["payment_id"])
    assert is_found(clerk, bank_transaction, "SLIP20261125XYZ")


def test_money_that_is_not_matched_is_found_by_name_and_slip(
    shop: Shop, bank: SandboxBankClient, clerk: Client
) -> None:
    reported = bank.notification(
        shop.qr_code(), payer_name="Somchai Jaidee", slip_reference="SLIP20261125XYZ", payer_bank_code="014"
    )
    bank_transaction = intake.receive(
        bank="sandbox", body=b"{}", notification=parse(reported), now=clock.now()
    )
    assert list(BankTransaction.objects.not_matched()) == [bank_transaction]
    assert is_found(clerk, bank_transaction, "somchai")
    assert is_found(clerk, bank_transaction, "jaidee")
    assert is_found(clerk, bank_transaction, "SLIP20261125XYZ")
    assert checking.find_transactions("014", "SLIP20261125XYZ").get() == bank_transaction


def test_names_are_found_by_an_index(db: None) -> None:
    small, names = frozenset({"banktxn_not_matched"}), ["somchai"]
    assert unbounded(payer_names.FIND, small=small, params=[names, 10, names, 10, names, names]) == []


PAYER = {"payer_name": "Somchai Jaidee", "payer_account": "4051239876"}


@pytest.mark.parametrize("text", ["9876", "x-9876", "**** 9876", "XXX-X-X9876"])
def test_last_digits_of_an_account_find_the_payment_and_are_recorded(
    shop: Shop, bank: SandboxBankClient, clerk: Client, text: str
) -> None:
    code = shop.qr_code()
    bank.notify(code, **PAYER)
    bank.notify(shop.qr_code(), payer_account="4051230000")
    page = clerk.get("/admin/payments/payment/", {"q": text})
    assert [row.pk for row in page.context["cl"].result_list] == [code["payment_id"]]
    found = AuditRecord.objects.get(act=Act.SEARCHED)
    assert (found.actor, found.object_type) == ("staff:malee", "payments.payment")
    assert found.after == {"digits": "xxxx", "rows": 1}


def test_last_digits_of_cards_and_of_withdrawals_are_found(shop: Shop, bank: SandboxBankClient) -> None:
    client = staff_client("malee", *MAY_SEE, "view_withdrawal", "view_payoutaccount")
    Payment.objects.filter(pk=(card := shop.qr_code()["payment_id"])).update(card_last4="4242")
    fund(shop, bank)
    withdrawal = withdrawn(shop)
    for text, key in (("4242", card), (withdrawal["bank_account"][-4:], withdrawal["withdrawal_id"])):
        assert client.get("/admin/search/", {"q": text}).headers["Location"].endswith(f"{quote(key)}/change/")


def test_nobody_without_the_permission_finds_the_end_of_an_account(
    shop: Shop, bank: SandboxBankClient
) -> None:
    client = staff_client("onlooker", "view_banktransaction", "view_payment")
    code = shop.qr_code()
    bank.notify(code, **PAYER)
    for path in ("/admin/search/", "/admin/payments/payment/", "/admin/reconciliation/banktransaction/"):
        page = client.get(path, {"q": "9876"}).content.decode()
        assert code["payment_id"] not in page, path
        assert "last four digits" not in page or path == "/admin/search/", path
    assert not AuditRecord.objects.filter(act=Act.SEARCHED).exists()


def test_exceptions_are_found_by_the_name_of_the_payer(
    shop: Shop, bank: SandboxBankClient, clerk: Client
) -> None:
    bank.notify(shop.qr_code(), satang=1, payer_name="Somchai Jaidee")
    page = clerk.get("/admin/reconciliation/reconciliationexception/", {"q": "jaidee"})
    assert len(page.context["cl"].result_list) == 1
