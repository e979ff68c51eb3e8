"""Counted lists made by chance from a seed, and the plain way to read them, which is always right."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import product
from random import Random
from typing import Any, ClassVar

from django.db import transaction
from django.db.models import F, QuerySet

from core import clock, ids
from counts.lists import CountedList, ListFilter
from ledger.balance_transactions import BALANCE_TRANSACTIONS
from ledger.journal_types import BalanceTransactionType
from ledger.models import BalanceTransaction
from merchants.models import Merchant
from payments.models import PAYMENTS, Payment, PaymentStatus
from refunds.models import REFUNDS, Refund, RefundStatus
from tests.conftest import Shop
from tests.factories import PaymentFactory, TransactionFactory, reverse_all
from transactions import services
from transactions.models import (
    TRANSACTIONS,
    Transaction,
    TransactionStatus,
    TransactionType,
    matching as matching_transactions,
)
from webhooks.events import NewEvent, build
from webhooks.filters import DELIVERIES, EVENT_TYPES, EVENTS, matching_deliveries
from webhooks.models import Delivery, DeliveryState, Endpoint, Event
from withdrawals.models import WITHDRAWALS, Withdrawal, WithdrawalStatus

# Where buckets begin, and around it; the two years in between hold many months.
MOMENTS = [
    datetime(2024, 2, 29, 23, 59, 59, 999000, UTC),
    datetime(2024, 3, 1, tzinfo=UTC),
    datetime(2025, 12, 31, 23, 59, 30, tzinfo=UTC),
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime(2026, 11, 20, 23, 0, 0, 1000, UTC),
    datetime(2026, 11, 21, 5, 4, tzinfo=UTC),
]
STEPS = [timedelta(), timedelta(milliseconds=1), timedelta(seconds=1), timedelta(seconds=59)]
WIDER_STEPS = [timedelta(minutes=7), timedelta(hours=5), timedelta(days=3), timedelta(days=45)]
NOW = datetime(2026, 11, 21, 6, tzinfo=UTC)
Given = dict[str, Any]


class ListBuilder(ABC):
    """Writes, changes and reads the rows of one counted list."""

    counted: ClassVar[CountedList[Any]]
    # Each is what the API can ask for, without dates.
    filters: ClassVar[list[Given]]

    def __str__(self) -> str:
        return self.counted.name

    @abstractmethod
    def write(self, merchant: Merchant, chance: Random, count: int) -> None:
        """Insert rows by one statement."""

    @abstractmethod
    def move(self, merchant: Merchant, chance: Random, count: int) -> None:
        """Change the kinds of up to so many rows."""

    @abstractmethod
    def race(self, merchant: Merchant, chance: Random) -> None:
        """Change the kind of a few rows. If several threads want the same row, only one changes it."""

    @abstractmethod
    def wanted(self, merchant: Merchant, given: Given, **period: Any) -> ListFilter[Any]:
        """The filter of a query."""

    @abstractmethod
    def plain(self, rows: QuerySet[Any], given: Given) -> QuerySet[Any]:
        """The rows by Django's own query."""

    def all(self, merchant: Merchant) -> QuerySet[Any]:
        """The whole list."""
        found: QuerySet[Any] = self.counted.model._default_manager.filter(merchant_id=merchant.pk)
        return found

    def path(self, shop: Shop) -> str:
        """Where the API has the list."""
        return f"/Thai/v1/{self.counted.name}"

    def rows(self, merchant: Merchant, given: Given, **period: datetime) -> QuerySet[Any]:
        found = self.all(merchant)
        bounds = {"start": "created_at__gte", "end": "created_at__lt"}
        found = found.filter(**{bounds[name]: at for name, at in period.items()})
        return self.plain(found, given).order_by("-created_at", "-id")

    def page(self, shop: Shop, query: str) -> tuple[list[str], dict[str, Any]]:
        """The ids of a page of the API, and the whole response."""
        response = shop.get(f"{self.path(shop)}?{query}")
        assert response.status_code == 200, response.content
        found: dict[str, Any] = response.json()
        name = self.counted.name
        singular = "delivery" if name == "deliveries" else name[:-1]
        return [row[f"{singular}_id"] for row in found[name]], found


