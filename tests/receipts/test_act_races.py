"""Decisions, the bank's word and the clock at the same moment: real threads, each with its own connection."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from banks import OrderNotice, Word
from core import clock
from payments import services as payments
from payments.models import Payment
from receipts import acts, settling
from receipts.acts import AlreadyDone, NotPossible
from receipts.models import Act, Receipt, Return
from receipts.orders import OWNERS
from tests.conftest import BankCaller, new_client, open_shop
from tests.receipts.cast import (
    WHY,
    Till,
    carry_back,
    decide,
    kinds_told,
    now_of,
    return_of,
    reversal_of,
    suspense,
)
from tests.receipts.statements.cast import bot, line_of, load
from tests.refunds.cast import carry_out
from tests.threads import at_once
from tests.transfers.cast import Bank
from transfers import services as transfers

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("books_are_right")]
Serving = Callable[..., Bank]
ROUNDS = 10
DONE, REFUSED, UNDER_WAY = Word("succeeded", "b-1"), Word("failed", "b-1"), Word("processing", "b-1")


@pytest.fixture
def till() -> Till:
    return Till(open_shop("Race"), BankCaller(new_client()))


def deciding(deed: str, receipt: Receipt, **more: Any) -> Callable[[], Any]:
    """Somebody's click: what came of it, or the refusal."""

    def click() -> Any:
        try:
            return decide(deed, receipt, **more)
        except NotPossible as refusal:
            return refusal

    return click


def telling(notice: dict[str, Any]) -> Callable[[], Any]:
    return partial(BankCaller(new_client()).post, notice)


def done(results: list[Any]) -> int:
    """How many of the clicks did something."""
    return sum(not isinstance(result, NotPossible) for result in results)


@pytest.mark.parametrize(
    ("deed", "more"),
    [("accept", {}), ("attach", {}), ("send_back", {}), ("send_back_by_hand", {"bank_reference": "b"})],
)
def test_of_eight_clicks_one_counts(till: Till, deed: str, more: dict[str, str]) -> None:
    receipt, other = till.late(), till.shop.qr_code()["payment_id"]
    given = {"payment_id": other} if deed == "attach" else more
    results = at_once(*[deciding(deed, receipt, **given)] * 8)
    assert (done(results), sum(isinstance(result, AlreadyDone) for result in results)) == (1, 7)
    assert Act.objects.count() == 1


def test_of_different_decisions_at_once_one_counts(till: Till) -> None:
    for _ in range(ROUNDS):
        receipt, other = till.late(), till.shop.qr_code()["payment_id"]
        results = at_once(
            deciding("accept", receipt),
            deciding("attach", receipt, payment_id=other),
            deciding("send_back", receipt),
            deciding("send_back_by_hand", receipt, bank_reference="b"),
        )
        assert (done(results), Act.objects.filter(subject_id=receipt.id).count()) == (1, 1)


def test_a_refund_that_came_back_is_kept_once(till: Till, served_by: Serving) -> None:
    served_by(sends=[DONE])
    refund_id = till.refund(till.paid())["refund_id"]
    carry_out()
    transfers.hear(OrderNotice(refund_id, "returned"), OWNERS["ref"], now=clock.now())

    def keep() -> Any:
        try:
            return acts.keep(refund_id, by="malee", why=WHY, now=clock.now())
        except AlreadyDone as refusal:
            return refusal

    assert done(at_once(*[keep] * 8)) == 1
    assert (till.balance(), suspense()) == ((150_000, 0), 0)


# --- against the bank's word -------------------------------------------------------------------------------


@pytest.mark.parametrize("deed", ["accept", "attach", "send_back"])
def test_a_decision_against_a_reversal_leaves_the_money_nowhere_twice(till: Till, deed: str) -> None:
    for _ in range(ROUNDS):
        receipt, other = till.late(), till.shop.qr_code()["payment_id"]
        more = {"payment_id": other} if deed == "attach" else {}
        at_once(deciding(deed, receipt, **more), telling(reversal_of(receipt)))
        reversal = Receipt.objects.get(kind="reversal", bank_transaction_id=receipt.bank_transaction_id)
        assert now_of(reversal) == ("reversed", "")
        assert now_of(receipt)[1] in ("taken_back", {"accept": "accepted", "attach": "attached"}.get(deed))
        assert (suspense(), till.held()) == (0, {"available": 0, "reserved": 0})


def test_the_right_amount_as_another_is_accepted_pays_once(till: Till) -> None:
    for number in range(ROUNDS):
        code = till.shop.qr_code()
        less = till.told(code, satang=100)
        results = at_once(deciding("accept", less), telling(till.bank.notice(code)))
        payment = Payment.objects.get(pk=code["payment_id"])
        assert payment.status == "succeeded"
        assert payment.received == (100 if done(results[:1]) else 150_000), number
        right = Receipt.objects.get(reference1=less.reference1, amount=150_000)
        assert (now_of(right)[0], now_of(less)[1]) in [("duplicate", "accepted"), ("applied", "")]
        assert kinds_told(code["payment_id"]).count("payment.succeeded") == 1


