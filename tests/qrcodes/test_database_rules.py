"""Triggers check what foreign keys would check of payments and codes."""

import json

from payments.models import Payment
from tests.conftest import Shop
from tests.factories import PaymentFactory
from tests.sqlstates import CHECK_VIOLATION, FOREIGN_KEY_VIOLATION, NOT_ALLOWED, sqlstate


def copied(table: str, **changes: str) -> str | None:
    """Insert the rows of a table again with these changes. How the database refuses it."""
    copy = f"INSERT INTO {table} SELECT (jsonb_populate_record(old, %s::jsonb)).* FROM {table} AS old"
    return sqlstate(copy, json.dumps(changes))


def test_payment_of_an_unknown_merchant_is_refused(shop: Shop, other_shop: Shop) -> None:
    shop.qr_code()
    number = "1" * 27
    for merchant_id, refusal in (("mch_of_nobody", FOREIGN_KEY_VIOLATION), (other_shop.merchant.id, None)):
        ids = {"id": f"pay_{number}", "qr_code_id": f"qr_{number}", "merchant_id": merchant_id}
        assert copied("payments_payment", **ids) == refusal


def test_code_is_of_a_payment_of_its_merchant_that_has_a_code(shop: Shop, other_shop: Shop) -> None:
    shop.qr_code()
    others = {
        "pay_of_nobody": FOREIGN_KEY_VIOLATION,
        PaymentFactory(merchant=other_shop.merchant).id: FOREIGN_KEY_VIOLATION,
        PaymentFactory(merchant=shop.merchant, qr_code_id=None).id: FOREIGN_KEY_VIOLATION,
        PaymentFactory(merchant=shop.merchant).id: None,
    }
    for payment_id, refusal in others.items():
        assert copied("qrcodes_qrcode", payment_id=payment_id, reference1="X") == refusal


def test_what_the_triggers_look_at_stays(shop: Shop, other_shop: Shop) -> None:
    payment_id = shop.qr_code()["payment_id"]
    unused = other_shop.merchant.id
    assert sqlstate("DELETE FROM merchants_merchant WHERE id = %s", unused) == NOT_ALLOWED
    assert sqlstate("UPDATE merchants_merchant SET id = 'mch_x' WHERE id = %s", unused) == NOT_ALLOWED
    assert sqlstate("DELETE FROM payments_payment WHERE id = %s", payment_id) == NOT_ALLOWED
    for table, state in (("payments_payment", CHECK_VIOLATION), ("qrcodes_qrcode", NOT_ALLOWED)):
        assert sqlstate(f"UPDATE {table} SET merchant_id = %s", unused) == state
    assert sqlstate("UPDATE payments_payment SET qr_code_id = NULL") == CHECK_VIOLATION
    assert Payment.objects.get().pk == payment_id
