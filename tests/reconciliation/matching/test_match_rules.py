"""Match results: which reports make a payment succeed or fail, and which ones become exceptions."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from pytest_django import Settings

from core import clock as our_clock
from merchants.models import Merchant
from payments import expiry_sweep
from payments.models import Payment
from reconciliation.matching import intake, services as matching
from reconciliation.models import BankNotification, BankTransaction
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import parse
from tests.sqlstates import CHECK_VIOLATION, sqlstate
from transactions.models import Transaction
from webhooks.models import Event


def last_match_result() -> str:
    return str(BankTransaction.objects.latest("received_at").match_result)


def test_credit_with_matching_amount_makes_payment_succeed(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code(client_name="Somchai Jaidee")
    answer = bank.notify(code)
    assert (answer.status_code, answer.json()) == (200, {"status": "received"})
    payment = Payment.objects.get()
    assert (payment.status, last_match_result()) == ("succeeded", "applied")
    assert (payment.payer_name, payment.payer_bank_code, payment.payer_account) == (
        "Somchai Jaidee",
        "014",
        "1234567890",
    )
    assert payment.payer_matches == "yes"
    assert "1234567890" not in str(payment.payer_account_sealed)
    assert Event.objects.filter(type="payment.succeeded").count() == 1
    shown = shop.get(f"/v1/qr-codes/{code['qr_code_id']}").json()
    assert shown["client_bank_account"] == "xxxxxx7890"
    assert shown["client_bank_name"] == shop.payment(code["payment_id"])["payer"]["bank_name"]
    assert shown["client_bank_name"] == "Siam Commercial Bank"


def test_repeated_notification_changes_nothing(shop: Shop, bank: SandboxBankClient) -> None:
    notification = bank.notification(shop.qr_code())
    for _ in range(3):
        assert bank.post(notification).json() == {"status": "received"}
    assert [BankTransaction.objects.count(), Transaction.objects.count()] == [1, 1]
    assert sorted(BankNotification.objects.values_list("result", flat=True)) == ["new", "repeat", "repeat"]


def test_contradicting_notification_is_an_exception(shop: Shop, bank: SandboxBankClient) -> None:
    notification = bank.notification(shop.qr_code())
    bank.post(notification)
    bank.post(notification | {"amount": "1.00"})
    assert BankNotification.objects.filter(result="conflict").count() == 1
    assert Payment.objects.get().status == "succeeded"


def test_decline_notification_fails_the_payment(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code()
    bank.notify(code, type="decline")
    payment = shop.payment(code["payment_id"])
    assert (payment["status"], payment["failure_code"], payment["completed_at"]) == (
        "failed",
        "declined_by_bank",
        None,
    )
    event = json.loads(bytes(Event.objects.get(type="payment.failed").body))
    assert event["data"]["failure_code"] == "declined_by_bank"


def test_payment_by_another_payer_succeeds_and_is_flagged(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code(client_bank_account="9999999999")
    bank.notify(code)
    payment = Payment.objects.get()
    assert (payment.status, payment.payer_matches) == ("succeeded", "no")
    assert shop.get(f"/v1/qr-codes/{code['qr_code_id']}").json()["client_bank_account"] == "9999999999"


@pytest.mark.parametrize(
    ("named_client", "expected"),
    [
        ({}, None),
        ({"client_bank_account": "4051237890"}, "yes"),
        ({"client_bank_account": "405-1-23789-0"}, "yes"),
        ({"client_bank_account": "1234560890"}, "no"),
        ({"client_name": "SOMCHAI JAIDEE"}, "yes"),
        ({"client_name": "สมชาย ใจดี"}, "yes"),
        ({"client_name": "Somchai"}, "unknown"),
        ({"client_name": "Somying Jaidee"}, "no"),
        ({"client_bank_account": "1234567890", "client_name": "Somchai"}, "yes"),
        ({"client_bank_account": "1234567890", "client_name": "Somying Jaidee"}, "no"),
    ],
)
def test_payer_is_compared_by_name_and_last_four_digits_of_the_account(
    shop: Shop, bank: SandboxBankClient, named_client: dict[str, str], expected: str | None
) -> None:
    code = shop.qr_code(**named_client)
    assert shop.payment(code["payment_id"])["payer_matches"] is None
    bank.notify(code)
    assert shop.payment(code["payment_id"])["payer_matches"] == expected
    data = json.loads(bytes(Event.objects.get(type="payment.succeeded").body))["data"]
    assert data.get("payer_matches") == expected


def test_database_keeps_whether_the_payer_matches(shop: Shop, bank: SandboxBankClient) -> None:
    assert shop.qr_code()
    update = "UPDATE payments_payment SET payer_matches = {}"
    assert sqlstate(update.format("'yes'")) == CHECK_VIOLATION, "it is not paid"
    code = shop.qr_code(client_name="Somchai")
    bank.notify(code)
    of_paid = update + " WHERE payer_matches IS NOT NULL"
    for refused in ("'maybe'", "NULL"):
        assert sqlstate(of_paid.format(refused)) == CHECK_VIOLATION
    assert sqlstate(of_paid.format("'yes'")) is None
    for refused in ("'no'", "'unknown'", "NULL"):
        assert sqlstate(of_paid.format(refused)) == CHECK_VIOLATION


UNKNOWN = {"reference1": "NOBODYKNOWSTHIS00000"}
# What the bank reports in turn; the result of the last report, the payment's status, rows of the history.
REPORTS: dict[str, tuple[list[dict[str, Any]], str, str, int]] = {
    "unknown reference": ([UNKNOWN], "unmatched", "pending", 0),
    "another biller": ([{"biller_id": "099999999999999"}], "unmatched", "pending", 0),
    "too little": ([{"satang": 149_999}], "amount_mismatch", "pending", 0),
    "too much": ([{"satang": 150_001}], "amount_mismatch", "pending", 0),
    "paid twice": ([{}, {}], "duplicate", "succeeded", 1),
    "paid twice, with another amount": ([{}, {"satang": 1}], "duplicate", "succeeded", 1),
    "paid after a decline": ([{"type": "decline"}, {}], "duplicate", "failed", 1),
    "another amount after a decline": ([{"type": "decline"}, {"satang": 1}], "duplicate", "failed", 1),
    "reversal of an unknown credit": ([{}, {"type": "reversal"}], "unmatched", "succeeded", 1),
    "decline of an unknown reference": ([UNKNOWN | {"type": "decline"}], "declined", "pending", 0),
}


@pytest.mark.parametrize(("reports", "match_result", "status", "count"), REPORTS.values(), ids=REPORTS)
def test_unmatched_report_changes_no_payment(
    shop: Shop,
    bank: SandboxBankClient,
    reports: list[dict[str, Any]],
    match_result: str,
    status: str,
    count: int,
) -> None:
    code = shop.qr_code()
    for report in reports:
        assert bank.notify(code, **report).status_code == 200
    assert (last_match_result(), Payment.objects.get().status) == (match_result, status)
    assert Transaction.objects.count() == count


def test_payment_in_time_reported_late_succeeds_after_expiry(
    shop: Shop, bank: SandboxBankClient, noon: datetime
) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        code = shop.qr_code(expiry_minutes=1)
        clock.move_to(noon + timedelta(minutes=5))
        expiry_sweep.expire_due(now=our_clock.now())
        bank.notify(code, paid_at=noon + timedelta(minutes=1))
    assert (last_match_result(), Payment.objects.get().status) == ("applied", "succeeded")


def test_payment_reported_after_expiry_expires_before_success(
    shop: Shop, bank: SandboxBankClient, noon: datetime
) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        code = shop.qr_code(expiry_minutes=1)
        clock.move_to(noon + timedelta(minutes=5))
        bank.notify(code, paid_at=noon + timedelta(seconds=59))
    kinds = list(Event.objects.order_by("created_at", "id").values_list("type", flat=True))
    assert sorted(kinds) == ["payment.failed", "payment.pending", "payment.succeeded"]
    assert Payment.objects.get().status == "succeeded"


@pytest.mark.parametrize(("satang", "match_result"), [(150_000, "late"), (149_999, "amount_mismatch")])
def test_payment_after_expiry_is_an_exception(
    shop: Shop, bank: SandboxBankClient, noon: datetime, satang: int, match_result: str
) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        code = shop.qr_code(expiry_minutes=1)
        clock.move_to(noon + timedelta(minutes=5))
        bank.notify(code, satang=satang, paid_at=noon + timedelta(minutes=1, milliseconds=1))
    assert (last_match_result(), Payment.objects.get().status) == (match_result, "expired")


SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("tolerance", "bank_time", "reception", "match_result"),
    [
        (0, 5 * SECOND, -1 * SECOND, "applied"),  # the bank's clock is 5 s ahead
        (0, 5 * SECOND, 0 * SECOND, "applied"),
        (0, 0 * SECOND, timedelta(days=3), "applied"),  # paid in time, reported late
        (0, -1 * SECOND, 1 * SECOND, "applied"),
        (0, 1 * SECOND, 1 * SECOND, "late"),
        (0, 5 * SECOND, 1 * SECOND, "late"),
        (0, 60 * SECOND, -30 * SECOND, "applied"),
        (0, 61 * SECOND, -30 * SECOND, "late"),  # the bank's clock is over 90 s ahead
        (3, 3 * SECOND, 60 * SECOND, "applied"),
        (3, 4 * SECOND, 3 * SECOND, "applied"),
        (3, 4 * SECOND, 4 * SECOND, "late"),
    ],
)
def test_money_is_late_only_by_bank_time_and_our_reception(
    shop: Shop,
    bank: SandboxBankClient,
    noon: datetime,
    settings: Settings,
    tolerance: int,
    bank_time: timedelta,
    reception: timedelta,
    match_result: str,
) -> None:
    """Times are relative to the expiry of the code."""
    settings.LATE_TOLERANCE_SECONDS = tolerance
    with time_machine.travel(noon, tick=False) as clock:
        code, end = shop.qr_code(expiry_minutes=1), noon + timedelta(minutes=1)
        clock.move_to(end + reception)
        bank.notify(code, paid_at=end + bank_time)
        status = shop.payment(code["payment_id"])["status"]
    assert (last_match_result(), status == "succeeded") == (match_result, match_result == "applied")


def test_notification_in_time_is_not_late_when_applied_after_a_crash(
    shop: Shop, bank: SandboxBankClient, noon: datetime
) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        code, end = shop.qr_code(expiry_minutes=1), noon + timedelta(minutes=1)
        clock.move_to(end - SECOND)
        store(bank.notification(code, paid_at=end + 5 * SECOND), our_clock.now())
        clock.move_to(end + timedelta(hours=1))
        expiry_sweep.expire_due(now=our_clock.now())
        assert matching.apply_unapplied(now=our_clock.now()) == 1
    assert (last_match_result(), Payment.objects.get().status) == ("applied", "succeeded")


def test_sandbox_credit_never_pays_a_live_merchant(shop: Shop, bank: SandboxBankClient) -> None:
    Merchant.objects.filter(pk=shop.merchant.pk).update(mode="live", bank="scb")
    code = shop.qr_code()
    bank.notify(code)
    assert (last_match_result(), Payment.objects.get().status) == ("unmatched", "pending")


def test_unknown_bank_is_not_found(bank: SandboxBankClient) -> None:
    answer = bank.http.post("/banks/nobody/notifications", b"{}", content_type="application/json")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "bank_not_found")


def store(notification: dict[str, Any], now: datetime) -> None:
    """Store a notification without applying it, as if the process crashed."""
    intake.receive(bank="sandbox", body=b"{}", notification=parse(notification), now=now)


def test_unapplied_transaction_is_applied_after_a_crash(shop: Shop, bank: SandboxBankClient) -> None:
    now = our_clock.now()
    store(bank.notification(shop.qr_code()), now)
    assert Payment.objects.get().status == "pending"
    assert matching.apply_unapplied(now=now) == 0, "the request that stored it applies it"
    assert matching.apply_unapplied(now=now + timedelta(seconds=5)) == 1
    assert matching.apply_unapplied(now=now + timedelta(seconds=5)) == 0
    assert Payment.objects.get().status == "succeeded"


def test_processing_a_credit_takes_eight_statements(
    shop: Shop, bank: SandboxBankClient, django_assert_num_queries: Any
) -> None:
    store(bank.notification(shop.qr_code()), our_clock.now())
    bank_transaction, savepoint = BankTransaction.objects.get(), 2
    with django_assert_num_queries(8 + savepoint):
        matching.apply(bank_transaction_id=bank_transaction.id, now=our_clock.now())


def test_failing_bank_transaction_does_not_block_other_transactions(
    shop: Shop, bank: SandboxBankClient
) -> None:
    now = our_clock.now()
    for code in (shop.qr_code(), shop.qr_code()):
        store(bank.notification(code), now)
    first = BankTransaction.objects.order_by("received_at", "id")[0]
    with connection.cursor() as cursor:  # as if the encryption key were lost
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE reconciliation_banktransaction DISABLE TRIGGER USER")
        cursor.execute(
            "UPDATE reconciliation_banktransaction SET payer_account_sealed = 'lost' WHERE id = %s",
            [first.id],
        )
        cursor.execute("ALTER TABLE reconciliation_banktransaction ENABLE TRIGGER USER")
    assert matching.apply_unapplied(now=now + timedelta(seconds=5)) == 1
    assert BankTransaction.objects.get(pk=first.id).match_result == ""
    assert sorted(Payment.objects.values_list("status", flat=True)) == ["pending", "succeeded"]
