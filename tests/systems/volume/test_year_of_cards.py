"""A year of card payments at Opn, as its documents describe it: the books agree with it each month.

`YEAR_PAYMENTS=20000` makes it a long year.
"""

import os
import random
from collections.abc import Iterator
from datetime import timedelta

import pytest
import time_machine

from core import clock
from ledger import services as ledger
from payments.card_models import CardCharge
from payments.models import Payment
from settlements import services
from settlements.models import AcquirerTransfer, Settlement
from tests.audit import differences
from tests.banks.opn_double import ChargeFault, OpnDouble
from tests.conftest import open_shop
from tests.settlements.opn_year import DAY, FIRST, asked, on_the_way, owed, pay, serving_opn

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
PAYMENTS = int(os.environ.get("YEAR_PAYMENTS", "365"))
DAYS = 365


@pytest.fixture
def opn() -> Iterator[OpnDouble]:
    with serving_opn() as acquirer:
        yield acquirer


def test_books_agree_with_opn_each_month_of_a_year(opn: OpnDouble) -> None:
    shops = [open_shop("Somtam House", "live"), open_shop("Khao Soi", "live")]
    chance = random.Random(34)
    for day in range(DAYS + 10):
        with time_machine.travel(FIRST + day * DAY, tick=False):
            for _ in range(PAYMENTS // DAYS if day < DAYS else 0):
                fault: ChargeFault = "fee_late" if chance.random() < 0.1 else ""
                charge = pay(chance.choice(shops), opn, chance.randint(10_000, 500_000), fault)
                if fault:
                    opn.show_fee(charge)
        with time_machine.travel(FIRST + day * DAY + timedelta(hours=1), tick=False):
            if opn.charges and day >= 8:
                opn.add_transfer(clock.now())
            CardCharge.objects.filter(awaits_fee=True).update(due_at=clock.now())
            if day % 7 == 0:
                services.read("omise", now=clock.now() + timedelta(seconds=1))
            if day % 30 == 29:
                assert (owed(), asked()) == (on_the_way(), [])
    with time_machine.travel(FIRST + (DAYS + 10) * DAY, tick=False):
        services.read("omise", now=clock.now())
        assert (owed(), on_the_way(), asked()) == (0, 0, [])
        paid = Payment.objects.filter(qr_code_id=None)
        credits = sum(each.net or 0 for each in paid)
        assert sum(ledger.balance(each.merchant.id).available for each in shops) == credits
        arrived = AcquirerTransfer.objects.filter(state="paid")
        assert arrived.count() >= DAYS - 10
        assert sum(each.net_amount for each in Settlement.objects.all()) == credits
        assert not differences()
