"""Inquiries about unpaid codes. Their answers are matched like notifications."""

import threading
from datetime import timedelta
from typing import Any

import pytest

from banks import InquiryFailed, InquiryResult, UnreadableMessage, parallel
from core import clock
from core.thai import thaiqr
from merchants.models import Merchant
from payments import expiry_sweep
from payments.models import Payment
from reconciliation.inquiries import schedule, services as inquiries
from reconciliation.models import BankNotification, BankTransaction, Inquiry, InquiryAnswer
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.inquiries.builders import (
    NOTHING,
    Answering,
    code_expiry,
    end_leases,
    found,
    outcomes,
    sweep,
)
from tests.sqlstates import CHECK_VIOLATION, sqlstate
from webhooks.models import Event

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]


def expire(shop: Shop, code: dict[str, Any]) -> None:
    assert shop.post(f"/v1/qr-codes/{code['qr_code_id']}/expire").status_code == 200


def test_inquiry_replaces_a_lost_callback(shop: Shop, bank: SandboxBankClient, served_by: Answering) -> None:
    code = shop.qr_code()
    answer = found(bank.notification(code))
    fake_bank = served_by(answer)
    assert sweep() == 1
    assert shop.payment(code["payment_id"])["status"] == "succeeded"
    bank_transaction, notification = BankTransaction.objects.get(), BankNotification.objects.get()
    assert (bank_transaction.source, bank_transaction.match_result) == ("inquiry", "applied")
    assert (notification.source, notification.result, notification.body) == ("inquiry", "new", answer.body)
    assert outcomes() == ["found"]
    assert sweep(10_000) == 0, "the inquiries have ended"
    assert len(fake_bank.questions) == 1


def test_inquiry_sends_reference_amount_and_time_range(shop: Shop, served_by: Answering) -> None:
    fake_bank, code = served_by(), shop.qr_code()
    sweep()
    (question,), parsed = fake_bank.questions, thaiqr.parse(code["qr_data"])
    payment = Payment.objects.get()
    asked_for = (question.biller_id, question.reference1, question.amount)
    assert asked_for == (parsed.biller_id, parsed.reference1, 150_000)
    assert question.starts_at < payment.created_at < clock.now() + timedelta(seconds=6) < question.ends_at


def test_payment_confirmed_before_the_first_inquiry_is_never_inquired(
    shop: Shop, bank: SandboxBankClient, served_by: Answering
) -> None:
    fake_bank = served_by()
    bank.notify(shop.qr_code())
    assert (sweep(), fake_bank.questions, Inquiry.objects.count()) == (0, [], 0)


def test_payment_confirmed_between_inquiries_is_not_inquired_again(
    shop: Shop, bank: SandboxBankClient, served_by: Answering
) -> None:
    fake_bank, code = served_by(), shop.qr_code()
    assert sweep() == 1
    bank.notify(code)
    assert sweep(20) == 0
    assert (len(fake_bank.questions), Inquiry.objects.get().due_at) == (1, None)


def test_inquiry_without_result_is_recorded_and_rescheduled(shop: Shop, served_by: Answering) -> None:
    served_by()
    shop.qr_code()
    sweep()
    inquiry, payment = Inquiry.objects.get(), Payment.objects.get()
    assert (outcomes(), BankNotification.objects.count()) == (["nothing"], 0)
    assert inquiry.due_at == payment.created_at + timedelta(seconds=15)
    assert (inquiry.schedule_index, inquiry.lease_until) == (1, None)


def test_unpaid_code_is_inquired_ten_times(shop: Shop, served_by: Answering) -> None:
    fake_bank = served_by()
    shop.qr_code(expiry_minutes=15)
    plan = schedule.inquiry_times(Payment.objects.get())
    for instant in plan:
        assert sweep(-0.1, since=instant) == 0
        assert sweep(0.1, since=instant) == 1
    assert (len(fake_bank.questions), len(plan)) == (10, 10)
    assert sweep(90_000, since=plan[-1]) == 0
    answer, tenth = InquiryAnswer.objects.get(), timedelta(seconds=0.1)
    times = (answer.first_answered_at, answer.answered_at)
    first_and_last = tuple(clock.to_millisecond(instant + tenth) for instant in (plan[0], plan[-1]))
    assert (outcomes(), times) == (["nothing"] * 10, first_and_last)


