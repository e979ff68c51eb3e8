"""`erase` removes the names, accounts and messages of one payer. The books and the audit trail stay right."""

import io
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from approvals.models import Approval
from audit_trail import chain
from audit_trail.models import AuditRecord
from banks import TransferResult
from core import clock
from ledger.models import Entry
from operations.data_protection import erasure
from operations.data_protection.erasure import Payer
from operations.models import ErasureCursor, NightlyJob, WaitingErasure
from operations.nightly import jobs
from payments.models import Payment
from reconciliation.models import BankNotification, BankTransaction, StatementLine
from refunds.models import Refund
from request_log import bodies
from request_log.models import RequestRecord
from tests.audit import differences
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import decide
from tests.reconciliation.statements.statement_files import bot_file, credit_line, import_file
from tests.refunds.builders import RefundShop, send_due_refunds
from tests.sqlstates import CHECK_VIOLATION, NOT_ALLOWED, sqlstate
from tests.transfers.builders import Serving
from transfers.models import Transfer

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
NAME, ACCOUNT, BANK = "Malee Suksan", "5550009876", "004"
OTHER = "Anong Dee"
WHY = "request 17 of 2026"


def run_erase(payer: str, *options: str) -> str:
    output = io.StringIO()
    call_command("erase", "--payer", payer, "--by", "somsri", "--reason", WHY, *options, stdout=output)
    return output.getvalue()


@pytest.fixture
def paid(shop: Shop, bank: SandboxBankClient, served_by: Serving) -> dict[str, Any]:
    """A paid and refunded code of the payer, and a code that another customer paid."""
    code = shop.qr_code(client_name=NAME, client_bank_account=ACCOUNT, description=f"for {NAME}")
    payer = {"payer_name": NAME, "payer_bank_code": BANK, "payer_account": ACCOUNT}
    assert bank.notify(code, **payer).status_code == 200
    import_file(bot_file(credit_line(code, BankTransaction.objects.get().paid_at)))
    RefundShop(shop, bank).refund(code["payment_id"], amount=100, note=f"{NAME} called")
    served_by(sends=[TransferResult("succeeded", "b-1")])
    send_due_refunds()
    assert bank.notify(shop.qr_code(), payer_name=OTHER).status_code == 200
    return code


@pytest.fixture
def selection(paid: dict[str, Any]) -> erasure.Selection:
    return erasure.find(Payer(bank_code=BANK, account=ACCOUNT))


def personal_texts() -> list[str]:
    """What is stored about payers, decrypted."""
    payments = [
        f"{each.client_name} {each.client_bank_account} {each.payer_name} {each.payer_account} "
        f"{each.description}"
        for each in Payment.objects.all()
    ]
    bodies = [notification.body.decode() for notification in BankNotification.objects.all()]
    bank_transactions = [f"{each.payer_name} {each.payer_account}" for each in BankTransaction.objects.all()]
    lines = [line.line.decode("cp874") for line in StatementLine.objects.all()]
    orders = [f"{order.account_name} {order.account}" for order in Transfer.objects.all()]
    approvals = [f"{each.account_name} {each.account_last4}" for each in Approval.objects.all()]
    notes = [str(refund.note) for refund in Refund.objects.all()]
    return [*payments, *bodies, *bank_transactions, *lines, *orders, *approvals, *notes]


# Why a sealed column has nothing of a payer that stays.
NOT_OF_PAYERS = {
    "approvals.PayoutAccount.account_sealed": "an account of the merchant",
    "idempotency.IdempotencyKey.body_sealed": "deleted after a day",
    "merchants.BankConnection.credentials_sealed": "of the merchant",
    "operations.EncryptionKeyCheck.text_sealed": "a fixed text",
    "reconciliation.StatementPart.content_sealed": "deleted after an hour, or when the import ends",
    "refunds.ClaimLink.token_sealed": "a secret of a page",
    "sandbox.SandboxOrder.account_sealed": "no real person",
    "webhooks.Endpoint.replaced_secrets_sealed": "of the merchant",
    "webhooks.Endpoint.secret_sealed": "of the merchant",
    "withdrawals.Withdrawal.account_sealed": "an account of the merchant",
}


def test_each_sealed_column_is_erased_or_has_nothing_of_payers(selection: erasure.Selection) -> None:
    """A new column must be decided: erase it, or write the reason above."""
    sealed = {
        f"{field.model._meta.label}.{field.name}"
        for model in apps.get_models()
        for field in model._meta.concrete_fields
        if field.name.endswith("_sealed")
    }
    erased = {
        f"{found.model._meta.label}.{name}"
        for found, cleared in erasure._erasures(selection)
        for name in cleared
        if name.endswith("_sealed")
    }
    assert sealed == erased | NOT_OF_PAYERS.keys()
    assert not erased & NOT_OF_PAYERS.keys()


