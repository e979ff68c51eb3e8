"""What a payment's timeline costs does not grow with the tables that it is read from."""

from collections.abc import Callable

import pytest
from django.core.exceptions import EmptyResultSet

from console.timeline import reading
from console.timeline.entries import Moment, Subject
from core import clock
from payments.models import Payment
from tests.conftest import Shop
from tests.console.plans import unbounded

RECEIPT, REFUND, RETURN = (f"{prefix}_0oDFPazyVRoGTTDIuRe7QK7m3b4" for prefix in ("rcp", "ref", "rtn"))

# An index of the messages that wait for a person: they are few, so it may be read whole.
WAITING = frozenset({"notice_for_staff"})


@pytest.mark.parametrize("kind", reading.KINDS, ids=lambda kind: kind.__module__ + "." + kind.__name__)
def test_each_kind_of_entry_finds_its_rows_by_an_index(shop: Shop, kind: Callable[[Subject], Moment]) -> None:
    payment = Payment(pk=shop.qr_code()["payment_id"], merchant=shop.merchant, status="refunded", amount=1)
    payment.created_at = payment.expires_at = clock.now()
    subject = Subject(payment, [RECEIPT], [REFUND], [RETURN], clock.now())
    try:
        sql, params = kind(subject).rows.order_by().query.sql_with_params()
    except EmptyResultSet:  # it asks the database nothing
        return
    assert unbounded(sql, small=WAITING, params=params) == []
