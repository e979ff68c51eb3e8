"""The evidence of a payment proves itself: one changed byte makes it false."""

import base64
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import DatabaseError, connection, transaction
from pytest_django import Settings
from thaiqr.cli import evidence
from thaiqr.cli.evidence import NotTrue

from merchants.services import issue_key
from operations.audit.daily_close import closing, signing
from operations.data_protection import erasure
from operations.models import EvidenceSeal, PaymentEvidence
from payments.models import Payment
from reconciliation.models import BankNotification, BankTransaction
from tests.conftest import SandboxBankClient, Shop
from tests.operations.evidence.builders import KEY, changed, close_day, file_of, pay, read
from tests.reconciliation.builders import staff_client
from tests.reconciliation.slips.test_slip_check import check, mini_qr, slip_id
from tests.reconciliation.statements.statement_files import bot_file, credit_line, import_file
from tests.refunds.builders import RefundShop, send_due_refunds

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
Pack = Any


@pytest.fixture(autouse=True)
def key(settings: Settings) -> None:
    settings.CLOSE_SIGNING_KEY = KEY


@pytest.fixture
def paid(shop: Shop, bank: SandboxBankClient, noon: datetime) -> str:
    """A payment among others, at the end of its day."""
    others = [pay(shop, bank, noon, reference=f"order-{number}") for number in range(4)]
    close_day(noon)
    return others[2]


def test_evidence_has_the_order_the_message_and_the_money(
    shop: Shop, bank: SandboxBankClient, noon: datetime
) -> None:
    payment_id = pay(shop, bank, noon)
    close_day(noon)
    file = file_of(shop, payment_id)
    found = evidence.verify(file, key=signing.public_key(), payment_id=payment_id)
    assert found.fingerprints == [signing.fingerprint(signing.public_key())]
    [payment] = found.payments
    assert (payment.payment_id, payment.day) == (payment_id, "2026-11-21")
    record, opened = payment.record, payment.opened
    order = record["payment"]
    assert (order["amount"], order["reference"], order["status"]) == (150_000, "order-7", "succeeded")
    assert order["code"]["qr_data"].startswith("000201")
    assert opened[order["client_name"]["sha256"]] == "Malee Srisuk"
    [message] = record["messages"]
    stored = BankNotification.objects.get()
    assert base64.b64decode(opened[message["body_base64"]["sha256"]]) == stored.body
    [money] = record["bank_transactions"]
    assert opened[money["payer_name"]["sha256"]] == "Somchai Jaidee"
    assert opened[money["payer_account"]["sha256"]] == "1234567890"
    assert sum(each["amount"] for each in record["ledger"]) == 0
    assert read(shop, payment_id).content == file
    assert shop.get(f"/Thai/v1/payments/{payment_id}/evidence").content == file


def test_refund_of_a_later_day_is_in_the_newer_evidence(
    refund_shop: RefundShop, shop: Shop, bank: SandboxBankClient, noon: datetime, served_by: Any
) -> None:
    served_by()
    payment_id = pay(shop, bank, noon)
    close_day(noon)
    later = noon + timedelta(days=1)
    with time_machine.travel(later, tick=False):
        refund_shop.refund(payment_id, amount=50_000)
        send_due_refunds(2)
    close_day(later)
    [payment] = evidence.verify(file_of(shop, payment_id)).payments
    [refund] = payment.record["refunds"]
    assert (refund["amount"], refund["status"]) == (50_000, "completed")
    assert payment.record["payment"]["amount_refunded"] == 50_000
    assert PaymentEvidence.objects.filter(payment_id=payment_id).count() == 2


def test_statement_line_and_slip_of_a_later_day_seal_the_payment_again(
    shop: Shop, bank: SandboxBankClient, noon: datetime
) -> None:
    with time_machine.travel(noon, tick=False):
        code = shop.qr_code()
        bank.notify(code)
    close_day(noon)
    line = credit_line(code, BankTransaction.objects.get().paid_at)
    for days in (1, 2):
        with time_machine.travel(noon + timedelta(days=days), tick=False):
            if days == 1:
                import_file(bot_file(line))
            else:
                clerk = staff_client("malee", "view_banktransaction", "check_slip")
                check(clerk, mini_qr(slip_id()), claimed_payment_id=code["payment_id"])
        close_day(noon + timedelta(days=days))
    [payment] = evidence.verify(file_of(shop, code["payment_id"])).payments
    [stored], [slip] = payment.record["statement_lines"], payment.record["slips"]
    assert base64.b64decode(payment.opened[stored["body_base64"]["sha256"]]) == line.rstrip(b"\r\n")
    assert (slip["is_shown_for_it"], slip["is_of_its_money"]) == (True, False)
    assert PaymentEvidence.objects.count() == 3


