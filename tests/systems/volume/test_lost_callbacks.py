"""Many payments whose callbacks were lost, found by a statement, also if its import is killed."""

import sys
from functools import partial
from pathlib import Path

import pytest
from django.db import connection

from core import clock
from ledger.models import Journal
from payments.models import Payment
from reconciliation.matching import services as matching
from reconciliation.models import BankTransaction
from reconciliation.statements import importing
from tests.reconciliation.statements.statement_files import (
    bot_file,
    header,
    import_file,
    lines_of_lost_callbacks,
    open_shop_with_biller,
    trailer,
)
from tests.reconciliation.statements.test_lost_callbacks import count, listen, sell
from tests.systems.volume.test_killed_import import kill_import, start
from tests.systems.volume.test_large_files import GROWTH, MANY, imported
from transactions.models import Transaction
from webhooks.models import Delivery, Event

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