def test_other_answer_of_a_bank_gets_a_row_of_its_own(shop: Shop, served_by: Answering) -> None:
    served_by(NOTHING, NOTHING, InquiryFailed("down"), NOTHING)
    shop.qr_code()
    for instant in schedule.inquiry_times(Payment.objects.get())[:4]:
        sweep(0.1, since=instant)
    counts = InquiryAnswer.objects.order_by("pk").values_list("outcome", "answer_count")
    assert list(counts) == [("nothing", 2), ("no_answer", 1), ("nothing", 1)]


def test_answers_of_a_bank_only_get_more(shop: Shop, served_by: Answering) -> None:
    served_by()
    shop.qr_code()
    sweep()
    for change in ("answer_count = 1", "answer_count = 2, outcome = 'found'"):
        assert sqlstate(f"UPDATE reconciliation_inquiryanswer SET {change}") == CHECK_VIOLATION


def test_missed_inquiries_are_made_up_by_one_inquiry(shop: Shop, served_by: Answering) -> None:
    served_by()
    shop.qr_code(expiry_minutes=15)
    assert (sweep(1000), sweep(1000)) == (1, 0)
    assert Inquiry.objects.get().due_at == code_expiry() + timedelta(minutes=5)


def test_inquiry_schedule_of_a_canceled_qr_code_restarts_at_cancellation(
    shop: Shop, served_by: Answering
) -> None:
    fake_bank, code = served_by(), shop.qr_code(expiry_minutes=60)
    sweep(61)
    expire(shop, code)
    ended = code_expiry()
    assert Inquiry.objects.get().due_at == ended + timedelta(seconds=1)
    for second in (1, 60, 300, 3600):
        assert sweep(second - 0.01, since=ended) == 0
        assert sweep(second + 0.01, since=ended) == 1
    assert len(fake_bank.questions) == 5


