"""Many sweeps, callbacks, clocks and deaths at the same moment: one receipt, one move, one event."""

import json
import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from banks import Found
from core import clock
from payments import services as payments
from payments.models import Payment
from receipts import inbox, services
from receipts.models import Enrolment, Inquiry, InquiryAnswer, Notice, Receipt, Source
from tests.conftest import BankCaller, Shop, new_client, open_shop
from tests.receipts.inquiries.cast import NOTHING, AskedBank, Killed, answers, end_leases, found, sweep
from tests.threads import at_once
from transactions.models import Transaction
from webhooks.models import Event

Answering = Callable[..., AskedBank]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("books_are_right")]


@pytest.fixture
def shop(transactional_db: None) -> Shop:
    return open_shop("Race")


@pytest.fixture
def caller() -> BankCaller:
    return BankCaller(new_client())


def telling(notice: dict[str, Any]) -> Callable[[], Any]:
    return partial(BankCaller(new_client()).post, notice)


def succeeded_once(payment_id: str) -> bool:
    payment = Payment.objects.get(pk=payment_id)
    counts = (
        Receipt.objects.filter(payment=payment).count(),
        Transaction.objects.filter(payment_id=payment_id).count(),
        Event.objects.filter(subject_id=payment_id, type="payment.succeeded").count(),
    )
    return payment.status == "succeeded" and counts == (1, 1, 1)


def test_sweeps_at_once_ask_once(shop: Shop, served_by: Answering) -> None:
    asked = served_by()
    for _ in range(20):
        shop.qr_code()
    at_once(*[sweep] * 8)
    assert (len(asked.asked), len(set(asked.asked)), InquiryAnswer.objects.count()) == (20, 20, 20)


def test_a_callback_and_an_answer_at_once_are_one_movement_of_money(
    shop: Shop, caller: BankCaller, served_by: Answering
) -> None:
    for _ in range(50):
        code = shop.qr_code()
        notice = caller.notice(code)
        served_by(found(notice))
        at_once(telling(notice), sweep)
        assert succeeded_once(code["payment_id"])
        Inquiry.objects.update(due_at=None)


def test_an_answer_against_the_expiry_of_its_code_never_loses_the_money(
    shop: Shop, caller: BankCaller, served_by: Answering
) -> None:
    for _ in range(20):
        Enrolment.objects.update(created_before=clock.now())  # the round before was in the future
        code = shop.qr_code(expiry_minutes=1)
        served_by(found(caller.notice(code)))
        expire = partial(payments.expire_due, now=clock.now() + timedelta(seconds=61))
        at_once(lambda: sweep(61), expire)
        assert succeeded_once(code["payment_id"])


def test_what_is_paid_while_its_bank_is_asked_is_not_asked_again(
    shop: Shop, caller: BankCaller, served_by: Answering
) -> None:
    code = shop.qr_code()
    is_asked, may_answer = threading.Event(), threading.Event()

    def answer() -> Found:
        is_asked.set()
        may_answer.wait(60)
        return NOTHING

    def pay() -> int:
        is_asked.wait(60)
        status = caller.tell(code).status_code
        may_answer.set()
        return int(status)

    served_by(answer)
    assert at_once(sweep, pay) == [1, 200]
    assert succeeded_once(code["payment_id"])
    assert Inquiry.objects.get().due_at is None


@pytest.mark.parametrize(
    "point", ["receipts.inbox.accept", "receipts.services.apply", "receipts.inquiries._settle"]
)
def test_a_death_after_the_answer_is_made_good_when_the_lease_ends(
    shop: Shop,
    caller: BankCaller,
    served_by: Answering,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
) -> None:
    code = shop.qr_code()
    asked = served_by(found(caller.notice(code)))
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(point, _dies)
        sweep()
    assert (sweep(), answers()) == (0, []), "the lease holds"
    end_leases()
    sweep()
    services.apply_left(now=clock.now() + timedelta(minutes=1))
    assert succeeded_once(code["payment_id"])
    assert len(asked.questions) == (1 if point.endswith("_settle") else 2)


def test_a_death_in_the_call_is_made_good_when_the_lease_ends(
    shop: Shop, caller: BankCaller, served_by: Answering
) -> None:
    code = shop.qr_code()
    served_by(Killed(), found(caller.notice(code)))
    with pytest.raises(Killed):
        sweep()
    end_leases()
    assert sweep() == 1
    assert succeeded_once(code["payment_id"])


def test_a_message_and_an_answer_that_contradict_each_other_wait_for_staff(
    shop: Shop, caller: BankCaller, served_by: Answering
) -> None:
    notice = caller.notice(shop.qr_code(), satang=1)
    served_by(found(notice | {"amount": "2.00"}))
    caller.post(notice)
    sweep()
    assert Receipt.objects.count() == 1
    assert sorted(Notice.objects.values_list("source", "verdict")) == [
        ("callback", "new"),
        ("inquiry", "conflict"),
    ]


def test_eight_words_of_one_payment_by_two_ways_make_one_success(
    shop: Shop, caller: BankCaller, served_by: Answering
) -> None:
    code = shop.qr_code()
    notice = caller.notice(code)
    told = found(notice)
    accept = partial(
        inbox.accept,
        bank="sandbox",
        body=json.dumps(notice).encode(),
        notice=told.notices[0],
        now=clock.now(),
        source=Source.INQUIRY,
    )
    served_by(told)
    at_once(*[accept] * 3, *[telling(notice)] * 3, *[sweep] * 2)
    assert succeeded_once(code["payment_id"])


def _dies(*args: object, **how: object) -> None:
    raise Killed