class TransactionBuilder(ListBuilder):
    counted = TRANSACTIONS
    filters = [
        {"type": kind, "status": status}
        for kind, status in product([None, *TransactionType], [None, *TransactionStatus])
    ]
    rows_made = [
        (TransactionType.PAYMENT, TransactionStatus.SUCCEEDED, 100),
        (TransactionType.FAILED, TransactionStatus.FAILED, 100),
        (TransactionType.REFUND, TransactionStatus.PENDING, -100),
    ]

    def write(self, merchant: Merchant, chance: Random, count: int) -> None:
        made = []
        for kind, status, amount in chance.choices(self.rows_made, [8, 2, 3], k=count):
            at = moment(chance)
            refund_id = ids.new("ref_", at) if kind is TransactionType.REFUND else None
            fields = {"type": kind, "status": status, "amount": amount, "refund_id": refund_id}
            made.append(TransactionFactory.build(merchant=merchant, created_at=at, **fields))
        Transaction.objects.bulk_create(made)

    def move(self, merchant: Merchant, chance: Random, count: int) -> None:
        """Let refunds end, and payments go back."""
        rows = Transaction.objects.filter(merchant=merchant).order_by("id")
        for refund in some(rows.filter(status=TransactionStatus.PENDING), chance, count):
            services.complete_refunds(
                refund.refund_id,
                status=chance.choice([TransactionStatus.SUCCEEDED, TransactionStatus.FAILED]),
            )
        for payment in some(
            rows.filter(type=TransactionType.PAYMENT, status=TransactionStatus.SUCCEEDED), chance, count
        ):
            services.mark_refunded(payment_id=payment.payment_id)

    def race(self, merchant: Merchant, chance: Random) -> None:
        pending = Transaction.objects.filter(merchant=merchant, status=TransactionStatus.PENDING)
        with taken(pending, chance) as found:
            found.update(status=chance.choice([TransactionStatus.SUCCEEDED, TransactionStatus.FAILED]))

    def wanted(self, merchant: Merchant, given: Given, **period: Any) -> ListFilter[Any]:
        return matching_transactions(merchant.id, **given, **period)

    def plain(self, rows: QuerySet[Any], given: Given) -> QuerySet[Any]:
        return rows.filter(**{name: value for name, value in given.items() if value})