def test_nothing_of_an_erased_payer_is_left(paid: dict[str, Any]) -> None:
    assert any(NAME in text for text in personal_texts()) and any(
        ACCOUNT in text for text in personal_texts()
    )
    run_erase(f"kbank:{ACCOUNT[:3]}-{ACCOUNT[3:]}", "--yes")
    left = " ".join(personal_texts())
    assert NAME not in left and ACCOUNT not in left and ACCOUNT[-4:] not in left
    assert OTHER in left


def test_books_of_an_erased_payer_stay_right(paid: dict[str, Any], shop: Shop) -> None:
    before = (shop.payment(paid["payment_id"])["amount"], Entry.objects.count(), Payment.objects.count())
    run_erase(f"kbank:{NAME}", "--yes")
    chain.chain_waiting()
    assert not differences()
    assert not list(chain.Verification(None).findings())
    payment = shop.payment(paid["payment_id"])
    assert (payment["amount"], Entry.objects.count(), Payment.objects.count()) == before
    assert payment["status"] == "succeeded"
    assert shop.get(f"/v1/payments/{paid['payment_id']}/timeline").status_code == 200


def test_erase_without_yes_changes_nothing(paid: dict[str, Any]) -> None:
    before = personal_texts()
    written = run_erase(f"{BANK}:{ACCOUNT}")
    assert "payments.payment: 1 rows" in written and "Nothing was changed" in written
    assert personal_texts() == before
    assert not AuditRecord.objects.filter(act="erased").exists()


@pytest.mark.parametrize("by", ["account", "name", "transaction"])
def test_payer_is_found_by(by: str, paid: dict[str, Any]) -> None:
    bank_transaction = BankTransaction.objects.get(payer_name=NAME)
    payer = {"account": f"{BANK}:{ACCOUNT}", "name": f"{BANK}:malee  SUKSAN"}
    written = run_erase(payer.get(by, bank_transaction.bank_reference))
    assert "reconciliation.banktransaction: 1 rows" in written


@pytest.mark.parametrize(
    "payer",
    [
        "kbank:555-0-00987\u20116",
        "kbank:๕๕๕๐๐๐๙๘๗๖",
        "\ufeffkbank:\u200b5550009876",
        "kbank: Ms.Malee  Suksan",
    ],
)
def test_payer_is_found_as_people_write_the_account_or_name(payer: str, paid: dict[str, Any]) -> None:
    assert "payments.payment: 1 rows" in run_erase(payer)


def test_payer_of_an_older_row_is_found_too(paid: dict[str, Any]) -> None:
    """It was stored before names were stored in one spelling."""
    bank_transaction = BankTransaction.objects.get(payer_name=NAME)
    sql = "UPDATE reconciliation_banktransaction SET payer_name = %s WHERE id = %s"
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(sql, ["MS. Malee \u200b Suksan\ufeff", bank_transaction.id])
        cursor.execute("SET LOCAL session_replication_role = origin")
    assert erasure.find(Payer(bank_code=BANK, name=NAME)).bank_transaction_ids == [bank_transaction.id]


def test_erasure_is_recorded_without_personal_data(paid: dict[str, Any]) -> None:
    run_erase(f"{BANK}:{ACCOUNT}", "--yes")
    record = AuditRecord.objects.get(act="erased")
    assert (record.reason, record.after["requested_by"], record.after["payments.payment"]) == (
        WHY,
        "somsri",
        1,
    )
    text = f"{record.object_id} {record.before} {record.after} {record.reason}"
    assert not any(part in text for part in (NAME, ACCOUNT, ACCOUNT[-4:], "M***"))


def test_second_erasure_finds_nothing(selection: erasure.Selection) -> None:
    assert erasure.erase(selection)
    assert not erasure.count(selection)
    assert not erasure.erase(selection)


@pytest.mark.parametrize("account", [{"payer_account": ACCOUNT}, {"payer_account": ""}])
def test_repeated_notification_does_not_bring_an_erased_payer_back(
    shop: Shop, bank: SandboxBankClient, account: dict[str, str]
) -> None:
    payer = {"payer_name": NAME, "payer_bank_code": BANK, **account}
    notification = bank.notification(shop.qr_code(), **payer)
    bank.post(notification)
    run_erase(f"{BANK}:{NAME}", "--yes")
    assert bank.post(notification).status_code == 200
    assert [each.payer_name for each in BankTransaction.objects.all()] == [""]
    assert [each.payer_name for each in Payment.objects.all()] == [None]


def test_unknown_payer_is_an_error(paid: dict[str, Any]) -> None:
    with pytest.raises(CommandError, match="No bank transaction is of this payer"):
        run_erase(f"{BANK}:0000000000", "--yes")


@pytest.mark.parametrize("payer", ["999:1234567890", "kbank:", ":"])
def test_malformed_payer_is_refused(payer: str) -> None:
    with pytest.raises(CommandError, match="--payer"):
        run_erase(payer)


def test_payer_of_a_refund_under_way_is_not_erased(
    paid: dict[str, Any], shop: Shop, bank: SandboxBankClient
) -> None:
    refund_id = RefundShop(shop, bank).refund(paid["payment_id"], amount=100)["refund_id"]
    before = personal_texts()
    with pytest.raises(CommandError, match=refund_id):
        run_erase(f"{BANK}:{ACCOUNT}", "--yes")
    assert personal_texts() == before


