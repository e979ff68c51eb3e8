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
from receipts import inbox, services
from receipts.models import Notice, Receipt
from tests.conftest import BankCaller, Shop
from tests.receipts.cast import parsed
from transactions.models import Transaction
from webhooks.models import Event


def outcome_of(qr_code: dict[str, Any]) -> str:
    return str(Receipt.objects.latest("received_at").outcome)


def test_the_right_money_makes_the_payment_succeed(shop: Shop, bank: BankCaller) -> None:
    code = shop.qr_code(client_name="Somchai Jaidee")
    answer = bank.tell(code)
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


def test_a_repeat_is_answered_and_changes_nothing(shop: Shop, bank: BankCaller) -> None:
    notice = bank.notice(shop.qr_code())
    for _ in range(3):
        assert bank.post(notice).json() == {"status": "received"}
    assert [Receipt.objects.count(), Transaction.objects.count()] == [1, 1]
    assert sorted(Notice.objects.values_list("verdict", flat=True)) == ["new", "repeat", "repeat"]


def test_the_same_transaction_told_differently_is_kept_for_staff(shop: Shop, bank: BankCaller) -> None:
    notice = bank.notice(shop.qr_code())
    bank.post(notice)
    bank.post(notice | {"amount": "1.00"})
    assert Notice.objects.filter(verdict="conflict").count() == 1
    assert Payment.objects.get().status == "succeeded"


def test_a_decline_fails_the_payment(shop: Shop, bank: BankCaller) -> None:
    code = shop.qr_code()
    bank.tell(code, type="decline")
    payment = shop.payment(code["payment_id"])
    assert (payment["status"], payment["failure_code"], payment["completed_at"]) == (
        "failed",
        "declined_by_bank",
        None,
    )
    event = json.loads(bytes(Event.objects.get(type="payment.failed").body))
    assert event["data"]["failure_code"] == "declined_by_bank"


def test_a_different_payer_is_flagged_and_paid(shop: Shop, bank: BankCaller) -> None:
    code = shop.qr_code(client_bank_account="9999999999")
    bank.tell(code)
    payment = Payment.objects.get()
    assert (payment.status, payment.payer_differs) == ("succeeded", True)
    assert shop.get(f"/v1/qr-codes/{code['qr_code_id']}").json()["client_bank_account"] == "9999999999"


@pytest.mark.parametrize("change", [{"reference1": "NOBODYKNOWSTHIS00000"}, {"biller_id": "099999999999999"}])
def test_money_nobody_asked_for_waits_for_staff(shop: Shop, bank: BankCaller, change: dict[str, str]) -> None:
    code = shop.qr_code()
    assert bank.tell(code, **change).status_code == 200
    assert (outcome_of(code), Payment.objects.get().status) == ("unmatched", "pending")


@pytest.mark.parametrize("satang", [149_999, 150_001])
def test_another_amount_waits_for_staff(shop: Shop, bank: BankCaller, satang: int) -> None:
    code = shop.qr_code()
    bank.tell(code, satang=satang)
    assert (outcome_of(code), Payment.objects.get().status) == ("amount_mismatch", "pending")


def test_a_second_payment_of_one_code_waits_for_staff(shop: Shop, bank: BankCaller) -> None:
    code = shop.qr_code()
    bank.tell(code)
    bank.tell(code)
    assert (outcome_of(code), Transaction.objects.count()) == ("duplicate", 1)


def test_money_for_a_failed_payment_waits_for_staff(shop: Shop, bank: BankCaller) -> None:
    code = shop.qr_code()
    bank.tell(code, type="decline")
    bank.tell(code)
    assert (outcome_of(code), Payment.objects.get().status) == ("duplicate", "failed")


def test_paid_in_time_but_told_late_succeeds_even_after_the_sweep(
    shop: Shop, bank: BankCaller, noon: datetime
) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        code = shop.qr_code(expiry_minutes=1)
        clock.move_to(noon + timedelta(minutes=5))
        payments.expire_due(now=our_clock.now())
        bank.tell(code, paid_at=noon + timedelta(minutes=1))
    assert (outcome_of(code), Payment.objects.get().status) == ("applied", "succeeded")


def test_paid_in_time_but_told_before_the_sweep_came_is_expired_first(
    shop: Shop, bank: BankCaller, noon: datetime
) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        code = shop.qr_code(expiry_minutes=1)
        clock.move_to(noon + timedelta(minutes=5))
        bank.tell(code, paid_at=noon + timedelta(seconds=59))
    kinds = list(Event.objects.order_by("created_at", "id").values_list("type", flat=True))
    assert sorted(kinds) == ["payment.failed", "payment.pending", "payment.succeeded"]
    assert Payment.objects.get().status == "succeeded"


