"""What becomes of money in whatever shape: stored first, applied or shown to a person, never dropped."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import DatabaseError, connection, transaction
from pytest_django import Settings

import banks
from banks.sandbox import SandboxBank
from core import clock as our_clock
from merchants.models import Merchant
from payments import services as payments
from payments.models import Payment
from reconciliation.matching import services as matching
from reconciliation.models import BankNotification, BankTransaction
from reconciliation.notifications import intake
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import parse
from transactions.models import Transaction
from webhooks.models import Event


def outcome_of(qr_code: dict[str, Any]) -> str:
    return str(BankTransaction.objects.latest("received_at").match_result)


def test_credit_with_matching_amount_makes_payment_succeed(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code(client_name="Somchai Jaidee")
    answer = bank.notify(code)
    assert (answer.status_code, answer.json()) == (200, {"status": "received"})
    payment = Payment.objects.get()
    assert (payment.status, outcome_of(code)) == ("succeeded", "applied")
    assert (payment.payer_name, payment.payer_bank_code, payment.payer_account) == (
        "Somchai Jaidee",
        "014",
        "1234567890",
    )
    assert not payment.payer_differs
    assert "1234567890" not in str(payment.payer_account_sealed)
    assert Event.objects.filter(type="payment.succeeded").count() == 1
    shown = shop.get(f"/v1/qr-codes/{code['qr_code_id']}").json()
    assert shown["client_bank_account"] == "xxxxxx7890"


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
    assert (payment.status, payment.payer_differs) == ("succeeded", True)
    assert shop.get(f"/v1/qr-codes/{code['qr_code_id']}").json()["client_bank_account"] == "9999999999"


@pytest.mark.parametrize("change", [{"reference1": "NOBODYKNOWSTHIS00000"}, {"biller_id": "099999999999999"}])
def test_unknown_reference_is_an_exception(
    shop: Shop, bank: SandboxBankClient, change: dict[str, str]
) -> None:
    code = shop.qr_code()
    assert bank.notify(code, **change).status_code == 200
    assert (outcome_of(code), Payment.objects.get().status) == ("unmatched", "pending")


@pytest.mark.parametrize("satang", [149_999, 150_001])
def test_wrong_amount_is_an_exception(shop: Shop, bank: SandboxBankClient, satang: int) -> None:
    code = shop.qr_code()
    bank.notify(code, satang=satang)
    assert (outcome_of(code), Payment.objects.get().status) == ("amount_mismatch", "pending")


def test_second_payment_of_a_code_is_a_duplicate(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code()
    bank.notify(code)
    bank.notify(code)
    assert (outcome_of(code), Transaction.objects.count()) == ("duplicate", 1)


def test_money_for_a_failed_payment_is_an_exception(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code()
    bank.notify(code, type="decline")
    bank.notify(code)
    assert (outcome_of(code), Payment.objects.get().status) == ("duplicate", "failed")


def test_payment_in_time_reported_late_succeeds_after_expiry(
    shop: Shop, bank: SandboxBankClient, noon: datetime
) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        code = shop.qr_code(expiry_minutes=1)
        clock.move_to(noon + timedelta(minutes=5))
        payments.expire_due(now=our_clock.now())
        bank.notify(code, paid_at=noon + timedelta(minutes=1))
    assert (outcome_of(code), Payment.objects.get().status) == ("applied", "succeeded")


def test_payment_reported_after_expiry_is_expired_before_it_succeeds(
    shop: Shop, bank: SandboxBankClient, noon: datetime
) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        code = shop.qr_code(expiry_minutes=1)
        clock.move_to(noon + timedelta(minutes=5))
        bank.notify(code, paid_at=noon + timedelta(seconds=59))
    kinds = list(Event.objects.order_by("created_at", "id").values_list("type", flat=True))
    assert sorted(kinds) == ["payment.failed", "payment.pending", "payment.succeeded"]
    assert Payment.objects.get().status == "succeeded"


def test_payment_after_expiry_is_an_exception(shop: Shop, bank: SandboxBankClient, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        code = shop.qr_code(expiry_minutes=1)
        clock.move_to(noon + timedelta(minutes=5))
        bank.notify(code, paid_at=noon + timedelta(minutes=1, milliseconds=1))
    assert (outcome_of(code), Payment.objects.get().status) == ("late", "expired")


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
        (0, 61 * SECOND, -30 * SECOND, "late"),  # no clock is ahead by that
        (3, 3 * SECOND, 60 * SECOND, "applied"),
        (3, 4 * SECOND, 3 * SECOND, "applied"),
        (3, 4 * SECOND, 4 * SECOND, "late"),
    ],
)
def test_money_is_late_only_by_both_clocks(
    shop: Shop,
    bank: SandboxBankClient,
    noon: datetime,
    settings: Settings,
    tolerance: int,
    bank_time: timedelta,
    reception: timedelta,
    match_result: str,
) -> None:
    """Times from the end of the code on."""
    settings.LATE_TOLERANCE_SECONDS = tolerance
    with time_machine.travel(noon, tick=False) as clock:
        code, end = shop.qr_code(expiry_minutes=1), noon + timedelta(minutes=1)
        clock.move_to(end + reception)
        bank.notify(code, paid_at=end + bank_time)
        status = shop.payment(code["payment_id"])["status"]
    assert (outcome_of(code), status == "succeeded") == (match_result, match_result == "applied")


def test_notification_in_time_is_not_late_when_applied_after_a_crash(
    shop: Shop, bank: SandboxBankClient, noon: datetime
) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        code, end = shop.qr_code(expiry_minutes=1), noon + timedelta(minutes=1)
        clock.move_to(end - SECOND)
        told = parse(bank.notification(code, paid_at=end + 5 * SECOND))
        intake.receive(bank="sandbox", body=b"{}", notification=told, now=our_clock.now())
        clock.move_to(end + timedelta(hours=1))
        payments.expire_due(now=our_clock.now())
        assert matching.apply_unapplied(now=our_clock.now()) == 1
    assert (outcome_of(code), Payment.objects.get().status) == ("applied", "succeeded")


def test_reversal_of_an_unknown_credit_is_an_exception(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code()
    bank.notify(code)
    bank.notify(code, type="reversal")
    assert (outcome_of(code), Payment.objects.get().status) == ("unmatched", "succeeded")


def test_sandbox_credit_never_pays_a_live_merchant(shop: Shop, bank: SandboxBankClient) -> None:
    Merchant.objects.filter(pk=shop.merchant.pk).update(mode="live", bank="scb")
    code = shop.qr_code()
    bank.notify(code)
    assert (outcome_of(code), Payment.objects.get().status) == ("unmatched", "pending")


@pytest.mark.parametrize("signature", ["", "t=1,v1=" + "0" * 64, "garbage", "t=99999999999,v1=" + "f" * 64])
def test_wrong_signature_is_refused_and_stores_nothing(
    shop: Shop, bank: SandboxBankClient, signature: str
) -> None:
    refused = bank.post(bank.notification(shop.qr_code()), signature=signature)
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_signature")
    assert not BankNotification.objects.exists()


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\x00\xfe", b"[]", b'{"transaction_id": "1"}', b"x" * 60_000]
)
def test_unreadable_notification_is_stored(bank: SandboxBankClient, body: bytes) -> None:
    assert bank.post(body).json() == {"status": "parked"}
    parked = BankNotification.objects.get()
    assert (parked.result, parked.body) == ("unreadable", body)


def test_unknown_bank_is_not_found(bank: SandboxBankClient) -> None:
    answer = bank.http.post("/banks/nobody/notices", b"{}", content_type="application/json")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "bank_not_found")


def accept(body: bytes, now: datetime) -> None:
    """Store what the bank says, as if the request ended there."""
    notification = SandboxBank("x").parse_notification(body)
    assert isinstance(notification, banks.ReportedTransaction)
    intake.receive(bank="sandbox", body=body, notification=notification, now=now)


def test_unapplied_transaction_is_applied_after_a_crash(shop: Shop, bank: SandboxBankClient) -> None:
    body = json.dumps(bank.notification(shop.qr_code())).encode()
    now = our_clock.now()
    accept(body, now)
    assert Payment.objects.get().status == "pending"
    assert matching.apply_unapplied(now=now) == 0, "the request that stored it still has its moment"
    assert matching.apply_unapplied(now=now + timedelta(seconds=5)) == 1
    assert matching.apply_unapplied(now=now + timedelta(seconds=5)) == 0
    assert Payment.objects.get().status == "succeeded"


@pytest.mark.parametrize(
    "attack",
    [
        "UPDATE reconciliation_banktransaction SET amount = amount + 1",
        "UPDATE reconciliation_banktransaction SET bank_transaction_id = 'other'",
        "UPDATE reconciliation_banktransaction SET match_result = 'lost'",
        "DELETE FROM reconciliation_banktransaction",
        "UPDATE reconciliation_banknotification SET result = 'repeat'",
        "DELETE FROM reconciliation_banknotification",
    ],
)
def test_stored_notifications_cannot_be_changed(shop: Shop, bank: SandboxBankClient, attack: str) -> None:
    bank.notify(shop.qr_code())
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(attack)


def test_failing_bank_transaction_does_not_block_others(shop: Shop, bank: SandboxBankClient) -> None:
    now = our_clock.now()
    for code in (shop.qr_code(), shop.qr_code()):
        body = json.dumps(bank.notification(code)).encode()
        accept(body, now)
    first = BankTransaction.objects.order_by("received_at", "id")[0]
    with connection.cursor() as cursor:  # as if the key to its account were lost
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


def test_decline_of_an_unknown_reference_posts_nothing(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code()
    bank.notify(code, type="decline", reference1="NOBODYKNOWSTHIS00000")
    assert (outcome_of(code), Payment.objects.get().status) == ("declined", "pending")
