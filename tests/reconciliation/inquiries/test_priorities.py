"""Urgent inquiries come first, and the others still get a share."""

from datetime import timedelta

import pytest
from django.db import connection

from core import clock
from reconciliation.inquiries import batches
from reconciliation.models import BankRateLimit, Inquiry
from tests.conftest import Shop
from tests.reconciliation.inquiries.builders import (
    Answering,
    code_expiry,
    copy_ten_thousand,
    create_codes,
    run_batch,
    shared_buffers,
    sweep,
)

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
# Seconds after which codes of a minute have expired long ago and codes of an hour have not.
LATER = 600


def test_urgent_inquiries_come_first(shop: Shop, served_by: Answering) -> None:
    fake_bank = served_by(per_second=1)
    create_codes(shop, 5, minutes=1)
    (fresh,) = create_codes(shop, 1, minutes=60)
    sweep(LATER)
    assert fake_bank.references == [fresh]


def test_urgent_and_normal_priority_both_get_inquiries(shop: Shop, served_by: Answering) -> None:
    fake_bank = served_by(per_second=1)
    old, fresh = create_codes(shop, 8, minutes=1), create_codes(shop, 8, minutes=60)
    for _ in range(8):
        assert sweep(LATER) == 1
    assert [sum(code in codes for code in fake_bank.references) for codes in (fresh, old)] == [6, 2]


def test_unused_inquiry_capacity_goes_to_the_other_priority(shop: Shop, served_by: Answering) -> None:
    served_by(per_second=3)
    create_codes(shop, 4, minutes=1)
    create_codes(shop, 1, minutes=60)
    assert (sweep(LATER), sweep(LATER)) == (3, 2)


@pytest.mark.parametrize(("after", "is_urgent"), [(1, True), (61, False)])
def test_inquiry_is_not_urgent_two_minutes_after_expiry(
    shop: Shop, served_by: Answering, after: int, is_urgent: bool
) -> None:
    """The next inquiries are due a minute, and then five minutes, after the expiry."""
    served_by()
    create_codes(shop, 1, minutes=1)
    assert sweep(after, since=code_expiry()) == 1
    assert Inquiry.objects.get().is_urgent == is_urgent


def test_overdue_inquiries_lose_urgency_after_expiry(shop: Shop, served_by: Answering) -> None:
    served_by(per_second=1)
    create_codes(shop, 3, minutes=1)
    sweep(LATER)
    assert not Inquiry.objects.filter(is_urgent=True).exists()


def test_inquiry_batch_cost_does_not_depend_on_number_of_inquiries(shop: Shop, served_by: Answering) -> None:
    """20,000 inquiries without priority are due, and 20,000 urgent ones are due in a minute."""
    served_by()
    now = clock.now()
    for is_urgent in batches.PRIORITIES:
        for _ in range(2):
            copy_ten_thousand(shop, now - timedelta(hours=1))
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO reconciliation_inquiry (payment_id, bank, schedule_index, due_at, is_urgent, "
                "created_at) "
                "SELECT id, 'sandbox', 0, %s, %s, created_at FROM payments_payment "
                "WHERE id NOT IN (SELECT payment_id FROM reconciliation_inquiry)",
                [now + timedelta(minutes=1 if is_urgent else -1), is_urgent],
            )
    BankRateLimit.objects.create(bank="sandbox", available_at=now)
    with connection.cursor() as cursor:
        # Remove dead index entries of other tests.
        cursor.execute("REINDEX TABLE payments_payment")
        cursor.execute("REINDEX TABLE reconciliation_inquiry")
        cursor.execute("ANALYZE payments_payment, reconciliation_inquiry")
    for query in (
        batches.available_banks(now),
        *(
            batches.due_inquiries(Inquiry, "sandbox", now, is_urgent=is_urgent)[:2]
            for is_urgent in batches.PRIORITIES
        ),
    ):
        plan = query.explain(analyze=True, buffers=True)
        assert shared_buffers(plan) < 20, plan


def test_due_inquiries_are_read_in_the_order_of_an_index_without_statistics(shop: Shop) -> None:
    """PostgreSQL would read and sort all that are due, to examine the first 500."""
    create_codes(shop)
    assert run_batch()[0] == 1
    due = batches.due_inquiries(Inquiry, "sandbox", clock.now(), is_urgent=True).select_related("payment")
    plan = due[: batches.MAX_EXAMINED].explain()
    assert "inquiry_priority" in plan
    assert not any(word in plan for word in ("Sort", "Bitmap", "Seq Scan")), plan
