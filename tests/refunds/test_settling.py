"""How a refund ends: ledger, payment, history and notification say the same."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from banks import OrderNotice, Word
from core import clock
from payments.models import Payment
from receipts.orders import OWNERS
from refunds.models import MOVES, IllegalMove, Refund, Status
from tests.refunds.cast import NOBODY, PAYEE, Counter, carry_out, error_of
from tests.transfers.cast import Bank
from transactions.models import Entry, Journal
from transfers import services as transfers
from transfers.models import State, Transfer
from webhooks.models import Event

Serving = Callable[..., Bank]
DONE, REFUSED = Word("succeeded", "b-1"), Word("failed", "b-1", "invalid_account")


def told_of(refund: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The notifications about a refund: type and data."""
    events = Event.objects.filter(subject_id=refund["refund_id"]).order_by("created_at")
    return [(event.type, orjson.loads(event.body)["data"]) for event in events]


def facts_of(refund: dict[str, Any]) -> list[str]:
    return list(
        Journal.objects.filter(subject_id=refund["refund_id"]).order_by("id").values_list("fact", flat=True)
    )


def test_all_of_a_payment_goes_back(counter: Counter, served_by: Serving) -> None:
    bank = served_by()
    payment_id = counter.paid()
    refund = counter.refund(payment_id)
    carry_out(2)
    ended = counter.read(refund)
    assert (ended["status"], ended["pending_reason"], ended["failure_code"]) == ("completed", None, None)
    assert ended["completed_at"] == ended["updated_at"] > refund["created_at"]
    assert told_of(refund) == [("refund.completed", ended)]
    payment = counter.shop.payment(payment_id)
    assert (payment["status"], payment["amount_refunded"]) == ("refunded", 150_000)
    assert counter.balance() == (0, 0)
    assert (counter.history(), counter.history("payment")) == (
        [("succeeded", -150_000)],
        [("refunded", 150_000)],
    )
    assert facts_of(refund) == ["refund_reserved", "refund_paid"]
    assert (bank.sent, len(bank.inquired)) == ([refund["refund_id"]], 1)


def test_parts_go_back_one_by_one_and_the_last_makes_it_refunded(
    counter: Counter, served_by: Serving
) -> None:
    served_by(sends=[DONE])
    payment_id = counter.paid()
    for number, amount in enumerate([50_000, 99_999, 1]):
        counter.refund(payment_id, amount=amount)
        assert counter.shop.payment(payment_id)["status"] == "succeeded"
        carry_out()
        assert len(counter.history()) == number + 1
    payment = counter.shop.payment(payment_id)
    assert (payment["status"], payment["amount_refunded"]) == ("refunded", 150_000)
    assert counter.balance() == (0, 0)


def test_one_part_that_is_under_way_keeps_a_payment_from_being_refunded(
    counter: Counter, served_by: Serving
) -> None:
    served_by(sends=[DONE, Word("processing")], inquiries=[Word("processing")])
    payment_id = counter.paid()
    counter.refund(payment_id, amount=50_000)
    carry_out()
    counter.refund(payment_id)
    carry_out(2)
    payment = counter.shop.payment(payment_id)
    assert (payment["status"], payment["amount_refunded"]) == ("succeeded", 50_000)
    assert counter.balance() == (0, 100_000)


def test_a_refund_that_fails_is_the_merchants_money_again(counter: Counter, served_by: Serving) -> None:
    served_by(sends=[REFUSED])
    payment_id = counter.paid()
    refund = counter.refund(payment_id, amount=60_000)
    carry_out()
    ended = counter.read(refund)
    assert (ended["status"], ended["failure_code"], ended["completed_at"]) == (
        "failed",
        "invalid_account",
        None,
    )
    assert told_of(refund) == [("refund.failed", ended)]
    assert counter.balance() == (150_000, 0)
    assert counter.history() == [("failed", -60_000)]
    assert facts_of(refund) == ["refund_reserved", "refund_released"]
    payment = counter.shop.payment(payment_id)
    assert (payment["status"], payment["amount_refunded"]) == ("succeeded", 0)
    assert counter.refund(payment_id, destination=PAYEE)["amount"] == 150_000


@pytest.mark.parametrize("is_addressed", [True, False])
def test_a_refund_of_which_no_bank_was_told_can_be_canceled(
    counter: Counter, served_by: Serving, is_addressed: bool
) -> None:
    bank = served_by()
    payment_id = counter.paid(payer=None if is_addressed else NOBODY)
    refund = counter.refund(payment_id)
    answer = counter.act(refund, "cancel")
    assert answer.status_code == 200
    canceled = answer.json()
    assert (canceled["status"], canceled["pending_reason"], canceled["completed_at"]) == (
        "canceled",
        None,
        None,
    )
    assert counter.read(refund) == canceled
    carry_out(2)
    assert (bank.sent, told_of(refund)) == ([], [])
    assert counter.balance() == (150_000, 0)
    assert counter.history() == [("failed", -150_000)]
    assert counter.refund(payment_id)["amount"] == 150_000


