"""Plain SQL of `core.database.rows` stores and reads exactly the same values as the ORM."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import DataError, IntegrityError, transaction
from django.db.models import Model

from core import ids, vault
from core.database import rows
from idempotency.models import IdempotencyKey
from merchants import secret_keys
from merchants.models import ApiKey, Merchant
from payments import services as payments
from payments.models import Payment
from qrcodes import services as qrcodes
from tests.conftest import Shop
from transactions.models import Transaction
from webhooks.models import Delivery, Endpoint, Event

pytestmark = pytest.mark.django_db
METADATA = {"z": 1, "a": [1.50, None, True, "ก😀\n\\\"'"], "": {"n": -(2**63)}}


def payment(shop: Shop, now: datetime) -> Payment:
    """A payment with every column filled."""
    payment_id = Payment.new_id(now)
    found = payments.draft(
        payment_id,
        client_bank_account="1234567890",
        merchant=shop.merchant,
        qr_code_id=ids.of_code(payment_id),
        amount=150_000,
        reference="x' OR 1=1-- %s",
        description="ข้าว",
        metadata=METADATA,
        client_name="สมชาย",
        client_bank_name="KBANK",
        created_at=now,
        expires_at=now + timedelta(minutes=15),
    )
    found.payer_name, found.payer_bank_code = "Somchai", "014"
    found.payer_account_sealed = vault.seal("0987654321", context=found.id)
    found.card_last4, found.card_brand, found.failure_code = "4242", "visa", "none"
    return found


def bare_payment(shop: Shop, now: datetime) -> Payment:
    return payments.draft(Payment.new_id(now), merchant=shop.merchant, amount=100, created_at=now)


def key(shop: Shop, now: datetime) -> ApiKey:
    secret = secret_keys.generate("test")
    return ApiKey(
        id=ids.new("key_", now),
        merchant=shop.merchant,
        public_id=secret_keys.public_id(secret),
        digest=secret_keys.digest(secret),
        created_at=now,
        expires_at=now + timedelta(hours=1),
    )


def merchant(shop: Shop, now: datetime) -> Merchant:
    return Merchant(id=ids.new("mch_", now), name="ร้าน", mode="live", biller_id="", created_at=now)


def history(shop: Shop, now: datetime) -> Transaction:
    return Transaction(
        id=ids.new("txn_", now),
        merchant=shop.merchant,
        payment_id=Payment.new_id(now),
        type="payment",
        status="succeeded",
        amount=150_000,
        currency="THB",
        created_at=now,
    )


def idempotency_key(shop: Shop, now: datetime) -> IdempotencyKey:
    return IdempotencyKey(
        merchant=shop.merchant,
        key="order 17, กุญแจ",
        fingerprint=b"\x00\xff" * 16,
        subject_id="of_a_database_default",
        status=200,
        body_sealed=b'{"a":"\\u0000"}',
        created_at=now,
        expires_at=now + timedelta(hours=24),
    )


def endpoint(shop: Shop, now: datetime) -> Endpoint:
    return Endpoint(
        id=ids.new("wh_", now),
        merchant=shop.merchant,
        url="https://shop.example/hook",
        events=["payment.succeeded", "a,b\"c'"],
        secret_sealed="sealed",
        created_at=now,
        updated_at=now,
    )


def event(shop: Shop, now: datetime) -> Event:
    return Event(
        id=ids.new("evt_", now),
        merchant=shop.merchant,
        type="payment.pending",
        subject_id=Payment.new_id(now),
        packed_body=b"\x00\xff{}",
        created_at=now,
    )


ROWS = [payment, bare_payment, key, merchant, history, idempotency_key, endpoint, event]


def columns(row: Model) -> dict[str, Any]:
    """Every column of a row, in types that compare by value."""
    found = {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}
    return {name: bytes(value) if isinstance(value, memoryview) else value for name, value in found.items()}


@contextmanager
def undone() -> Iterator[None]:
    """Roll back all changes of the block."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def stored(row: Model) -> Model:
    return type(row)._base_manager.get(pk=row.pk)


@pytest.mark.parametrize("make", ROWS, ids=lambda make: make.__name__)
def test_copy_in_writes_rows_like_save(make: Any, shop: Shop, noon: datetime) -> None:
    row = make(shop, noon)
    with undone():
        row.save(force_insert=True)
        by_orm = columns(stored(row))
    row._state.adding = True
    rows.copy_in([row])
    assert columns(stored(row)) == by_orm
    assert row._state.adding is False


