"""No merchant takes the place of others, however much it asks and whether or not its bank answers."""

from datetime import timedelta

import pytest

from core import clock
from reconciliation.models import Backoff, BankRateLimit, Inquiry
from tests.conftest import Shop
from tests.reconciliation.inquiries.builders import Answering, create_codes, sweep

pytestmark = pytest.mark.django_db


def test_batch_alternates_between_merchants(shop: Shop, other_shop: Shop, served_by: Answering) -> None:
    asked = served_by(per_second=2)
    many, one = create_codes(shop, 5), create_codes(other_shop)
    sweep()
    assert [len(set(asked.references) & set(theirs)) for theirs in (many, one)] == [1, 1]


def test_one_merchant_may_use_the_whole_batch(shop: Shop, other_shop: Shop, served_by: Answering) -> None:
    served_by(per_second=4)
    create_codes(shop, 5)
    create_codes(other_shop)
    assert (sweep(), sweep()) == (4, 2)


@pytest.mark.slow
def test_merchant_without_answers_backs_off_alone(shop: Shop, other_shop: Shop, served_by: Answering) -> None:
    asked = served_by()
    asked.silent_about.update(create_codes(shop, 3))
    assert (sweep(6), BankRateLimit.objects.get().silent_batches) == (3, 0)
    create_codes(shop)
    (alive,) = create_codes(other_shop)
    assert (sweep(6.5), asked.references[-1]) == (1, alive)
    assert Inquiry.objects.filter(payment__merchant=shop.merchant).count() == 4
    assert sweep(12) == 4, "the rest is over"


@pytest.mark.slow
def test_merchant_backoff_grows_until_an_answer(shop: Shop, served_by: Answering) -> None:
    asked = served_by()
    asked.silent_about.update(create_codes(shop))
    for seconds, silent_batches in ((6, 1), (60, 2), (120, 3), (200, 4), (400, 5)):
        assert sweep(seconds) == 1
        assert Backoff.objects.get().silent_batches == silent_batches
    asked.silent_about.clear()
    assert (sweep(1000), Backoff.objects.count()) == (1, 0)


def test_one_answer_prevents_merchant_backoff(shop: Shop, served_by: Answering) -> None:
    asked = served_by()
    asked.silent_about.update(create_codes(shop, 2))
    create_codes(shop)
    assert (sweep(), Backoff.objects.count()) == (3, 0)


def test_several_merchants_without_answers_back_off_the_bank(
    shop: Shop, other_shop: Shop, served_by: Answering
) -> None:
    asked = served_by()
    asked.silent_about.update(create_codes(shop) + create_codes(other_shop))
    assert (sweep(), BankRateLimit.objects.get().silent_batches) == (2, 1)


def test_postponed_inquiry_is_rescheduled_like_no_answer(shop: Shop, served_by: Answering) -> None:
    asked = served_by(per_second=1)
    asked.silent_about.update(create_codes(shop, 2, minutes=1))
    in_ten_minutes = Inquiry.objects.filter(due_at__gt=clock.now() + timedelta(seconds=2500))
    assert (sweep(2000), in_ten_minutes.count()) == (1, 1)
    assert (sweep(2000.5), in_ten_minutes.count()) == (0, 2)
