"""What a payment's timeline costs does not grow with the tables that it is read from."""

from collections.abc import Callable

import pytest
from django.db import connection, transaction

from console.timeline import reading
from console.timeline.entries import Moment, Subject
from core import clock
from payments.models import Payment
from tests.conftest import Shop

RECEIPT, REFUND, RETURN = (f"{prefix}_0oDFPazyVRoGTTDIuRe7QK7m3b4" for prefix in ("rcp", "ref", "rtn"))


@pytest.mark.parametrize("kind", reading.KINDS, ids=lambda kind: kind.__module__ + "." + kind.__name__)
def test_each_kind_of_entry_finds_its_rows_by_an_index(shop: Shop, kind: Callable[[Subject], Moment]) -> None:
    payment = Payment(pk=shop.qr_code()["payment_id"], merchant=shop.merchant, status="refunded", amount=1)
    payment.created_at = payment.expires_at = clock.now()
    subject = Subject(payment, [RECEIPT], [REFUND], [RETURN], clock.now())
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        plan = kind(subject).rows.order_by().explain()
    assert "Index Cond" in plan or plan == ""
    assert "Seq Scan" not in plan
