"""What a payment's timeline costs does not grow with the tables that it is read from."""

from collections.abc import Callable

import pytest
from django.core.exceptions import EmptyResultSet

from core import clock
from payments.models import Payment
from tests.conftest import Shop
from tests.console.query_plans import unbounded
from timeline import pages
from timeline.entries import EntrySource, PaymentContext

RECEIPT, REFUND, RETURN = (f"{prefix}_0oDFPazyVRoGTTDIuRe7QK7m3b4" for prefix in ("rcp", "ref", "rtn"))

# An index of the messages that wait for a person: they are few, so it may be read whole.
WAITING = frozenset({"notification_open_exceptions"})


@pytest.mark.parametrize("kind", pages.SOURCES, ids=lambda kind: kind.__module__ + "." + kind.__name__)
@pytest.mark.slow
def test_each_timeline_source_uses_an_index(
    shop: Shop, kind: Callable[[PaymentContext], EntrySource]
) -> None:
    payment = Payment(pk=shop.qr_code()["payment_id"], merchant=shop.merchant, status="refunded", amount=1)
    payment.created_at = payment.expires_at = clock.now()
    subject = PaymentContext(payment, [RECEIPT], [REFUND], [RETURN], clock.now())
    try:
        sql, params = kind(subject).rows.order_by().query.sql_with_params()
    except EmptyResultSet:  # it asks the database nothing
        return
    assert unbounded(sql, small=WAITING, params=params) == []
