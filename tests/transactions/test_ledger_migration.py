"""What was paid before there was a ledger is in it."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from tests.factories import MerchantFactory, TransactionFactory
from transactions import ledger
from transactions.models import Account, Entry, Journal, Unfolded

pytestmark = pytest.mark.django_db(transaction=True)
BEFORE = ("transactions", "0002_guard_history")
AFTER = ("transactions", "0005_post_history")


def migrate(*target: tuple[str, str]) -> None:
    MigrationExecutor(connection).migrate(list(target))


@pytest.fixture
def no_ledger_yet() -> Iterator[None]:
    newest = MigrationExecutor(connection).loader.graph.leaf_nodes()
    migrate(BEFORE)
    yield
    migrate(*newest)


def test_every_payment_is_posted_and_nothing_else(no_ledger_yet: None, noon: datetime) -> None:
    shop, rival, quiet = (MerchantFactory() for _ in range(3))
    paid = [TransactionFactory(merchant=shop, created_at=noon + timedelta(hours=hour)) for hour in range(3)]
    TransactionFactory(merchant=rival, amount=99, status="refunded", created_at=noon)
    TransactionFactory(merchant=rival, type="failed", status="failed")
    migrate(AFTER)
    assert ledger.balance(shop.id) == ledger.Balance(450_000, 0, 0)
    assert ledger.balance(shop.id, before=paid[1].created_at) == ledger.Balance(150_000, 0, 0)
    assert ledger.balance(rival.id) == ledger.Balance(99, 0, 0)
    assert ledger.balance(quiet.id) == ledger.Balance(0, 0, 0)
    assert Account.objects.get(pk="bank:sandbox").settled == -450_099
    assert (Journal.objects.count(), Entry.objects.count(), Unfolded.objects.count()) == (4, 8, 0)
    first = Journal.objects.get(subject_id=paid[0].payment_id)
    assert (first.fact, first.amount, first.created_at) == ("payment", 150_000, noon)
    lines = dict(first.entries.values_list("account_id", "amount"))
    assert lines == {f"available:{shop.id}": 150_000, "bank:sandbox": -150_000}


def test_a_young_instance_has_nothing_to_post(no_ledger_yet: None) -> None:
    migrate(AFTER)
    assert not Account.objects.exists()
