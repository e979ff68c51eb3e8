"""No merchant takes the place of others, however much it asks and whether or not its bank answers."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from core import clock
from receipts.models import Inquiry, Rest, Turn
from tests.conftest import Shop
from tests.receipts.inquiries.cast import AskedBank, drawn, sweep

Answering = Callable[..., AskedBank]
pytestmark = pytest.mark.django_db


def test_a_round_goes_round_the_merchants(shop: Shop, rival: Shop, served_by: Answering) -> None:
    asked = served_by(per_second=2)
    many, one = drawn(shop, 5), drawn(rival)
    sweep()
    assert [len(set(asked.asked) & set(theirs)) for theirs in (many, one)] == [1, 1]


def test_what_others_leave_of_a_round_one_merchant_may_have(
    shop: Shop, rival: Shop, served_by: Answering
) -> None:
    served_by(per_second=4)
    drawn(shop, 5)
    drawn(rival)
    assert (sweep(), sweep()) == (4, 2)


def test_a_merchant_without_answers_rests_and_its_bank_does_not(
    shop: Shop, rival: Shop, served_by: Answering
) -> None:
    asked = served_by()
    asked.silent_about.update(drawn(shop, 3))
    assert (sweep(6), Turn.objects.get().silences) == (3, 0)
    drawn(shop)
    (alive,) = drawn(rival)
    assert (sweep(6.5), asked.asked[-1]) == (1, alive)
    assert Inquiry.objects.filter(payment__merchant=shop.merchant).count() == 4
    assert sweep(12) == 4, "the rest is over"


def test_a_merchant_without_answers_rests_longer_and_longer_until_it_has_one(
    shop: Shop, served_by: Answering
) -> None:
    asked = served_by()
    asked.silent_about.update(drawn(shop))
    for seconds, silences in ((6, 1), (60, 2), (120, 3), (200, 4), (400, 5)):
        assert sweep(seconds) == 1
        assert Rest.objects.get().silences == silences
    asked.silent_about.clear()
    assert (sweep(1000), Rest.objects.count()) == (1, 0)


def test_a_merchant_with_one_answer_among_silence_goes_on(shop: Shop, served_by: Answering) -> None:
    asked = served_by()
    asked.silent_about.update(drawn(shop, 2))
    drawn(shop)
    assert (sweep(), Rest.objects.count()) == (3, 0)


def test_several_silent_merchants_are_a_silent_bank(shop: Shop, rival: Shop, served_by: Answering) -> None:
    asked = served_by()
    asked.silent_about.update(drawn(shop) + drawn(rival))
    assert (sweep(), Turn.objects.get().silences) == (2, 1)


def test_what_is_put_off_is_due_again_as_if_it_had_been_asked_in_vain(
    shop: Shop, served_by: Answering
) -> None:
    asked = served_by(per_second=1)
    asked.silent_about.update(drawn(shop, 2, minutes=1))
    in_ten_minutes = Inquiry.objects.filter(due_at__gt=clock.now() + timedelta(seconds=2500))
    assert (sweep(2000), in_ten_minutes.count()) == (1, 1)
    assert (sweep(2000.5), in_ten_minutes.count()) == (0, 2)
