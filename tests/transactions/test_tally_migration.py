"""What was there before the tallies is in them."""

from collections.abc import Iterator
from random import Random

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from tests.factories import MerchantFactory
from tests.transactions import histories
from transactions import listing
from transactions.counting import Wanted
from transactions.models import Tally, Uncounted

pytestmark = pytest.mark.django_db(transaction=True)
BEFORE = ("transactions", "0005_post_history")
AFTER = ("transactions", "0007_count_history")


def migrate(*target: tuple[str, str]) -> None:
    MigrationExecutor(connection).migrate(list(target))


@pytest.fixture
def no_tallies_yet() -> Iterator[None]:
    newest = MigrationExecutor(connection).loader.graph.leaf_nodes()
    migrate(BEFORE)
    yield
    migrate(*newest)


def test_every_row_is_counted_in_each_span(no_tallies_yet: None) -> None:
    merchants = [MerchantFactory() for _ in range(3)]
    for seed, merchant in enumerate(merchants):
        histories.write(merchant, Random(seed), 100)
        histories.move(merchant, Random(seed), 10)
    migrate(AFTER)
    assert not Uncounted.objects.exists()
    for merchant in merchants:
        for given in histories.FILTERS:
            wanted = Wanted(merchant.id, **given)
            plain = histories.matching(wanted).count()
            assert listing.page(wanted, limit=1, offset=0).total == plain
    histories.write(merchants[0], Random(9), 10)
    assert listing.page(Wanted(merchants[0].id), limit=1, offset=0).total == 110


def test_a_young_instance_has_nothing_to_count(no_tallies_yet: None) -> None:
    migrate(AFTER)
    assert not Tally.objects.exists()