class PaymentBuilder(ListBuilder):
    """Many pending payments are past their expiry, and no task has stored it."""

    counted = PAYMENTS
    filters = [{}, *({"status": status} for status in PaymentStatus)]

    def write(self, merchant: Merchant, chance: Random, count: int) -> None:
        made = []
        for _ in range(count):
            at = moment(chance)
            expires_at = chance.choice([at + timedelta(minutes=15), NOW + timedelta(days=3650), None])
            made.append(PaymentFactory.build(merchant=merchant, created_at=at, expires_at=expires_at))
        Payment.objects.bulk_create(made)

    def move(self, merchant: Merchant, chance: Random, count: int) -> None:
        mine = Payment.objects.filter(merchant=merchant).order_by("id")
        for status in ("failed", "expired"):
            self._move(some(mine.filter(status="pending"), chance, count // 4), status)
        paid = some(mine.filter(status__in=["pending", "expired"]), chance, count // 2)
        self._move(paid, "succeeded", completed_at=F("created_at"))
        refunded = some(mine.filter(status="succeeded"), chance, count // 4)
        with transaction.atomic():
            for payment in refunded:
                reverse_all(payment)
            self._move(refunded, "refunded", amount_refunded=F("amount"))
        never_tried = some(mine.filter(status="pending"), chance, count // 4)
        Payment.objects.filter(pk__in=[each.pk for each in never_tried]).update(updated_at=NOW)

    def race(self, merchant: Merchant, chance: Random) -> None:
        with taken(Payment.objects.filter(merchant=merchant, status="pending"), chance) as found:
            found.update(status=chance.choice(["failed", "expired"]))

    def wanted(self, merchant: Merchant, given: Given, **period: Any) -> ListFilter[Any]:
        return PAYMENTS.matching(merchant.id, given.get("status"), now=NOW, **period)

    def plain(self, rows: QuerySet[Any], given: Given) -> QuerySet[Any]:
        found = Payment.objects.filter(pk__in=rows.values("pk"))
        return found.with_status(given["status"], NOW) if given else found

    def _move(self, payments: Sequence[Payment], status: str, **fields: Any) -> None:
        Payment.objects.filter(pk__in=[each.pk for each in payments]).update(status=status, **fields)


class EventBuilder(ListBuilder):
    counted = EVENTS
    filters = [{}, *({"event": event} for event in EVENT_TYPES)]

    def write(self, merchant: Merchant, chance: Random, count: int) -> None:
        made = []
        for _ in range(count):
            event = NewEvent(merchant.id, chance.choice(EVENT_TYPES), "pay_1", {}, moment(chance))
            made.append(build(event))
        Event.objects.bulk_create(made)

    def move(self, merchant: Merchant, chance: Random, count: int) -> None:
        """No event changes."""

    def race(self, merchant: Merchant, chance: Random) -> None:
        """No event changes."""

    def wanted(self, merchant: Merchant, given: Given, **period: Any) -> ListFilter[Any]:
        return EVENTS.matching(merchant.id, given.get("event"), **period)

    def plain(self, rows: QuerySet[Any], given: Given) -> QuerySet[Any]:
        return rows.filter(type=given["event"]) if given else rows


class DeliveryBuilder(ListBuilder):
    """Deliveries of the one endpoint of a merchant."""

    counted = DELIVERIES
    filters = [
        {name: value for name, value in (("event", event), ("state", state)) if value}
        for event, state in product([None, *EVENT_TYPES], [None, *DeliveryState.values])
    ]

    def write(self, merchant: Merchant, chance: Random, count: int) -> None:
        endpoint_id = endpoint_of(merchant)
        Event.objects.bulk_create(
            events := [
                build(NewEvent(merchant.id, chance.choice(EVENT_TYPES), "pay_1", {}, moment(chance)))
                for _ in range(count)
            ]
        )
        Delivery.objects.bulk_create(
            Delivery(
                id=ids.new("dlv_", event.created_at),
                event=event,
                event_type=event.type,
                endpoint_id=endpoint_id,
                due_at=event.created_at,
                created_at=event.created_at,
            )
            for event in events
        )

    def move(self, merchant: Merchant, chance: Random, count: int) -> None:
        mine = Delivery.objects.filter(endpoint_id=endpoint_of(merchant)).order_by("id")
        for state in DeliveryState:
            moved = some(mine, chance, count // len(DeliveryState))
            Delivery.objects.filter(pk__in=[each.pk for each in moved]).update(state=state)

    def race(self, merchant: Merchant, chance: Random) -> None:
        pending = Delivery.objects.filter(endpoint_id=endpoint_of(merchant), state=DeliveryState.PENDING)
        with taken(pending, chance) as found:
            found.update(state=chance.choice(DeliveryState.values))

    def all(self, merchant: Merchant) -> QuerySet[Any]:
        return Delivery.objects.filter(endpoint_id=endpoint_of(merchant))

    def path(self, shop: Shop) -> str:
        return f"/Thai/v1/webhooks/{endpoint_of(shop.merchant)}/deliveries"

    def wanted(self, merchant: Merchant, given: Given, **period: Any) -> ListFilter[Any]:
        return matching_deliveries(endpoint_of(merchant), **given, **period)

    def plain(self, rows: QuerySet[Any], given: Given) -> QuerySet[Any]:
        if "event" in given:
            rows = rows.filter(event__type=given["event"])
        return rows.filter(state=given["state"]) if "state" in given else rows


def endpoint_of(merchant: Merchant) -> str:
    """The id of the endpoint of a merchant, which is made if there is none."""
    endpoint, _ = Endpoint.objects.get_or_create(
        merchant=merchant,
        defaults={
            "id": ids.new("wh_", NOW),
            "url": "https://shop.example",
            "events": [],
            "secret_sealed": "sealed",
            "created_at": NOW,
            "updated_at": NOW,
        },
    )
    return str(endpoint.id)


class WithdrawalBuilder(ListBuilder):
    counted = WITHDRAWALS
    filters = [{}, *({"status": status} for status in WithdrawalStatus)]

    def write(self, merchant: Merchant, chance: Random, count: int) -> None:
        made = []
        for _ in range(count):
            at = moment(chance)
            made.append(
                Withdrawal(
                    id=ids.new("wd_", at),
                    merchant=merchant,
                    amount=100,
                    currency="THB",
                    bank="sandbox",
                    bank_code="014",
                    account_sealed="sealed",
                    account_last4="4567",
                    account_name="Somchai",
                    created_at=at,
                    updated_at=at,
                )
            )
        Withdrawal.objects.bulk_create(made)

    def move(self, merchant: Merchant, chance: Random, count: int) -> None:
        pending = Withdrawal.objects.filter(merchant=merchant, status="pending").order_by("id")
        canceled = some(pending, chance, count // 2)
        Withdrawal.objects.filter(pk__in=[each.pk for each in canceled]).update(status="canceled")

    def race(self, merchant: Merchant, chance: Random) -> None:
        with taken(Withdrawal.objects.filter(merchant=merchant, status="pending"), chance) as found:
            found.update(status="canceled")

    def wanted(self, merchant: Merchant, given: Given, **period: Any) -> ListFilter[Any]:
        return WITHDRAWALS.matching(merchant.id, given.get("status"), **period)

    def plain(self, rows: QuerySet[Any], given: Given) -> QuerySet[Any]:
        return rows.filter(**given)


class RefundBuilder(ListBuilder):
    counted = REFUNDS
    filters = [{}, *({"status": status} for status in RefundStatus)]

    def write(self, merchant: Merchant, chance: Random, count: int) -> None:
        moments = [moment(chance) for _ in range(count)]
        refund_ids = [ids.new("ref_", at) for at in moments]
        paid = {"merchant": merchant, "status": "succeeded", "amount_refunding": 100}
        payments = [PaymentFactory.build(created_at=at, completed_at=at, **paid) for at in moments]
        transactions = [
            TransactionFactory.build(
                merchant=merchant,
                payment_id=payment.id,
                refund_id=refund_id,
                type="refund",
                status="pending",
                amount=-100,
                created_at=payment.created_at,
            )
            for payment, refund_id in zip(payments, refund_ids, strict=True)
        ]
        refunds = [
            Refund(
                id=row.refund_id,
                merchant=merchant,
                payment_id=row.payment_id,
                transaction=row,
                amount=100,
                currency="THB",
                created_at=row.created_at,
                updated_at=row.created_at,
            )
            for row in transactions
        ]
        with transaction.atomic():
            Payment.objects.bulk_create(payments)
            Transaction.objects.bulk_create(transactions)
            Refund.objects.bulk_create(refunds)

    def move(self, merchant: Merchant, chance: Random, count: int) -> None:
        pending = Refund.objects.filter(merchant=merchant, status="pending").order_by("id")
        canceled = some(pending, chance, count // 2)
        with transaction.atomic():
            paid = Payment.objects.filter(pk__in=[each.payment_id for each in canceled])
            paid.update(amount_refunding=0)
            Refund.objects.filter(pk__in=[each.pk for each in canceled]).update(status="canceled")

    def race(self, merchant: Merchant, chance: Random) -> None:
        with taken(Refund.objects.filter(merchant=merchant, status="pending"), chance) as found:
            found.update(status="canceled")

    def wanted(self, merchant: Merchant, given: Given, **period: Any) -> ListFilter[Any]:
        return REFUNDS.matching(merchant.id, given.get("status"), **period)

    def plain(self, rows: QuerySet[Any], given: Given) -> QuerySet[Any]:
        return rows.filter(**given)


class BalanceTransactionBuilder(ListBuilder):
    counted = BALANCE_TRANSACTIONS
    filters = [{}, *({"type": type} for type in BalanceTransactionType)]

    def write(self, merchant: Merchant, chance: Random, count: int) -> None:
        made = []
        for _ in range(count):
            at = moment(chance)
            made.append(
                BalanceTransaction(
                    id=ids.new("bal_", at),
                    merchant=merchant,
                    type=chance.choice(BalanceTransactionType.values),
                    amount=chance.randint(1, 1_000),
                    source_id=ids.new("pay_", at),
                    created_at=at,
                )
            )
        BalanceTransaction.objects.bulk_create(made)

    def move(self, merchant: Merchant, chance: Random, count: int) -> None:
        """No posting changes."""

    def race(self, merchant: Merchant, chance: Random) -> None:
        """No posting changes."""

    def wanted(self, merchant: Merchant, given: Given, **period: Any) -> ListFilter[Any]:
        return BALANCE_TRANSACTIONS.matching(merchant.id, given.get("type"), **period)

    def plain(self, rows: QuerySet[Any], given: Given) -> QuerySet[Any]:
        return rows.filter(**given)

    def path(self, shop: Shop) -> str:
        return "/Thai/v1/balance/transactions"

    def page(self, shop: Shop, query: str) -> tuple[list[str], dict[str, Any]]:
        response = shop.get(f"{self.path(shop)}?{query}")
        assert response.status_code == 200, response.content
        found: dict[str, Any] = response.json()
        return [row["balance_transaction_id"] for row in found["balance_transactions"]], found


BUILDERS: list[ListBuilder] = [
    TransactionBuilder(),
    PaymentBuilder(),
    EventBuilder(),
    DeliveryBuilder(),
    RefundBuilder(),
    WithdrawalBuilder(),
    BalanceTransactionBuilder(),
]


def moment(chance: Random) -> datetime:
    """Often the same as another. Every third is in a period that may be open."""
    if chance.random() < 1 / 3:
        return clock.now() - chance.choice(STEPS[:3])
    return chance.choice(MOMENTS) + chance.choice(STEPS) - chance.choice([timedelta(), *WIDER_STEPS])


def some(rows: QuerySet[Any], chance: Random, count: int) -> Sequence[Any]:
    found = list(rows)
    return chance.sample(found, min(count, len(found)))


@contextmanager
def taken(rows: QuerySet[Any], chance: Random) -> Iterator[QuerySet[Any]]:
    """Lock a few of the rows, in the order of their ids, so that two threads cannot deadlock."""
    keys = list(rows.values_list("pk", flat=True)[: chance.randint(1, 5)])
    with transaction.atomic():
        locked = list(rows.filter(pk__in=keys).order_by("pk").select_for_update())
        yield rows.model._default_manager.filter(pk__in=[each.pk for each in locked])


def periods(chance: Random, count: int) -> list[dict[str, datetime]]:
    """From and until, one of them, or none."""
    found: list[dict[str, datetime]] = [{}]
    for _ in range(count):
        start, end = sorted(chance.choice(MOMENTS) + chance.choice(STEPS) for _ in range(2))
        found += [{"start": start}, {"end": end}, {"start": start, "end": end}]
    return found


def times(count: int, act: Callable[[], object]) -> Callable[[], None]:
    """Return a function that calls `act` that many times in sequence."""

    def run() -> None:
        for _ in range(count):
            act()

    return run
