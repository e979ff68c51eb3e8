"""Days of a shop whose payments the bank reported in every way."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import orjson
import time_machine
from django.test import Client

from core import clock
from merchants.models import Merchant
from operations.models import DailyClose, ProofDay
from reconciliation.matching import intake, services as matching
from reconciliation.models import BankTransaction, ReportSource
from tests.conftest import SandboxBankClient, Shop
from tests.operations.evidence.builders import close_day
from tests.reconciliation.builders import parse
from tests.reconciliation.statements.statement_files import bot_file, credit_line, import_file
from tests.webhooks.builders import make_endpoint
from webhooks.models import Delivery, DeliveryAttempt, Endpoint

BANK = "branch"


@dataclass
class ProofShop:
    """A live shop. Its bank reports without a network."""

    shop: Shop
    bank: SandboxBankClient
    codes: list[dict[str, Any]] = field(default_factory=list)

    def webhook(self, **fields: Any) -> Endpoint:
        return make_endpoint(self.shop, **fields)

    def pay(
        self,
        at: datetime,
        how: str = "callback",
        *,
        after: timedelta = timedelta(seconds=1),
        posted: Sequence[timedelta] = (timedelta(seconds=2),),
    ) -> str:
        """Pay a code at the bank. after: until it is reported. posted: when each endpoint gets it."""
        with time_machine.travel(at - timedelta(minutes=1), tick=False):
            code = self.shop.qr_code(expiry_minutes=1440)
        self.codes.append(code)
        with time_machine.travel(at + after, tick=False):
            if how == "statement":
                assert import_file(bot_file(credit_line(code, at)), bank=BANK).is_clean
            else:
                self.report(self.bank.notification(code, paid_at=at), ReportSource(how))
        deliveries = Delivery.objects.filter(event__subject_id=code["payment_id"]).order_by("pk")
        for delivery, span in zip(deliveries, posted, strict=False):
            self.attempt(delivery, at + span)
        return str(code["payment_id"])

    def report(
        self, notification: dict[str, Any], source: ReportSource = ReportSource.CALLBACK
    ) -> BankTransaction:
        body, now = orjson.dumps(notification), clock.now()
        money = intake.receive(bank=BANK, body=body, notification=parse(notification), now=now, source=source)
        return matching.apply(bank_transaction_id=money.pk, now=now)

    def attempt(self, delivery: Delivery, at: datetime, number: int = 1) -> None:
        DeliveryAttempt.objects.create(delivery=delivery, number=number, started_at=at, status=200)

    def callback(self, payment_id: str, at: datetime) -> None:
        """The callback comes after the payment was found."""
        code = next(each for each in self.codes if each["payment_id"] == payment_id)
        money = BankTransaction.objects.get(payment_id=payment_id)
        with time_machine.travel(at, tick=False):
            given = {"paid_at": money.paid_at, "transaction_id": money.bank_reference}
            self.report(self.bank.notification(code, **given))

    def day(self, noon: datetime, count: int, chance: random.Random) -> None:
        """Payments of every kind, on each side of the ends of the day."""
        for _ in range(count):
            how = chance.choices(["callback", "inquiry", "statement"], [8, 3, 1])[0]
            at = noon + timedelta(seconds=chance.uniform(-12.5 * 3600, 12.2 * 3600))
            wait = {"callback": 3, "inquiry": 90, "statement": 20_000}[how]
            after = timedelta(seconds=chance.uniform(-2, wait))
            posted = [after + timedelta(seconds=chance.expovariate(0.5)) for _ in range(chance.randint(0, 2))]
            payment_id = self.pay(at, how, after=after, posted=posted)
            if how == "inquiry" and chance.random() < 0.4:
                self.callback(payment_id, at + after + timedelta(seconds=chance.uniform(0, 900)))

    def publish(self, **changes: Any) -> None:
        Merchant.objects.filter(pk=self.shop.merchant.pk).update(**{"shows_proof": True} | changes)

    def close(self, noon: datetime) -> DailyClose:
        self.publish()
        return close_day(noon)

    def proof(self) -> ProofDay:
        found = ProofDay.objects.filter(merchant_id=self.shop.merchant.pk).order_by("-day").first()
        assert found is not None
        return found

    def get(self, tail: str = "", **query: str) -> Any:
        return Client().get(f"/proof/{self.shop.merchant.pk}{tail}", query)
