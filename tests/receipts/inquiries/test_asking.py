"""A bank is asked about what nobody confirmed, and what it says is judged like any word of a bank."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from banks import Found, NotAnswered, Unreadable, calling
from core import clock, thaiqr
from merchants.models import Merchant
from payments import services as payments
from payments.models import Payment
from receipts import inquiries, schedule
from receipts.models import Inquiry, InquiryAnswer, Notice, Receipt
from tests.conftest import BankCaller, Shop
from tests.receipts.inquiries.cast import NOTHING, AskedBank, answers, end_leases, end_of_code, found, sweep
from webhooks.models import Event

Answering = Callable[..., AskedBank]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]


def expire(shop: Shop, code: dict[str, Any]) -> None:
    assert shop.post(f"/v1/qr-codes/{code['qr_code_id']}/expire").status_code == 200


def test_a_payment_whose_callback_was_lost_succeeds(
    shop: Shop, bank: BankCaller, served_by: Answering
) -> None:
    code = shop.qr_code()
    answer = found(bank.notice(code))
    asked = served_by(answer)
    assert sweep() == 1
    assert shop.payment(code["payment_id"])["status"] == "succeeded"
    receipt, notice = Receipt.objects.get(), Notice.objects.get()
    assert (receipt.source, receipt.outcome) == ("inquiry", "applied")
    assert (notice.source, notice.verdict, notice.body) == ("inquiry", "new", answer.body)
    assert answers() == ["found"]
    assert sweep(10_000) == 0, "it is over"
    assert len(asked.questions) == 1


def test_a_question_names_the_code_and_what_was_asked_for(shop: Shop, served_by: Answering) -> None:
    asked, code = served_by(), shop.qr_code()
    sweep()
    (question,), told = asked.questions, thaiqr.parse(code["qr_data"])
    payment = Payment.objects.get()
    assert (question.biller_id, question.reference1, question.amount) == (
        told.biller_id,
        told.reference1,
        150_000,
    )
    assert question.since < payment.created_at < clock.now() + timedelta(seconds=6) < question.until


def test_what_the_bank_confirms_in_time_is_never_asked(
    shop: Shop, bank: BankCaller, served_by: Answering
) -> None:
    asked = served_by()
    bank.tell(shop.qr_code())
    assert (sweep(), asked.questions, Inquiry.objects.count()) == (0, [], 0)


def test_what_is_confirmed_between_two_questions_is_not_asked_again(
    shop: Shop, bank: BankCaller, served_by: Answering
) -> None:
    asked, code = served_by(), shop.qr_code()
    assert sweep() == 1
    bank.tell(code)
    assert sweep(20) == 0
    assert (len(asked.questions), Inquiry.objects.get().due_at) == (1, None)


def test_nothing_paid_leaves_an_answer_and_the_next_date(shop: Shop, served_by: Answering) -> None:
    served_by()
    shop.qr_code()
    sweep()
    inquiry, payment = Inquiry.objects.get(), Payment.objects.get()
    assert (answers(), Notice.objects.count()) == (["nothing"], 0)
    assert inquiry.due_at == payment.created_at + timedelta(seconds=15)
    assert (inquiry.step, inquiry.lease_until) == (1, None)


def test_an_unpaid_code_costs_ten_questions_in_all(shop: Shop, served_by: Answering) -> None:
    asked = served_by()
    shop.qr_code(expiry_minutes=15)
    plan = schedule.of(Payment.objects.get())
    for instant in plan:
        assert sweep(-0.1, since=instant) == 0
        assert sweep(0.1, since=instant) == 1
    assert (len(asked.questions), len(plan)) == (10, 10)
    assert sweep(90_000, since=plan[-1]) == 0


def test_what_was_missed_while_workers_were_down_is_one_question(shop: Shop, served_by: Answering) -> None:
    served_by()
    shop.qr_code(expiry_minutes=15)
    assert (sweep(1000), sweep(1000)) == (1, 0)
    assert Inquiry.objects.get().due_at == end_of_code() + timedelta(minutes=5)


def test_a_code_that_ends_early_counts_from_its_end(shop: Shop, served_by: Answering) -> None:
    asked, code = served_by(), shop.qr_code(expiry_minutes=60)
    sweep(61)
    expire(shop, code)
    ended = end_of_code()
    assert Inquiry.objects.get().due_at == ended + timedelta(seconds=1)
    for second in (1, 60, 300, 3600):
        assert sweep(second - 0.01, since=ended) == 0
        assert sweep(second + 0.01, since=ended) == 1
    assert len(asked.questions) == 5


def test_a_code_that_ends_while_its_bank_is_asked_counts_from_its_end(
    shop: Shop, served_by: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = shop.qr_code(expiry_minutes=60)
    monkeypatch.setattr(calling, "all_at_once", lambda calls, silence: [call() for call in calls])

    def ends_it() -> Found:
        expire(shop, code)
        return NOTHING

    served_by(ends_it)
    sweep(0, since=Payment.objects.get().created_at + timedelta(seconds=5))
    assert Inquiry.objects.get().due_at == end_of_code() + timedelta(seconds=60)


def test_a_date_that_passes_while_the_bank_answers_stays_due(shop: Shop, served_by: Answering) -> None:
    shop.qr_code()
    plan = schedule.of(Payment.objects.get())
    watch = [plan[3] - timedelta(seconds=1)]

    def answers_late() -> Found:
        watch[0] += timedelta(seconds=2)
        return NOTHING

    served_by(answers_late, NOTHING, per_second=1)
    assert inquiries.inquire_due(now=lambda: watch[0]) == 1
    assert Inquiry.objects.get().due_at == plan[3]


@pytest.mark.parametrize("error", [NotAnswered(), ValueError("what the bank said")])
def test_a_question_without_an_answer_is_put_again(
    shop: Shop, bank: BankCaller, served_by: Answering, error: Exception
) -> None:
    code = shop.qr_code()
    served_by(error, found(bank.notice(code)))
    sweep(6)
    assert (answers(), shop.payment(code["payment_id"])["status"]) == (["no_answer"], "pending")
    assert sweep(12) == 1
    assert shop.payment(code["payment_id"])["status"] == "succeeded"


def test_a_bank_that_never_answers_is_given_up_after_a_day(shop: Shop, served_by: Answering) -> None:
    served_by(NotAnswered())
    shop.qr_code()
    last = schedule.of(Payment.objects.get())[-1]
    sweep(23 * 3600, since=last)
    assert Inquiry.objects.get().due_at is not None
    sweep(25 * 3600, since=last)
    assert Inquiry.objects.get().due_at is None


def test_a_merchant_that_is_not_connected_is_asked_for_in_vain(shop: Shop, db: None) -> None:
    Merchant.objects.update(mode="live", bank="scb")
    shop.qr_code()
    assert sweep() == 1
    assert (answers(), Payment.objects.get().status) == (["no_answer"], "pending")


def test_a_bank_that_hangs_costs_its_time_and_is_silent(
    shop: Shop, served_by: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "CALL_SECONDS", 0.1)
    release = threading.Event()
    served_by(lambda: release.wait(60) and NOTHING)
    shop.qr_code()
    sweep()
    release.set()
    assert answers() == ["no_answer"]


def test_what_nobody_understands_is_kept_once_for_staff(shop: Shop, served_by: Answering) -> None:
    served_by(Unreadable("what is this", body=b"<html>"))
    shop.qr_code()
    sweep(6)
    sweep(16)
    notice = Notice.objects.get()
    assert (notice.source, notice.verdict, notice.body) == ("inquiry", "unreadable", b"<html>")
    assert answers() == ["unreadable", "unreadable"]


def test_money_that_does_not_fit_is_kept_once_and_the_bank_is_asked_on(
    shop: Shop, bank: BankCaller, served_by: Answering
) -> None:
    code = shop.qr_code()
    served_by(found(bank.notice(code, satang=149_999)))
    sweep(6)
    sweep(16)
    assert (Receipt.objects.get().outcome, Notice.objects.count()) == ("amount_mismatch", 1)
    assert answers() == ["found", "found"]


def test_the_right_money_after_the_wrong_makes_the_payment_succeed(
    shop: Shop, bank: BankCaller, served_by: Answering
) -> None:
    code = shop.qr_code()
    wrong = bank.notice(code, satang=149_999)
    served_by(found(wrong), found(wrong, bank.notice(code)))
    sweep(6)
    sweep(16)
    assert sorted(Receipt.objects.values_list("outcome", flat=True)) == ["amount_mismatch", "applied"]
    assert (Payment.objects.get().status, Notice.objects.count()) == ("succeeded", 2)


def test_one_code_that_was_paid_twice_is_paid_once_and_a_duplicate_waits(
    shop: Shop, bank: BankCaller, served_by: Answering
) -> None:
    code = shop.qr_code()
    served_by(found(bank.notice(code), bank.notice(code)))
    sweep()
    assert sorted(Receipt.objects.values_list("outcome", flat=True)) == ["applied", "duplicate"]
    assert Event.objects.filter(type="payment.succeeded").count() == 1


def test_a_decline_that_nobody_told_fails_the_payment(
    shop: Shop, bank: BankCaller, served_by: Answering
) -> None:
    code = shop.qr_code()
    served_by(found(bank.notice(code, type="decline")))
    sweep()
    assert shop.payment(code["payment_id"])["status"] == "failed"
    assert sweep(3600) == 0


@pytest.mark.parametrize(
    ("after", "outcome", "status"), [(-1, "applied", "succeeded"), (1, "late", "expired")]
)
def test_money_found_after_the_end_counts_by_the_time_of_the_bank(
    shop: Shop, bank: BankCaller, served_by: Answering, after: int, outcome: str, status: str
) -> None:
    code = shop.qr_code(expiry_minutes=1)
    ends = end_of_code()
    served_by(found(bank.notice(code, paid_at=ends + timedelta(seconds=after))))
    payments.expire_due(now=ends + timedelta(seconds=2))
    assert sweep(61, since=ends) == 1
    assert (Receipt.objects.get().outcome, Payment.objects.get().status) == (outcome, status)


def test_what_a_callback_tells_later_is_a_repeat(shop: Shop, bank: BankCaller, served_by: Answering) -> None:
    notice = bank.notice(shop.qr_code())
    served_by(found(notice))
    sweep()
    bank.post(notice)
    told = Notice.objects.order_by("received_at").values_list("source", "verdict")
    assert sorted(told) == [("callback", "repeat"), ("inquiry", "new")]
    assert Receipt.objects.count() == 1


def test_what_cannot_be_kept_is_asked_again(
    shop: Shop, bank: BankCaller, served_by: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(**how: object) -> None:
        raise ValueError("the door is shut")

    code = shop.qr_code()
    served_by(found(bank.notice(code)))
    with monkeypatch.context() as patch:
        patch.setattr("receipts.inbox.accept", fails)
        sweep()
    assert answers() == ["no_answer"]
    sweep(12)
    assert shop.payment(code["payment_id"])["status"] == "succeeded"


def test_nobody_asks_what_another_worker_asks_until_its_lease_ends(
    shop: Shop, served_by: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = served_by()
    shop.qr_code()
    with monkeypatch.context() as patch:
        patch.setattr(calling, "all_at_once", lambda calls, silence: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            sweep()
    assert (sweep(), asked.questions) == (0, [])
    end_leases()
    assert (sweep(), len(asked.questions), InquiryAnswer.objects.count()) == (1, 1, 1)
