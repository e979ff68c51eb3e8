"""Histories made by chance from a seed, and the plain way to read them, which is always right."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from random import Random
from typing import Any

from core import ids
from merchants.models import Merchant
from tests.factories import TransactionFactory
from transactions import services
from transactions.counting import TransactionFilter
from transactions.models import Transaction, TransactionStatus, TransactionType

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
FILTERS: list[dict[str, Any]] = [
    {"type": kind, "status": status}
    for kind, status in product([None, *TransactionType], [None, *TransactionStatus])
]
ROWS = [
    (TransactionType.PAYMENT, TransactionStatus.SUCCEEDED, 100),
    (TransactionType.FAILED, TransactionStatus.FAILED, 100),
    (TransactionType.REFUND, TransactionStatus.PENDING, -100),
]


def moment(chance: Random) -> datetime:
    """Often the same as another."""
    return chance.choice(MOMENTS) + chance.choice(STEPS) - chance.choice([timedelta(), *WIDER_STEPS])


def write(merchant: Merchant, chance: Random, count: int) -> None:
    """Insert rows by one statement."""
    made = []
    for kind, status, amount in chance.choices(ROWS, [8, 2, 3], k=count):
        at = moment(chance)
        refund_id = ids.new("ref_", at) if kind is TransactionType.REFUND else None
        fields = {"type": kind, "status": status, "amount": amount, "refund_id": refund_id}
        made.append(TransactionFactory.build(merchant=merchant, created_at=at, **fields))
    Transaction.objects.bulk_create(made)


def move(merchant: Merchant, chance: Random, count: int) -> None:
    """Let refunds end, and payments go back."""
    rows = Transaction.objects.filter(merchant=merchant).order_by("id")
    for refund in _some(rows.filter(status=TransactionStatus.PENDING), chance, count):
        services.complete_refund(
            refund_id=refund.refund_id,
            status=chance.choice([TransactionStatus.SUCCEEDED, TransactionStatus.FAILED]),
        )
    for payment in _some(
        rows.filter(type=TransactionType.PAYMENT, status=TransactionStatus.SUCCEEDED), chance, count
    ):
        services.mark_refunded(payment_id=payment.payment_id)


def _some(rows: Any, chance: Random, count: int) -> Sequence[Any]:
    found = list(rows)
    return chance.sample(found, min(count, len(found)))


def stretches(chance: Random, count: int) -> list[dict[str, Any]]:
    """From and until, one of them, or none."""
    found: list[dict[str, Any]] = [{}]
    for _ in range(count):
        start, end = sorted(chance.choice(MOMENTS) + chance.choice(STEPS) for _ in range(2))
        found += [{"start": start}, {"end": end}, {"start": start, "end": end}]
    return found


def matching(wanted: TransactionFilter) -> Any:
    """The rows by Django's own query."""
    found = Transaction.objects.filter(
        merchant=wanted.merchant_id, created_at__gte=wanted.start, created_at__lt=wanted.end
    )
    for name in ("type", "status"):
        if value := getattr(wanted, name):
            found = found.filter(**{name: value})
    return found.order_by("-created_at", "-id")


def times(count: int, act: Callable[[], object]) -> Callable[[], None]:
    """Return a function that calls `act` that many times in sequence."""

    def run() -> None:
        for _ in range(count):
            act()

    return run
