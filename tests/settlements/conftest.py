"""An acquirer that charges cards, and reports the transfers that a test gives it."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import transaction

import banks
from banks import AcquirerTransfer, ChargeResult, LedgerCopy, SettledItem
from core import clock
from merchants.models import Merchant
from payments import cards
from payments.models import CardCharge, Payment
from settlements import services
from tests.conftest import Shop

# 3.65 % of 1,000.00 THB, and 7 % VAT.
AMOUNT, FEE, VAT = 100_000, 3_650, 256
NET = AMOUNT - FEE - VAT
COST, COST_VAT = 2_804, 196
DAY = timedelta(days=1)


@dataclass
class ReportingAcquirer:
    """What the acquirer lists."""

    IS_VOID_ONLY = False
    seconds = 1.0
    transfers: list[AcquirerTransfer] = field(default_factory=list)
    asked: list[tuple[datetime, datetime]] = field(default_factory=list)

    def settlements(self, since: datetime, until: datetime, ledger: LedgerCopy) -> list[AcquirerTransfer]:
        self.asked.append((since, until))
        return [each for each in self.transfers if since <= each.created_at < until]

    def charge(self, merchant: Merchant, *, fee: int | None = FEE, ago: timedelta = 8 * DAY) -> CardCharge:
        """A card payment over 1,000.00 THB that succeeded some time ago."""
        now = clock.now() - ago
        made = cards.draft(merchant=merchant, token_id="tok", amount=AMOUNT, now=now)
        cards.store(made)
        charge_id = f"chrg_{made.payment.id[-12:]}"
        vat = None if fee is None else VAT
        result = ChargeResult("succeeded", charge_id, None, "visa", "4242", paid_at=now, fee=fee, fee_vat=vat)
        with transaction.atomic():
            cards.complete(made.payment.id, result, now=now)
        return CardCharge.objects.get(pk=made.payment.pk)

    def transfer(
        self,
        *items: SettledItem,
        state: Any = "paid",
        short_by: int = 0,
        ago: timedelta = DAY,
        number: int | None = None,
    ) -> AcquirerTransfer:
        """List a transfer that pays these items."""
        at = clock.to_millisecond(clock.now() - ago)
        amount = sum(each.net for each in items) - short_by
        made = AcquirerTransfer(
            id=f"trsf_{len(self.transfers) if number is None else number}",
            amount=amount,
            fee=COST,
            fee_vat=COST_VAT,
            net=amount - COST - COST_VAT,
            state=state,
            created_at=at,
            sent_at=at,
            paid_at=at if state == "paid" else None,
            items=items,
        )
        self.transfers.append(made)
        return made

    def change(self, transfer: AcquirerTransfer, **changes: Any) -> None:
        self.transfers[self.transfers.index(transfer)] = replace(transfer, **changes)

    def read(self) -> None:
        services.read("sandbox", now=clock.now())


def item_of(charge: CardCharge, *, fee: int = FEE, vat: int = VAT) -> SettledItem:
    return SettledItem("charge", charge.charge_id, "", AMOUNT, fee, vat, AMOUNT - fee - vat)


def payment_of(charge: CardCharge) -> Payment:
    return Payment.objects.get(pk=charge.pk)


@pytest.fixture
def acquirer(monkeypatch: pytest.MonkeyPatch) -> ReportingAcquirer:
    found = ReportingAcquirer()
    monkeypatch.setattr(banks, "acquirer", lambda name: found)
    return found


def a_settlement(shop: Shop) -> str:
    """A settlement that has arrived."""
    reporting: Any = banks.acquirer("sandbox")
    reporting.transfer(item_of(reporting.charge(shop.merchant)))
    reporting.read()
    return str(shop.get("/v1/settlements").json()["settlements"][0]["settlement_id"])