def test_payment_whose_day_is_open_has_no_evidence_yet(
    shop: Shop, bank: SandboxBankClient, noon: datetime
) -> None:
    payment_id = pay(shop, bank, noon)
    answer = read(shop, payment_id)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "evidence_not_ready")


def test_every_changed_byte_makes_it_false(shop: Shop, paid: str) -> None:
    file = file_of(shop, paid)
    evidence.verify(file)
    for place in range(len(file)):
        with pytest.raises(NotTrue):
            evidence.verify(file[:place] + bytes([file[place] ^ 1]) + file[place + 1 :])


def _drop(name: str) -> Callable[[Pack], Any]:
    return lambda pack: pack["payments"][0].pop(name)


def _first_opening(pack: Pack) -> Any:
    return next(iter(pack["payments"][0]["opened"].values()))


FORGERIES: dict[str, Callable[[Pack], Any]] = {
    "text": lambda pack: pack["payments"][0].update(
        text=pack["payments"][0]["text"].replace("150000", "150001")
    ),
    "number": lambda pack: pack["payments"][0].update(number=pack["payments"][0]["number"] ^ 1),
    "path": lambda pack: pack["payments"][0]["path"].reverse(),
    "path too long": lambda pack: pack["payments"][0]["path"].append("0" * 64),
    "path too short": lambda pack: pack["payments"][0]["path"].pop(),
    "no path": _drop("path"),
    "seal": lambda pack: pack["payments"][0].update(seal=1),
    "root": lambda pack: pack["seals"][0].update(body=pack["seals"][0]["body"].replace('"day"', '"Day"')),
    "signature": lambda pack: pack["seals"][0].update(signature="A" * 86 + "=="),
    "key": lambda pack: pack["seals"][0].update(public_key="A" * 43 + "="),
    "opening": lambda pack: _first_opening(pack).update(text="somebody else"),
    "salt": lambda pack: _first_opening(pack).update(salt="0" * 64),
    "another member": lambda pack: pack.update(note="true"),
    "version": lambda pack: pack.update(version=2),
    "no payments": lambda pack: pack["payments"].clear(),
    "twice": lambda pack: pack["payments"].append(pack["payments"][0]),
    "no object": lambda pack: pack.update(seals=[[]]),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_part_makes_it_false(shop: Shop, paid: str, forgery: str) -> None:
    with pytest.raises(NotTrue):
        evidence.verify(changed(file_of(shop, paid), FORGERIES[forgery]))


@pytest.mark.parametrize(
    "text", ["", "true", "[]", "{}", "[" * 100_000, '{"version": 1, "version": 1}', "\ud800"]
)
def test_text_that_is_no_evidence_is_false(text: str) -> None:
    with pytest.raises(NotTrue):
        evidence.verify(text)


def test_parts_of_another_payment_are_false(
    shop: Shop, bank: SandboxBankClient, noon: datetime, paid: str
) -> None:
    later = noon + timedelta(days=1)
    other = pay(shop, bank, later)
    close_day(later)
    own, of_other = json.loads(file_of(shop, paid)), json.loads(file_of(shop, other))
    with pytest.raises(NotTrue, match=other):
        evidence.verify(json.dumps(own), payment_id=other)
    for name in own["payments"][0].keys() - {"seal", "number"}:
        mixed = json.loads(json.dumps(own))
        mixed["payments"][0][name] = of_other["payments"][0][name]
        with pytest.raises(NotTrue):
            evidence.verify(json.dumps(mixed), payment_id=paid)
    with pytest.raises(NotTrue):
        evidence.verify(json.dumps(own | {"seals": of_other["seals"]}))


def test_evidence_of_another_key_is_false(shop: Shop, paid: str, settings: Settings) -> None:
    file, ours = file_of(shop, paid), signing.public_key()
    settings.CLOSE_SIGNING_KEY = base64.urlsafe_b64encode(b"f" * 32).decode()
    theirs = signing.public_key()
    evidence.verify(file, key=signing.fingerprint(ours))
    with pytest.raises(NotTrue, match="another key"):
        evidence.verify(file, key=theirs)


def test_signed_close_is_no_seal(shop: Shop, paid: str) -> None:
    """The same key signs both."""
    close = EvidenceSeal.objects.get().close

    def replace(pack: Pack) -> None:
        pack["seals"][0] |= {"body": close.body, "signature": close.signature}

    with pytest.raises(NotTrue, match="no seal"):
        evidence.verify(changed(file_of(shop, paid), replace))


def test_other_merchant_and_key_without_the_scope_get_nothing(
    shop: Shop, other_shop: Shop, bank: SandboxBankClient, noon: datetime, paid: str
) -> None:
    assert read(other_shop, paid).status_code == 404
    _, weak = issue_key(merchant=shop.merchant, now=noon, scopes=["payments:read"])
    answer = shop.http.get(f"/v1/payments/{paid}/evidence", headers={"Authorization": f"Bearer {weak}"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "insufficient_scope")
    assert read(shop, paid, format="docx").status_code == 400


def test_evidence_names_nobody_else_and_tells_no_volume(
    shop: Shop, other_shop: Shop, bank: SandboxBankClient, noon: datetime
) -> None:
    payment_id = pay(shop, bank, noon)
    for number in range(3):
        pay(other_shop, bank, noon, reference=f"secret-{number}")
    close_day(noon)
    file = file_of(shop, payment_id).decode()
    assert other_shop.merchant.id not in file
    assert other_shop.merchant.name not in file
    assert json.loads(json.loads(file)["seals"][0]["body"])["payments"] == 1


def test_erased_payer_stays_hidden_and_the_evidence_true(shop: Shop, paid: str) -> None:
    money = list(BankTransaction.objects.filter(payment=paid).values_list("pk", flat=True))
    erasure.erase(erasure.select(money))
    file = file_of(shop, paid)
    [payment] = evidence.verify(file, payment_id=paid).payments
    assert payment.opened == {}
    assert b"Somchai" not in file
    assert not PaymentEvidence.objects.get(payment_id=paid).seed_sealed
    assert list(closing.findings()) == []


DAMAGES = {
    "text": "UPDATE operations_paymentevidence SET text = replace(text, '150000', '150001')",
    "missing": "DELETE FROM operations_paymentevidence WHERE number = 1",
    "body": "UPDATE operations_evidenceseal SET body = replace(body, '\"version\":1', '\"version\":2')",
    "nodes": "UPDATE operations_evidenceseal SET nodes = overlay(nodes placing '\\x00' from 1)",
    "seal": "DELETE FROM operations_evidenceseal",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_audit_finds_damaged_evidence_and_the_database_refuses_it(shop: Shop, paid: str, damage: str) -> None:
    assert list(closing.findings()) == []
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(DAMAGES[damage])
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL session_replication_role = replica; {DAMAGES[damage]}")
    found = [text for _name, text in closing.findings()]
    assert found and all("evidence" in text for text in found)


@pytest.mark.parametrize("column", ["text", "number", "payment_id", "seal_id", "seed_sealed"])
def test_database_keeps_what_was_sealed(shop: Shop, paid: str, column: str) -> None:
    value = "9" if column == "number" else "'x'"
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE operations_paymentevidence SET {column} = {value}")


def test_database_adds_nothing_to_a_seal_and_makes_none_that_is_wrong(shop: Shop, paid: str) -> None:
    row, made = PaymentEvidence.objects.filter(number=0).get(), EvidenceSeal.objects.get()
    with pytest.raises(DatabaseError, match="nothing is added"), transaction.atomic():
        PaymentEvidence.objects.create(seal=made, number=9, payment_id=row.payment_id, text="{}")
    # Another count, and texts that are not there.
    for merchant in (shop.merchant.id, "mch_" + "0" * 27):
        with pytest.raises(DatabaseError, match=r"what its close says|of its payments"), transaction.atomic():
            EvidenceSeal.objects.create(
                id=f"1:{merchant}",
                close=made.close,
                body=made.body,
                signature=made.signature,
                count=made.count + 1,
                nodes=made.nodes,
            )


def test_day_is_sealed_once_with_all_its_payments(shop: Shop, paid: str) -> None:
    rows = PaymentEvidence.objects.order_by("number").values_list("number", "payment_id")
    assert [each for _, each in rows] == list(Payment.objects.order_by("pk").values_list("pk", flat=True))
    assert [number for number, _ in rows] == list(range(4))