def test_two_who_attach_to_one_payment_pay_it_once(till: Till) -> None:
    for _ in range(ROUNDS):
        payment_id, odd = till.shop.qr_code()["payment_id"], [till.unmatched() for _ in range(2)]
        results = at_once(*[deciding("attach", receipt, payment_id=payment_id) for receipt in odd])
        assert (done(results), sorted(now_of(receipt)[1] for receipt in odd)) == (1, ["", "attached"])
        assert kinds_told(payment_id).count("payment.succeeded") == 1


def test_money_attached_as_the_payment_is_paid_pays_it_once(till: Till) -> None:
    for _ in range(ROUNDS):
        code, receipt = till.shop.qr_code(), till.unmatched()
        attach = deciding("attach", receipt, payment_id=code["payment_id"])
        results = at_once(attach, telling(till.bank.notice(code)))
        outcomes = Receipt.objects.filter(payment_id=code["payment_id"]).values_list("outcome", flat=True)
        assert sorted(outcomes) == (["duplicate", "unmatched"] if done(results[:1]) else ["applied"])
        assert kinds_told(code["payment_id"]).count("payment.succeeded") == 1


def test_money_attached_as_the_code_ends_pays_it(till: Till) -> None:
    for _ in range(ROUNDS):
        code, receipt = till.shop.qr_code(expiry_minutes=1), till.unmatched()
        sweep = partial(payments.expire_due, now=clock.now() + timedelta(minutes=2))
        at_once(deciding("attach", receipt, payment_id=code["payment_id"]), sweep)
        assert till.shop.payment(code["payment_id"])["status"] == "succeeded"
        assert kinds_told(code["payment_id"]).count("payment.succeeded") == 1


def test_a_credit_and_its_reversal_at_once_are_nothing(till: Till) -> None:
    for changes in [{}, {"reference1": "NOBODYKNOWSTHIS00000"}] * ROUNDS:
        notice = till.bank.notice(till.shop.qr_code(), **changes)
        at_once(*[telling(notice | {"type": kind}) for kind in ("credit", "reversal")] * 3)
        reversal = Receipt.objects.get(bank_transaction_id=notice["transaction_id"], kind="reversal")
        assert reversal.outcome == "reversed"
        assert (suspense(), till.held()) == (0, {"available": 0, "reserved": 0})


@pytest.mark.parametrize("ends", [DONE, REFUSED])
def test_a_reversal_as_a_return_ends_is_carried_out_or_waits(
    till: Till, served_by: Serving, ends: Word
) -> None:
    for _ in range(ROUNDS):
        served_by(sends=[UNDER_WAY], inquiries=[ends])
        receipt = till.unmatched()
        decide("send_back", receipt)
        carry_back()
        at_once(partial(settling.run_due, now=clock.now), telling(reversal_of(receipt)))
        reversal = Receipt.objects.get(kind="reversal", bank_transaction_id=receipt.bank_transaction_id)
        found = now_of(reversal)[0], now_of(receipt)[1], return_of(receipt).status
        assert found == (
            ("reversed", "taken_back", "failed")
            if ends is REFUSED
            else ("unmatched", "sent_back", "completed")
        )
        assert suspense() == 0


def test_a_reversal_as_its_bank_is_told_to_send_stops_it_or_waits(till: Till, served_by: Serving) -> None:
    for _ in range(ROUNDS):
        bank = served_by(sends=[UNDER_WAY], inquiries=[UNDER_WAY])
        receipt = till.unmatched()
        decide("send_back", receipt)
        at_once(partial(settling.run_due, now=clock.now), telling(reversal_of(receipt)))
        made = return_of(receipt)
        assert (bool(bank.sent), made.status, now_of(receipt)[1]) in [
            (False, "canceled", "taken_back"),
            (True, "pending", "sending_back"),
        ]
        assert not Return.objects.filter(status="failed").exists()


def test_two_people_cannot_merge_two_exceptions_with_each_other(till: Till) -> None:
    for _ in range(ROUNDS):
        code, late = till.shop.qr_code(expiry_minutes=1), clock.now() + timedelta(minutes=5)
        load(bot(line_of(code, late + timedelta(days=1))))
        line, callback = Receipt.objects.get(resolution="", source="statement"), till.told(code, paid_at=late)
        before = suspense()
        assert done(at_once(deciding("merge", line), deciding("merge", callback))) == 1
        assert suspense() == before - callback.amount
        Receipt.objects.get(pk__in=[line.id, callback.id], resolution="merged")
        (left,) = [each for each in (line, callback) if now_of(each)[1] == ""]
        if not left.is_confirmed:
            decide("confirm", left, by="somsri")
        decide("send_back_by_hand", left, bank_reference="counter 7")
