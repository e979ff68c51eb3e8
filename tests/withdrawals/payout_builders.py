"""Schedules of nightly payouts, and what became of their nights."""

from datetime import UTC, date, datetime, time
from typing import Any

from approvals import payout_accounts
from approvals.models import PayoutAccount
from core import clock
from tests.approvals.builders import add_payout_account
from tests.conftest import Shop
from tests.context import acting_as
from withdrawals import payouts
from withdrawals.models import PayoutDays, PayoutNight, PayoutSchedule, Withdrawal

ANONG = "staff:anong"
SATURDAY = date(2026, 11, 21)
Result = tuple[str, int, str]


def bangkok(text: str, day: date = SATURDAY) -> datetime:
    """The instant of a time in Bangkok, such as 21:00."""
    return datetime.combine(day, time.fromisoformat(text), clock.BANGKOK).astimezone(UTC)


def schedule(
    shop: Shop, *, now: datetime, account: PayoutAccount | None = None, **terms: Any
) -> PayoutSchedule:
    """As staff set it, with an account whose waiting period is over, and no float."""
    account = account or PayoutAccount.objects.filter(merchant=shop.merchant, removed_at=None).first()
    given = {"days": PayoutDays.EVERY_DAY, "time": time(21), "float_amount": 0}
    given["account"] = account or add_payout_account(shop)
    with acting_as(ANONG):
        return payouts.change(shop.merchant, given | terms, now=now)


def run_at(now: datetime) -> None:
    """The worker's task at this instant."""
    with acting_as("task:withdrawals.pay_nightly"):
        payouts.run_due(now=lambda: now)


def nights() -> list[Result]:
    """The nights by day: the satang, or why there are none."""
    rows = PayoutNight.objects.order_by("day").values_list("day", "amount", "skip_reason")
    return [(str(day), amount, reason) for day, amount, reason in rows]


def paid() -> list[tuple[str, int]]:
    rows = Withdrawal.objects.filter(payout_night__isnull=False).order_by("payout_night", "-amount")
    return [(str(night), amount) for night, amount in rows.values_list("payout_night", "amount")]


def remove(account: PayoutAccount, now: datetime) -> None:
    with acting_as(ANONG):
        payout_accounts.remove(account.pk, now=now)