def test_payer_of_an_open_exception_is_not_erased(
    paid: dict[str, Any], shop: Shop, bank: SandboxBankClient
) -> None:
    again = {"payer_name": NAME, "payer_bank_code": BANK, "payer_account": ACCOUNT}
    bank.notify(paid, **again)
    bank_transaction = BankTransaction.objects.get(match_result="duplicate")
    with pytest.raises(CommandError, match=bank_transaction.pk):
        run_erase(f"{BANK}:{ACCOUNT}", "--yes")


def test_bodies_of_the_request_log_are_erased(selection: erasure.Selection) -> None:
    RequestRecord.objects.create(
        id="log_1", merchant_id="mch_1", created_at=clock.now(), method="POST", route="v1/qr-codes", path="/",
        status=200, duration_ms=1, request_id="req_1", payment_id=selection.payment_ids[0],
        bodies=bodies.pack("{}", "", ""),
    )  # fmt: skip
    erasure.erase(selection)
    assert bytes(RequestRecord.objects.get(pk="log_1").bodies) == b""


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ("reconciliation_banktransaction SET payer_name = ''", NOT_ALLOWED),
        ("reconciliation_banknotification SET body_sealed = ''", NOT_ALLOWED),
        ("reconciliation_statementline SET line_sealed = ''", NOT_ALLOWED),
        ("transfers_transfer SET account_name = ''", CHECK_VIOLATION),
        ("refunds_refund SET note = NULL", CHECK_VIOLATION),
    ],
)
def test_only_an_erasure_changes_personal_data(paid: dict[str, Any], change: str, state: str) -> None:
    assert sqlstate(f"UPDATE {change}") == state
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL qr.erasing = 'on'")
    assert sqlstate(f"UPDATE {change}") is None


@pytest.mark.parametrize(
    "change",
    [
        "reconciliation_banktransaction SET amount = amount + 1",
        "reconciliation_banknotification SET received_at = now()",
        "reconciliation_statementline SET line_number = 9",
        "transfers_transfer SET amount = amount + 1",
        "refunds_refund SET amount = amount + 1",
    ],
)
def test_an_erasure_changes_nothing_else(paid: dict[str, Any], change: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL qr.erasing = 'on'")
    assert sqlstate(f"UPDATE {change}") in (NOT_ALLOWED, CHECK_VIOLATION)


def anonymise(days: int) -> int:
    """The nightly job, so many days later."""
    now = clock.now() + timedelta(days=days)
    return jobs.run(NightlyJob.ANONYMISE, now)


def test_payers_are_anonymised_after_the_days_of_the_setting(
    paid: dict[str, Any], settings: Settings
) -> None:
    settings.PERSONAL_DATA_RETENTION_DAYS = 365
    before = personal_texts()
    assert anonymise(364) == 0 and personal_texts() == before
    assert anonymise(366) == 0
    left = " ".join(personal_texts())
    assert NAME not in left and OTHER not in left and ACCOUNT not in left
    record = AuditRecord.objects.get(act="erased")
    assert record.after["payments.payment"] == 2
    assert anonymise(367) == 0 and AuditRecord.objects.filter(act="erased").count() == 1
    assert not differences()


def test_payer_of_an_open_exception_keeps_the_data_and_the_others_do_not(
    paid: dict[str, Any], bank: SandboxBankClient, settings: Settings
) -> None:
    settings.PERSONAL_DATA_RETENTION_DAYS = 365
    bank.notify(paid, payer_name="Nobody Known")
    assert anonymise(366) == 0
    assert payers() == ["Nobody Known"]
    assert anonymise(367) == 0 and payers() == ["Nobody Known"]
    decide("merge", BankTransaction.objects.exclude(payer_name="").get())
    assert anonymise(368) == 0 and payers() == []
    assert not WaitingErasure.objects.exists()


def payers() -> list[str]:
    return list(BankTransaction.objects.exclude(payer_name="").values_list("payer_name", flat=True))


def test_next_run_reads_nothing_that_a_run_before_has_erased(
    paid: dict[str, Any], shop: Shop, bank: SandboxBankClient, settings: Settings
) -> None:
    settings.PERSONAL_DATA_RETENTION_DAYS = 365
    anonymise(366)
    newest = BankTransaction.objects.order_by("pk").last()
    assert newest is not None and ErasureCursor.objects.get().last_id == newest.pk
    with CaptureQueriesContext(connection) as queries:
        anonymise(367)
    (read,) = [each["sql"] for each in queries if 'FROM "reconciliation_banktransaction"' in each["sql"]]
    assert newest.pk in read


def test_anonymisation_is_off_by_default(settings: Settings) -> None:
    assert settings.PERSONAL_DATA_RETENTION_DAYS == 0
    assert not jobs.is_enabled(NightlyJob.ANONYMISE)