def test_inquiry_schedule_restarts_if_the_qr_code_is_canceled_during_the_inquiry(
    shop: Shop, served_by: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = shop.qr_code(expiry_minutes=60)
    monkeypatch.setattr(parallel, "run_all", lambda calls, default: [call() for call in calls])

    def expire_code() -> InquiryResult:
        expire(shop, code)
        return NOTHING

    served_by(expire_code)
    sweep(0, since=Payment.objects.get().created_at + timedelta(seconds=5))
    assert Inquiry.objects.get().due_at == code_expiry() + timedelta(seconds=60)


def test_inquiry_that_becomes_due_during_the_call_stays_due(shop: Shop, served_by: Answering) -> None:
    shop.qr_code()
    plan = schedule.inquiry_times(Payment.objects.get())
    watch = [plan[3] - timedelta(seconds=1)]

    def answer_late() -> InquiryResult:
        watch[0] += timedelta(seconds=2)
        return NOTHING

    served_by(answer_late, NOTHING, per_second=1)
    assert inquiries.inquire_due(now=lambda: watch[0]) == 1
    assert Inquiry.objects.get().due_at == plan[3]


@pytest.mark.parametrize("error", [InquiryFailed(), ValueError("what the bank said")])
def test_inquiry_without_answer_is_retried(
    shop: Shop, bank: SandboxBankClient, served_by: Answering, error: Exception
) -> None:
    code = shop.qr_code()
    served_by(error, found(bank.notification(code)))
    sweep(6)
    assert (outcomes(), shop.payment(code["payment_id"])["status"]) == (["no_answer"], "pending")
    assert sweep(12) == 1
    assert shop.payment(code["payment_id"])["status"] == "succeeded"


def test_inquiries_without_answers_stop_after_a_day(shop: Shop, served_by: Answering) -> None:
    served_by(InquiryFailed())
    shop.qr_code()
    last = schedule.inquiry_times(Payment.objects.get())[-1]
    sweep(23 * 3600, since=last)
    assert Inquiry.objects.get().due_at is not None
    sweep(25 * 3600, since=last)
    assert Inquiry.objects.get().due_at is None


def test_inquiry_for_a_merchant_without_connection_counts_as_no_answer(shop: Shop, db: None) -> None:
    Merchant.objects.update(mode="live", bank="scb")
    shop.qr_code()
    assert sweep() == 1
    assert (outcomes(), Payment.objects.get().status) == (["no_answer"], "pending")


def test_hanging_inquiry_call_counts_as_no_answer(
    shop: Shop, served_by: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "CALL_SECONDS", 0.1)
    release = threading.Event()
    served_by(lambda: release.wait(60) and NOTHING)
    shop.qr_code()
    sweep()
    release.set()
    assert outcomes() == ["no_answer"]


def test_unreadable_inquiry_answer_is_stored_once(shop: Shop, served_by: Answering) -> None:
    served_by(UnreadableMessage("what is this", body=b"<html>"))
    shop.qr_code()
    sweep(6)
    sweep(16)
    stored = BankNotification.objects.get()
    assert (stored.source, stored.result, stored.body) == ("inquiry", "unreadable", b"<html>")
    assert outcomes() == ["unreadable", "unreadable"]


@pytest.mark.parametrize(
    ("answers", "match_results", "status", "inquiries"),
    [
        (["w"], ["amount_mismatch"], "pending", 2),
        (["w", "wr"], ["amount_mismatch", "applied"], "succeeded", 2),
        (["rs"], ["applied", "duplicate"], "succeeded", 1),
        (["d"], ["declined"], "failed", 1),
    ],
    ids=["wrong amount", "wrong and then right amount", "paid twice", "declined"],
)
def test_inquiry_answer_with_several_transactions_stores_each_once(
    shop: Shop,
    bank: SandboxBankClient,
    served_by: Answering,
    answers: list[str],
    match_results: list[str],
    status: str,
    inquiries: int,
) -> None:
    """`w` is a credit of a wrong amount, `r` and `s` are right ones, `d` is a decline."""
    code = shop.qr_code()
    changes: dict[str, Any] = {"w": {"satang": 149_999}, "r": {}, "s": {}, "d": {"type": "decline"}}
    bank_transactions = {name: bank.notification(code, **each) for name, each in changes.items()}
    served_by(*[found(*[bank_transactions[name] for name in answer]) for answer in answers])
    sweep(6)
    sweep(16)
    assert sorted(BankTransaction.objects.values_list("match_result", flat=True)) == match_results
    assert BankNotification.objects.count() == len(match_results)
    assert (Payment.objects.get().status, outcomes()) == (status, ["found"] * inquiries)
    assert Event.objects.filter(type="payment.succeeded").count() == (status == "succeeded")
    assert status == "pending" or sweep(3600) == 0


@pytest.mark.parametrize(
    ("after", "match_result", "status"), [(-1, "applied", "succeeded"), (1, "late", "expired")]
)
def test_money_found_after_expiry_is_matched_by_bank_time(
    shop: Shop, bank: SandboxBankClient, served_by: Answering, after: int, match_result: str, status: str
) -> None:
    code = shop.qr_code(expiry_minutes=1)
    ends = code_expiry()
    served_by(found(bank.notification(code, paid_at=ends + timedelta(seconds=after))))
    expiry_sweep.expire_due(now=ends + timedelta(seconds=2))
    assert sweep(61, since=ends) == 1
    results = (BankTransaction.objects.get().match_result, Payment.objects.get().status)
    assert results == (match_result, status)


def test_callback_after_inquiry_is_a_repeat(
    shop: Shop, bank: SandboxBankClient, served_by: Answering
) -> None:
    notification = bank.notification(shop.qr_code())
    served_by(found(notification))
    sweep()
    bank.post(notification)
    reports = BankNotification.objects.order_by("received_at").values_list("source", "result")
    assert sorted(reports) == [("callback", "repeat"), ("inquiry", "new")]
    assert BankTransaction.objects.count() == 1


def test_inquiry_is_repeated_if_the_answer_cannot_be_stored(
    shop: Shop, bank: SandboxBankClient, served_by: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**how: object) -> None:
        raise ValueError("the answer cannot be stored")

    code = shop.qr_code()
    served_by(found(bank.notification(code)))
    with monkeypatch.context() as patch:
        patch.setattr("reconciliation.matching.intake.receive", fail)
        sweep()
    assert outcomes() == ["no_answer"]
    sweep(12)
    assert shop.payment(code["payment_id"])["status"] == "succeeded"


def test_leased_inquiry_is_not_taken_by_another_worker(
    shop: Shop, served_by: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_bank = served_by()
    shop.qr_code()
    with monkeypatch.context() as patch:
        patch.setattr(parallel, "run_all", lambda calls, default: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            sweep()
    assert (sweep(), fake_bank.questions) == (0, [])
    end_leases()
    assert (sweep(), len(fake_bank.questions), InquiryAnswer.objects.count()) == (1, 1, 1)