def test_copy_in_stores_nothing_if_one_row_is_refused(shop: Shop, noon: datetime) -> None:
    one, other = event(shop, noon), event(shop, noon)
    rows.copy_in([one])
    with pytest.raises(IntegrityError), transaction.atomic():
        rows.copy_in([other, one])
    rows.copy_in([])
    assert Event.objects.count() == 1


def test_insert_with_adds_rows_to_another_statement(shop: Shop, noon: datetime) -> None:
    made = [payment(shop, noon) for _ in range(2)]
    insert, values = rows.insert_with(made)
    assert rows.run(f"WITH also AS ({insert}) SELECT 1", values).fetchone() == (1,)
    assert [columns(stored(row)) for row in made] == list(map(columns, made))


def test_update_rows_writes_like_save(shop: Shop, noon: datetime) -> None:
    changes: dict[str, Any] = {
        "status": "succeeded", "card_brand": "x' OR 1=1-- %s", "card_last4": None,
        "payer_matches": "no", "amount_received": 7, "completed_at": noon, "updated_at": noon,
    }  # fmt: skip
    first, second, other = (payment(shop, noon) for _ in range(3))
    rows.copy_in([first, second, other])
    for row in (first, second):
        for name, value in changes.items():
            setattr(row, name, value)
    second.card_brand = "ข้าว"
    rows.update_rows([first, second], list(changes))
    rows.update_rows([], list(changes))
    assert [columns(stored(row)) for row in (first, second, other)] == list(
        map(columns, (first, second, other))
    )


def test_raw_find_reads_rows_like_the_orm(shop: Shop, noon: datetime) -> None:
    first, second, other = sorted((payment(shop, noon) for _ in range(3)), key=lambda row: row.id)
    rows.copy_in([first, second, other])
    wanted = [second.id, first.id, "pay_of_nobody"]
    found = rows.find(Payment, "WHERE t.id = ANY(%s) AND t.amount = %s ORDER BY t.id", wanted, 150_000)
    assert list(map(columns, found)) == list(
        map(columns, Payment.objects.filter(pk__in=wanted).order_by("id"))
    )
    assert rows.find(Payment, "WHERE t.id = ANY(%s)", []) == []


def test_update_rows_never_truncates_text(shop: Shop, noon: datetime) -> None:
    row = payment(shop, noon)
    rows.copy_in([row])
    row.payer_bank_code = "0144"
    with pytest.raises(DataError), transaction.atomic():
        rows.update_rows([row], ["payer_bank_code"])


@pytest.mark.parametrize("make", ROWS, ids=lambda make: make.__name__)
def test_insert_together_writes_a_row_like_save(make: Any, shop: Shop, noon: datetime) -> None:
    row = make(shop, noon)
    with undone():
        row.save(force_insert=True)
        by_orm = columns(stored(row))
    row._state.adding = True
    rows.insert_together([row])
    assert columns(stored(row)) == by_orm
    assert row._state.adding is False


@pytest.mark.parametrize("make", ROWS, ids=lambda make: make.__name__)
def test_instance_has_the_values_of_the_orm(make: Any, shop: Shop, noon: datetime) -> None:
    row = make(shop, noon)
    row.save(force_insert=True)
    [found] = rows.find(type(row), "WHERE t.created_at = %s", noon)
    assert columns(found) == columns(stored(row))
    assert {name: type(value) for name, value in vars(found).items() if name != "_state"} == {
        name: type(value) for name, value in vars(stored(row)).items() if name != "_state"
    }
    assert (found._state.adding, found._state.db, found == row) == (False, "default", True)


def test_rows_of_several_tables_go_in_together(shop: Shop, noon: datetime) -> None:
    listener, made = (
        endpoint(shop, noon),
        qrcodes.generate(
            merchant=shop.merchant,
            subscriptions=[],
            now=noon,
            amount=100,
            expiry_minutes=15,
            metadata=METADATA,
        ),
    )
    happened = event(shop, noon)
    delivery = Delivery(
        id=ids.new("dlv_", noon),
        event=happened,
        event_type=happened.type,
        endpoint=listener,
        due_at=noon,
        created_at=noon,
    )
    rows.insert_together([delivery, happened, *made.rows, listener])
    for row in (delivery, happened, *made.rows, listener):
        assert columns(stored(row)) == columns(row)


def test_insert_together_stores_nothing_if_one_row_is_refused(shop: Shop, noon: datetime) -> None:
    first, second = payment(shop, noon), history(shop, noon)
    second.currency = "USD"
    with pytest.raises(IntegrityError), transaction.atomic():
        rows.insert_together([first, second])
    assert not Payment.objects.exists()
