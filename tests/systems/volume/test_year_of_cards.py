"""A year of card payments at Opn, as its documents describe it: each month closes, and nothing remains.

`YEAR_PAYMENTS=20000` makes it a long year.
"""

import base64
import json
import os
import random
from collections.abc import Iterator
from datetime import date, timedelta

import pytest
import time_machine
from pytest_django import Settings

from core import clock
from ledger import services as ledger
from operations.audit.month_close import closing
from operations.models import MonthClose
from payments import card_inquiries
from payments.card_models import CardCharge
from payments.models import Payment
from settlements import services
from settlements.models import AcquirerTransfer, Settlement, UnpaidEntry
from tests.audit import differences
from tests.banks.fake_omise import Json
from tests.banks.opn_double import ChargeFault, OpnDouble
from tests.conftest import open_shop
from tests.settlements.opn_year import DAY, FIRST, asked, on_the_way, owed, pay, serving_opn

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
PAYMENTS = int(os.environ.get("YEAR_PAYMENTS", "365"))
DAYS = 365
JANUARY = date(2026, 1, 1)


@pytest.fixture
def opn(settings: Settings) -> Iterator[OpnDouble]:
    settings.CLOSE_SIGNING_KEY = base64.urlsafe_b64encode(b"k" * 32).decode()
    with serving_opn() as acquirer:
        yield acquirer


def close_month() -> None:
    """Close the month before today, and compare its signed text with what the acquirer owes."""
    services.read("omise", now=clock.now() + timedelta(seconds=1))
    newest = closing.newest()
    month = closing.next_month(newest.month) if newest else JANUARY
    body = json.loads(closing.close(month, now=clock.now()).body)
    assert (body["remainder"], body["open"]) == (0, [])
    assert [each["party"] for each in body["parties"]] == ["omise"]


def test_each_month_of_a_year_closes_without_a_remainder(opn: OpnDouble) -> None:
    shops = [open_shop("Somtam House", "live"), open_shop("Khao Soi", "live")]
    chance, late = random.Random(34), list[Json]()
    for day in range(DAYS + 10):
        with time_machine.travel(FIRST + day * DAY, tick=False):
            for _ in range(PAYMENTS // DAYS if day < DAYS else 0):
                is_late = chance.random() < 0.1
                fault: ChargeFault = "fee_late" if is_late else ""
                charge = pay(chance.choice(shops), opn, chance.randint(10_000, 500_000), fault)
                late += [charge] * is_late
        with time_machine.travel(FIRST + day * DAY + timedelta(hours=1), tick=False):
            if 8 <= day < DAYS + 7:  # later there is nothing to transfer
                opn.add_transfer(clock.now())
            while late:
                opn.show_fee(late.pop())
            CardCharge.objects.filter(awaits_fee=True).update(due_at=FIRST)
            while card_inquiries.inquire_due(now=clock.now):
                pass
            if day % 7 == 0:
                services.read("omise", now=clock.now() + timedelta(seconds=1))
            if day and clock.now().astimezone(clock.BANGKOK).day == 1:
                close_month()
                assert (owed(), asked()) == (on_the_way(), [])
    with time_machine.travel(FIRST + (DAYS + 10) * DAY, tick=False):
        services.read("omise", now=clock.now())
        assert (owed(), on_the_way(), asked()) == (0, 0, [])
        assert (MonthClose.objects.count(), list(closing.findings())) == (12, [])
        credits = sum(each.net or 0 for each in Payment.objects.all())
        assert sum(ledger.balance(each.merchant.id).available for each in shops) == credits
        assert AcquirerTransfer.objects.filter(state="paid").count() >= DAYS - 10
        assert sum(each.net_amount for each in Settlement.objects.all()) == credits
        assert not UnpaidEntry.objects.exists()
        assert not differences()
