"""Five faults of an acquirer in one transfer, each found and named."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
import time_machine

from core import clock
from settlements import services
from tests.audit import differences
from tests.banks.opn_double import OpnDouble
from tests.conftest import open_shop
from tests.settlements.opn_year import DAY, FIRST, asked, on_the_way, owed, pay, serving_opn

pytestmark = [pytest.mark.slow, pytest.mark.django_db]


@pytest.fixture
def opn() -> Iterator[OpnDouble]:
    with serving_opn() as acquirer:
        yield acquirer


def test_five_faults_are_found_and_named(opn: OpnDouble) -> None:
    shop = open_shop("Somtam House", "live")
    with time_machine.travel(FIRST, tick=False):
        pay(shop, opn, 100_000, "not_settled")
    with time_machine.travel(FIRST + 2 * DAY, tick=False):
        changed = pay(shop, opn, 100_000)
        pay(shop, opn, 100_000, "vat_rounded_up")
        opn.show_fee(changed, fee_change=100)
        opn.transactions[-2]["amount"] -= 100
    with time_machine.travel(FIRST + 9 * DAY + timedelta(hours=1), tick=False):
        first = opn.add_transfer(clock.now(), short_by=1)
    with time_machine.travel(FIRST + 10 * DAY, tick=False):
        opn.repeat_transfer(first, clock.now())
    with time_machine.travel(FIRST + 11 * DAY, tick=False):
        services.read("omise", now=clock.now())
    found = asked()
    assert ("amount_differs", -1) in found
    assert ("fee_differs", -100) in found
    assert [kind for kind, _ in found].count("paid_twice") == 2
    assert ("missing", -96_094) in found
    assert len(found) == 5
    assert owed() == on_the_way() - sum(each for kind, each in found if kind != "missing")
    assert not differences()