def test_late_money_waits_for_staff(shop: Shop, bank: BankCaller, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        code = shop.qr_code(expiry_minutes=1)
        clock.move_to(noon + timedelta(minutes=5))
        bank.tell(code, paid_at=noon + timedelta(minutes=1, milliseconds=1))
    assert (outcome_of(code), Payment.objects.get().status) == ("late", "expired")


SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("tolerance", "bank_time", "reception", "outcome"),
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
def test_money_is_late_only_by_the_banks_clock_and_by_ours(
    shop: Shop,
    bank: BankCaller,
    noon: datetime,
    settings: Settings,
    tolerance: int,
    bank_time: timedelta,
    reception: timedelta,
    outcome: str,
) -> None:
    """Times from the end of the code on."""
    settings.LATE_TOLERANCE_SECONDS = tolerance
    with time_machine.travel(noon, tick=False) as clock:
        code, end = shop.qr_code(expiry_minutes=1), noon + timedelta(minutes=1)
        clock.move_to(end + reception)
        bank.tell(code, paid_at=end + bank_time)
        status = shop.payment(code["payment_id"])["status"]
    assert (outcome_of(code), status == "succeeded") == (outcome, outcome == "applied")


def test_callback_in_time_that_a_crash_left_is_not_late_when_the_sweep_applies_it(
    shop: Shop, bank: BankCaller, noon: datetime
) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        code, end = shop.qr_code(expiry_minutes=1), noon + timedelta(minutes=1)
        clock.move_to(end - SECOND)
        told = parsed(bank.notice(code, paid_at=end + 5 * SECOND))
        inbox.accept(bank="sandbox", body=b"{}", notice=told, now=our_clock.now())
        clock.move_to(end + timedelta(hours=1))
        payments.expire_due(now=our_clock.now())
        assert services.apply_left(now=our_clock.now()) == 1
    assert (outcome_of(code), Payment.objects.get().status) == ("applied", "succeeded")


def test_a_reversal_of_what_we_never_had_is_kept_for_staff(shop: Shop, bank: BankCaller) -> None:
    code = shop.qr_code()
    bank.tell(code)
    bank.tell(code, type="reversal")
    assert (outcome_of(code), Payment.objects.get().status) == ("unmatched", "succeeded")


def test_sandbox_money_never_pays_a_live_merchant(shop: Shop, bank: BankCaller) -> None:
    Merchant.objects.filter(pk=shop.merchant.pk).update(mode="live", bank="scb")
    code = shop.qr_code()
    bank.tell(code)
    assert (outcome_of(code), Payment.objects.get().status) == ("unmatched", "pending")


@pytest.mark.parametrize("signature", ["", "t=1,v1=" + "0" * 64, "garbage", "t=99999999999,v1=" + "f" * 64])
def test_a_wrong_signature_leaves_nothing(shop: Shop, bank: BankCaller, signature: str) -> None:
    refused = bank.post(bank.notice(shop.qr_code()), signature=signature)
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_signature")
    assert not Notice.objects.exists()


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\x00\xfe", b"[]", b'{"transaction_id": "1"}', b"x" * 60_000]
)
def test_what_the_bank_says_unintelligibly_is_parked(bank: BankCaller, body: bytes) -> None:
    assert bank.post(body).json() == {"status": "parked"}
    parked = Notice.objects.get()
    assert (parked.verdict, parked.body) == ("unreadable", body)


def test_an_unknown_bank_is_not_found(bank: BankCaller) -> None:
    answer = bank.http.post("/banks/nobody/notices", b"{}", content_type="application/json")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "bank_not_found")


def accept(body: bytes, now: datetime) -> None:
    """Store what the bank says, as if the request ended there."""
    notice = SandboxBank("x").parse_notice(body)
    assert isinstance(notice, banks.Notice)
    inbox.accept(bank="sandbox", body=body, notice=notice, now=now)


def test_what_a_crash_left_is_applied_by_the_sweep(shop: Shop, bank: BankCaller) -> None:
    body = json.dumps(bank.notice(shop.qr_code())).encode()
    now = our_clock.now()
    accept(body, now)
    assert Payment.objects.get().status == "pending"
    assert services.apply_left(now=now) == 0, "the request that stored it still has its moment"
    assert services.apply_left(now=now + timedelta(seconds=5)) == 1
    assert services.apply_left(now=now + timedelta(seconds=5)) == 0
    assert Payment.objects.get().status == "succeeded"


@pytest.mark.parametrize(
    "attack",
    [
        "UPDATE receipts_receipt SET amount = amount + 1",
        "UPDATE receipts_receipt SET bank_transaction_id = 'other'",
        "UPDATE receipts_receipt SET outcome = 'lost'",
        "DELETE FROM receipts_receipt",
        "UPDATE receipts_notice SET verdict = 'repeat'",
        "DELETE FROM receipts_notice",
    ],
)
def test_the_word_of_a_bank_is_kept_as_it_was_said(shop: Shop, bank: BankCaller, attack: str) -> None:
    bank.tell(shop.qr_code())
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(attack)


def test_a_receipt_that_cannot_be_applied_holds_up_no_other_and_is_kept(shop: Shop, bank: BankCaller) -> None:
    now = our_clock.now()
    for code in (shop.qr_code(), shop.qr_code()):
        body = json.dumps(bank.notice(code)).encode()
        accept(body, now)
    first = Receipt.objects.order_by("received_at", "id")[0]
    with connection.cursor() as cursor:  # as if the key to its account were lost
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE receipts_receipt DISABLE TRIGGER USER")
        cursor.execute("UPDATE receipts_receipt SET payer_account_sealed = 'lost' WHERE id = %s", [first.id])
        cursor.execute("ALTER TABLE receipts_receipt ENABLE TRIGGER USER")
    assert services.apply_left(now=now + timedelta(seconds=5)) == 1
    assert Receipt.objects.get(pk=first.id).outcome == ""
    assert sorted(Payment.objects.values_list("status", flat=True)) == ["pending", "succeeded"]


def test_a_decline_of_an_unknown_reference_moved_no_money(shop: Shop, bank: BankCaller) -> None:
    code = shop.qr_code()
    bank.tell(code, type="decline", reference1="NOBODYKNOWSTHIS00000")
    assert (outcome_of(code), Payment.objects.get().status) == ("declined", "pending")
