"""From queued to the bank's last word."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from banks import Word
from core import clock
from tests.transfers.cast import Bank, Recorder, an_order, pass_time, queued, work
from transfers import services
from transfers.errors import AlreadyTold
from transfers.models import State

Serving = Callable[..., Bank]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("stopped_clock")]


def test_an_order_is_sent_once_and_inquired_until_the_bank_knows(owner: Recorder, served_by: Serving) -> None:
    bank = served_by(inquiries=[Word("processing"), Word("unknown"), Word("succeeded", "b-1")])
    transfer = queued()
    for _ in range(5):
        work(owner)
        pass_time()
    transfer.refresh_from_db()
    assert (bank.sent, len(bank.inquired)) == ([transfer.id], 3)
    assert (transfer.state, transfer.bank_reference, transfer.failure_code) == ("succeeded", "b-1", "")
    assert (owner.began, owner.settled) == ([transfer.id], [(transfer.id, Word("succeeded", "b-1"))])


@pytest.mark.parametrize(
    ("word", "state", "code"),
    [
        (Word("succeeded", "b-1"), State.SUCCEEDED, ""),
        (Word("failed", "b-1", "invalid_account"), State.FAILED, "invalid_account"),
        (Word("failed"), State.FAILED, "rejected_by_bank"),
    ],
)
def test_a_last_word_at_once_is_settled_at_once(
    owner: Recorder, served_by: Serving, word: Word, state: State, code: str
) -> None:
    served_by(sends=[word])
    transfer = queued()
    work(owner)
    transfer.refresh_from_db()
    assert (transfer.state, transfer.failure_code, transfer.lease_until) == (state, code, None)
    assert owner.settled == [(transfer.id, Word(word.fate, word.reference, code))]


def test_what_never_reached_the_bank_is_sent_again(owner: Recorder, served_by: Serving) -> None:
    bank = served_by(sends=[Word("not_sent"), Word("not_sent"), Word("succeeded")])
    transfer = queued()
    for _ in range(3):
        work(owner)
        assert work(owner) == 0
        pass_time(6)
    transfer.refresh_from_db()
    assert (len(bank.sent), bank.inquired, transfer.state) == (3, [], State.SUCCEEDED)
    assert (len(owner.began), owner.fates) == (3, ["succeeded"])


def test_an_inquiry_that_reaches_nobody_never_makes_it_sent_again(
    owner: Recorder, served_by: Serving
) -> None:
    bank = served_by(sends=[Word("unknown")], inquiries=[Word("not_sent")])
    transfer = queued()
    for _ in range(4):
        work(owner)
        pass_time()
    transfer.refresh_from_db()
    assert (len(bank.sent), len(bank.inquired), transfer.state) == (1, 3, State.TOLD)


def test_a_canceled_order_is_never_sent(owner: Recorder, served_by: Serving) -> None:
    bank = served_by()
    transfer = queued()
    services.cancel(transfer.id, now=clock.now())
    pass_time()
    assert work(owner) == 0
    assert (bank.sent, owner.began, owner.settled) == ([], [], [])


def test_an_order_that_was_told_cannot_be_canceled(owner: Recorder, served_by: Serving) -> None:
    served_by()
    transfer = queued()
    work(owner)
    with pytest.raises(AlreadyTold):
        services.cancel(transfer.id, now=clock.now())


def test_what_is_not_due_or_for_another_purpose_is_left(owner: Recorder, served_by: Serving) -> None:
    bank = served_by()
    queued(at=clock.now() + timedelta(minutes=1))
    queued("refund")
    assert work(owner) == 0
    assert bank.sent == []


@pytest.mark.parametrize(
    ("amounts", "explain"), [([150_000], True), ([40_000, 110_000], True), ([40_000], False), ([], False)]
)
def test_orders_explain_that_a_bank_took_a_payment_back_only_where_they_are_for_all_of_it(
    amounts: list[int], explain: bool
) -> None:
    for amount in amounts:
        no_account = {"bank_code": "", "account": "", "account_name": ""}
        order = an_order("refund", amount=amount, charge_id="T1", **no_account)
        services.queue(order, route="bank:bbl", at=clock.now(), merchant_id="")
    found = services.taking_back(["T1", ""], route="bank:bbl", amount=150_000)
    assert len(found) == (len(amounts) if explain else 0)
