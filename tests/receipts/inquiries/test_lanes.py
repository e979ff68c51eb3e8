"""Codes that somebody waits for come first, and the others are not forgotten."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection

from core import clock
from receipts import rounds
from receipts.models import Inquiry, Turn
from tests.conftest import Shop
from tests.receipts.inquiries.cast import (
    AskedBank,
    copy_ten_thousand,
    drawn,
    end_of_code,
    shared_buffers,
    sweep,
)

Answering = Callable[..., AskedBank]
pytestmark = pytest.mark.django_db
# When codes of a minute have expired long ago and codes of an hour have not.
LATER = 600


def test_a_code_that_somebody_waits_for_comes_before_all_that_wait_longer(
    shop: Shop, served_by: Answering
) -> None:
    asked = served_by(per_second=1)
    drawn(shop, 5, minutes=1)
    (fresh,) = drawn(shop, 1, minutes=60)
    sweep(LATER)
    assert asked.asked == [fresh]


def test_neither_lane_waits_for_the_end_of_the_other(shop: Shop, served_by: Answering) -> None:
    asked = served_by(per_second=1)
    old, fresh = drawn(shop, 8, minutes=1), drawn(shop, 8, minutes=60)
    for _ in range(8):
        assert sweep(LATER) == 1
    assert [sum(code in lane for code in asked.asked) for lane in (fresh, old)] == [6, 2]


def test_what_one_lane_leaves_of_a_round_is_the_others(shop: Shop, served_by: Answering) -> None:
    served_by(per_second=3)
    drawn(shop, 4, minutes=1)
    drawn(shop, 1, minutes=60)
    assert (sweep(LATER), sweep(LATER)) == (3, 2)


@pytest.mark.parametrize(("after", "is_fresh"), [(1, True), (61, False)])
def test_nobody_waits_for_a_code_two_minutes_after_its_end(
    shop: Shop, served_by: Answering, after: int, is_fresh: bool
) -> None:
    """What is due next is a minute, and then five, after the end."""
    served_by()
    drawn(shop, 1, minutes=1)
    assert sweep(after, since=end_of_code()) == 1
    assert Inquiry.objects.get().is_fresh == is_fresh


def test_codes_that_were_never_asked_about_grow_old_too(shop: Shop, served_by: Answering) -> None:
    served_by(per_second=1)
    drawn(shop, 3, minutes=1)
    sweep(LATER)
    assert not Inquiry.objects.filter(is_fresh=True).exists()


@pytest.mark.slow
def test_a_round_costs_the_same_however_many_wait(shop: Shop, served_by: Answering) -> None:
    """20,000 codes are due and nobody waits for them; 20,000 that somebody waits for are due in a minute."""
    served_by()
    now = clock.now()
    for is_fresh in rounds.LANES:
        for _ in range(2):
            copy_ten_thousand(shop, now - timedelta(hours=1))
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO receipts_inquiry (payment_id, bank, step, due_at, is_fresh, created_at) "
                "SELECT id, 'sandbox', 0, %s, %s, created_at FROM payments_payment "
                "WHERE id NOT IN (SELECT payment_id FROM receipts_inquiry)",
                [
                    now + timedelta(minutes=1 if is_fresh else -1),
                    is_fresh,
                ],
            )
    Turn.objects.create(bank="sandbox", free_at=now)
    with connection.cursor() as cursor:
        # Without what other tests left dead in the indexes.
        cursor.execute("REINDEX TABLE payments_payment")
        cursor.execute("REINDEX TABLE receipts_inquiry")
        cursor.execute("ANALYZE payments_payment, receipts_inquiry")
    for query in (
        rounds.free_turns(now),
        *(rounds.lane("sandbox", now, is_fresh=is_fresh)[:2] for is_fresh in rounds.LANES),
    ):
        plan = query.explain(analyze=True, buffers=True)
        assert shared_buffers(plan) < 20, plan