@pytest.mark.parametrize(
    ("replies", "rounds"),
    [
        ({"sends": [Word("processing")]}, 1),
        ({"sends": [Word("unknown")], "inquiries": [Word("unknown")]}, 3),
        ({"sends": [DONE]}, 1),
        ({"sends": [REFUSED]}, 1),
    ],
)
def test_a_refund_of_which_a_bank_was_told_cannot_be_canceled(
    counter: Counter, served_by: Serving, replies: dict[str, Any], rounds: int
) -> None:
    served_by(**replies)
    refund = counter.refund(counter.paid())
    carry_out(rounds)
    before = counter.read(refund), counter.balance()
    assert error_of(counter.act(refund, "cancel")) == (400, "refund_not_cancelable", None)
    assert (counter.read(refund), counter.balance()) == before


def test_a_canceled_refund_is_not_canceled_again(counter: Counter) -> None:
    refund = counter.refund(counter.paid())
    assert counter.act(refund, "cancel").status_code == 200
    assert error_of(counter.act(refund, "cancel")) == (400, "refund_not_cancelable", None)
    assert counter.balance() == (150_000, 0)


def test_a_refund_that_never_reached_its_bank_can_be_canceled(counter: Counter, served_by: Serving) -> None:
    served_by(sends=[Word("not_sent")])
    refund = counter.refund(counter.paid())
    carry_out()
    assert counter.act(refund, "cancel").json()["status"] == "canceled"


def test_an_unknown_answer_is_never_sent_twice_and_settles_once_it_is_known(
    counter: Counter, served_by: Serving
) -> None:
    bank = served_by(sends=[Word("unknown")], inquiries=[Word("unknown"), Word("not_sent"), DONE])
    refund = counter.refund(counter.paid())
    carry_out(2)
    assert counter.read(refund)["status"] == "pending"
    assert counter.balance() == (0, 150_000)
    carry_out(4)
    assert counter.read(refund)["status"] == "completed"
    assert (bank.sent, len(bank.inquired)) == ([refund["refund_id"]], 3)
    assert facts_of(refund) == ["refund_reserved", "refund_paid"]


def test_the_banks_own_word_settles_it_once(counter: Counter, served_by: Serving) -> None:
    served_by()
    refund = counter.refund(counter.paid())
    carry_out()
    for _ in range(2):
        transfers.hear(OrderNotice(refund["refund_id"], "succeeded"), OWNERS["ref"], now=clock.now())
    assert [kind for kind, _ in told_of(refund)] == ["refund.completed"]
    assert facts_of(refund) == ["refund_reserved", "refund_paid"]


@pytest.mark.parametrize("was_known", [True, False])
def test_money_that_comes_back_after_success_waits_for_staff(
    counter: Counter, served_by: Serving, was_known: bool
) -> None:
    """`completed` is a last word to merchants, so nothing they see changes; nor is the money lost."""
    served_by(sends=[DONE if was_known else Word("processing")])
    payment_id = counter.paid()
    refund = counter.refund(payment_id)
    carry_out()
    for _ in range(2):
        transfers.hear(OrderNotice(refund["refund_id"], "returned"), OWNERS["ref"], now=clock.now())
    assert counter.read(refund)["status"] == "completed"
    assert [kind for kind, _ in told_of(refund)] == ["refund.completed"]
    assert counter.shop.payment(payment_id)["status"] == "refunded"
    assert facts_of(refund) == ["refund_reserved", "refund_paid", "held"]
    assert Entry.objects.get(account_id="suspense:sandbox").amount == 150_000
    assert counter.balance() == (0, 0)
    assert Refund.objects.get().returned_at is not None
    assert Transfer.objects.get().state == State.RETURNED


def test_a_refund_goes_only_where_the_table_says(counter: Counter) -> None:
    counter.refund(counter.paid())
    for start in Status:
        for target in Status:
            if target not in MOVES.get(start, set()):
                with pytest.raises(IllegalMove):
                    Refund(status=start).become(target)


def test_the_payment_tells_when_it_changed(counter: Counter, served_by: Serving) -> None:
    served_by(sends=[DONE])
    payment_id = counter.paid()
    refund = counter.refund(payment_id, amount=1)
    before = Payment.objects.get(pk=payment_id).updated_at
    carry_out()
    shown = counter.shop.get(f"/v1/payments/{payment_id}").json()
    assert Payment.objects.get(pk=payment_id).updated_at > before
    assert shown["updated_at"] == counter.read(refund)["completed_at"]
