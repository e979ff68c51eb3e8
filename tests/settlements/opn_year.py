"""Card payments at Opn, and what our books say of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction

import banks
from banks.omise import Omise
from core import clock
from ledger import queries
from payments import cards
from payments.card_models import IS_ON_THE_WAY, CardCharge
from payments.models import Payment
from settlements.models import OpenQuestion
from tests.banks.fake_omise import Json
from tests.banks.opn_double import ChargeFault, OpnDouble
from tests.conftest import Shop

DAY = timedelta(days=1)
FIRST = datetime(2026, 1, 1, 3, tzinfo=UTC)  # 10:00 in Bangkok
ACCOUNTS = ("acquirer:omise", "fees:omise", "fee_vat:omise")


@contextmanager
def serving_opn() -> Iterator[OpnDouble]:
    """All card payments are at this Opn."""
    with OpnDouble.running() as acquirer, pytest.MonkeyPatch.context() as patch:
        adapter = Omise("skey_test_1", acquirer.base_url)
        patch.setattr(banks, "acquirer", lambda name: adapter)
        yield acquirer


def pay(shop: Shop, opn: OpnDouble, amount: int, fault: ChargeFault = "") -> Json:
    """A card payment that Opn charged now. Returns its charge."""
    now = clock.now()
    made = cards.draft(merchant=shop.merchant, token_id="tok", amount=amount, now=now)
    cards.store(made)
    charge = opn.add_charge(made.payment.id, amount, now, fault=fault)
    inquire(made.payment.id, charge)
    return charge


def inquire(payment_id: str, charge: Json) -> None:
    """Ask Opn about the charge, as after a call without an answer."""
    starts_at = Payment.objects.values_list("created_at", flat=True).get(pk=payment_id)
    found = banks.acquirer("omise").find(payment_id, charge_id=charge["id"], starts_at=starts_at)
    with transaction.atomic():
        cards.complete(payment_id, found, now=clock.now())


def owed() -> int:
    """Satang that Opn owes by our books."""
    return -sum(queries.read_balances(ACCOUNTS, None).get(code, 0) for code in ACCOUNTS)


def on_the_way() -> int:
    """Satang of the payments that it has not paid."""
    found = CardCharge.objects.filter(IS_ON_THE_WAY).select_related("payment")
    return sum(each.payment.net or each.payment.received for each in found)


def asked() -> list[tuple[str, int]]:
    found = OpenQuestion.objects.order_by("opened_at", "id").values_list("kind", "difference")
    return [(str(kind), difference) for kind, difference in found]
