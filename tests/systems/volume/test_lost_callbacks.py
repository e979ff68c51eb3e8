"""Many payments whose callbacks were lost, found by a statement, also if its import is killed."""

import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from core import clock, ids, rows
from core.clock import BANGKOK
from ledger.models import Journal
from payments import expiry_sweep
from payments.models import Payment
from qrcodes import services as qrcodes
from reconciliation.matching import services as matching
from reconciliation.models import BankTransaction
from reconciliation.statements import importing
from tests.conftest import Shop
from tests.examples import examples
from tests.reconciliation.statements.statement_files import (
    bot_file,
    detail,
    header,
    import_file,
    lines_of_lost_callbacks,
    open_shop_with_biller,
    trailer,
)
from tests.reconciliation.statements.test_import_races import kill_import, start
from tests.systems.volume.test_large_files import GROWTH, imported
from transactions.models import Transaction
from webhooks.models import Delivery, Endpoint, Event

MANY = examples(30_000)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("audit_is_clean"),
]


def test_killed_import_is_finished_by_the_next_import_or_the_sweep(tmp_path: Path) -> None:
    shop, count = open_shop_with_biller("Killed"), 3_000
    path = tmp_path / "day.txt"
    path.write_bytes(bot_file(*(line for _, line in sell(shop, count))))
    for stored in (500, 1_500):
        kill_import(path, stored)
    assert Payment.objects.filter(status="succeeded").count() < count
    matching.apply_unapplied(now=clock.now() + matching.UNAPPLIED_AFTER * 2)
    assert start(path).wait(120) == 0
    assert Payment.objects.filter(status="succeeded").count() == Transaction.objects.count() == count
    assert Event.objects.filter(type="payment.succeeded").count() == BankTransaction.objects.count() == count


def test_many_lost_callbacks_take_constant_memory_and_few_queries(tmp_path: Path) -> None:
    shop, path, asked = open_shop_with_biller("Busy"), tmp_path / "day.txt", [0]
    listen(shop)
    import_file(bot_file(*(line for _, line in sell(shop, 10))))
    with path.open("wb") as file:
        file.write(header() + b"\r\n")
        for line in lines_of_lost_callbacks(shop, MANY):
            file.write(line + b"\r\n")
        file.write(trailer(credit=150_000 * MANY, credits=MANY) + b"\r\n")
    with connection.execute_wrapper(partial(count, asked)):
        counts, seconds, grown = imported(path)
    sys.stdout.write(f"lost: {seconds:.1f} s, {grown} kB more\n")
    assert counts == {"new": MANY}
    assert asked[0] <= 25 * MANY / importing.BATCH_SIZE
    assert grown < GROWTH
    assert Payment.objects.filter(status="succeeded").count() == 10 + MANY
    assert Journal.objects.count() == Transaction.objects.count() == 10 + MANY
    assert Event.objects.filter(type="payment.succeeded").count() == 10 + MANY
    assert Delivery.objects.filter(event__type="payment.succeeded").count() == 10 + MANY


def sell(shop: Shop, count: int) -> "list[tuple[str, bytes]]":
    """Create plain payments that have expired. Return their ids and statement lines."""
    made_at, sales = clock.now() - timedelta(minutes=30), []
    at = made_at.astimezone(BANGKOK)
    for _ in range(count):
        made = qrcodes.generate(
            merchant=shop.merchant, subscriptions=[], now=made_at, amount=150_000, expiry_minutes=15
        )
        rows.insert_together(made.rows)
        line = detail(date=f"{at:%d%m%Y}", time=f"{at:%H%M%S}", ref1=made.qr_code.reference1)
        sales.append((made.payment.id, line))
    expiry_sweep.expire_due(now=clock.now())
    return sales


def count(asked: list[int], execute: Callable[..., Any], *reported: Any) -> Any:
    asked[0] += 1
    return execute(*reported)


def listen(shop: Shop) -> None:
    now = clock.now()
    Endpoint.objects.create(
        id=ids.new("wh_", now),
        merchant=shop.merchant,
        url="https://shop.example/hook",
        events=["payment.succeeded", "payment.failed"],
        secret_sealed="sealed",
        created_at=now,
        updated_at=now,
    )
