"""Nightly payouts: what is above the float goes to the payout account, as ordinary withdrawals.

One transaction makes a night: its row, which is unique, its withdrawals, and the time of the next one. A
worker that is killed leaves all or nothing, and of several workers one has the lock of the schedule.
"""

import logging
from collections.abc import Callable, Iterator
from datetime import date, datetime
from typing import Any

from django.db import transaction

from approvals import payout_accounts, services as approvals
from approvals.payout_accounts import PayoutAccountNotAllowed, PayoutAccountTooNew
from audit_trail.acts import Act
from audit_trail.recording import recorded
from core import clock, money, request_context
from core.observing import security_log
from core.observing.security_log import SecurityEvent
from ledger import services as ledger
from merchants.models import Merchant
from transfers import safe_mode
from transfers.models import SafeMode
from withdrawals import services as withdrawals
from withdrawals.models import PayoutNight, PayoutSchedule, SkipReason

log = logging.getLogger("withdrawals")


def run_due(*, now: Callable[[], datetime]) -> None:
    """Make all nights that are due. A failed one is due again; its error is raised after the others."""
    errors = []
    for merchant_id in PayoutSchedule.objects.due(now()).order_by("due_at").values_list("pk", flat=True):
        try:
            _run(merchant_id, now())
        # It must not stop the payouts of other merchants.
        except Exception as error:
            log.exception("the nightly payout of %s failed", merchant_id)
            errors.append(error)
    if errors:
        raise errors[0]


@transaction.atomic
def change(merchant: Merchant, terms: dict[str, Any] | None, *, now: datetime) -> PayoutSchedule:
    """Set days, time, float_amount and account of the nights from now on; None switches them off."""
    # The lock lets the second of two simultaneous calls see the row of the first.
    Merchant.objects.select_for_update(no_key=True).get(pk=merchant.pk)
    known = PayoutSchedule.objects.select_for_update(no_key=True).filter(pk=merchant.pk).first()
    with recorded(Act.PAYOUT_SCHEDULE_CHANGED, known) as recording:
        recording.row = schedule = known or PayoutSchedule(merchant=merchant)
        # Nights of the old terms, which nothing made. So the new ones cannot pay them either.
        for due_at in schedule.take_due(now):
            _record(schedule, _day(due_at), now, reason=SkipReason.MISSED)
        for name, value in (terms or {}).items():
            setattr(schedule, name, value)
        schedule.due_at = schedule.first_due(now) if terms else None
        schedule.changed_by, schedule.changed_at = request_context.current().actor, now
        schedule.save()
    changes = ["+nightly_payout" if terms else "-nightly_payout"]
    event, subject = SecurityEvent.PAYOUT_SCHEDULE_CHANGED, schedule.account_id
    security_log.record_on_commit(event, subject=subject, merchant_id=merchant.pk, changes=changes)
    return schedule


@transaction.atomic
def _run(merchant_id: str, now: datetime) -> None:
    due = PayoutSchedule.objects.due(now).filter(pk=merchant_id).select_related("merchant", "account")
    schedule = due.select_for_update(skip_locked=True, no_key=True, of=("self",)).first()
    if schedule is None:  # another worker has it, or staff have just changed it
        return
    for due_at in schedule.take_due(now):
        day = _day(due_at)
        reason = _skip_reason(schedule, due_at, now) if day == _day(now) else SkipReason.MISSED
        _record(schedule, day, now, amount=0 if reason else _pay(schedule, day, now), reason=reason)
    schedule.save(update_fields=["due_at"])


def _skip_reason(schedule: PayoutSchedule, due_at: datetime, now: datetime) -> str:
    """Why this night has no withdrawal. Nobody takes money or changes the list from here to the commit."""
    merchant, account = schedule.merchant, schedule.account
    approvals.lock_limits(merchant.pk)
    debt = ledger.lock_debt(merchant_id=merchant.pk, now=now)
    # A restored database does not know whether the night was paid.
    if safe_mode.is_on() or SafeMode.objects.filter(ended_at__gte=due_at).exists():
        return SkipReason.SAFE_MODE
    if merchant.suspended_at is not None:
        return SkipReason.SUSPENDED
    try:
        payout_accounts.check_listed(merchant.pk, account.bank_code, account.account, now=now)
    except (PayoutAccountNotAllowed, PayoutAccountTooNew) as refusal:
        return SkipReason(refusal.code)
    if debt:
        return SkipReason.NEGATIVE_BALANCE
    if (surplus := _surplus(schedule)) < money.MIN_AMOUNT:
        return SkipReason.TOO_SMALL if surplus > 0 else SkipReason.NOTHING_AVAILABLE
    return ""


def _pay(schedule: PayoutSchedule, day: date, now: datetime) -> int:
    """Withdraw what is above the float. Returns the satang."""
    # The person who decided where the money goes is its requester, and so cannot approve it.
    request_context.set_actor(schedule.changed_by)
    account, amounts, reference = schedule.account, list(_parts(_surplus(schedule))), f"NIGHTLY-{day}"
    for amount in amounts:
        withdrawals.create(
            merchant=schedule.merchant,
            now=now,
            amount=amount,
            bank_account=account.account,
            bank_code=account.bank_code,
            account_name=account.account_name,
            reference=reference,
            payout_night=day,
            note=reference,
        )
    return sum(amounts)


def _surplus(schedule: PayoutSchedule) -> int:
    return ledger.balance(schedule.merchant_id).available - schedule.float_amount


def _parts(satang: int) -> Iterator[int]:
    """Amounts that a bank carries out at once. What is less than the smallest stays in the balance."""
    while satang >= money.MIN_AMOUNT:
        yield (part := min(satang, money.MAX_AMOUNT))
        satang -= part


def _record(schedule: PayoutSchedule, day: date, now: datetime, *, amount: int = 0, reason: str = "") -> None:
    merchant = schedule.merchant
    PayoutNight.objects.create(merchant=merchant, day=day, amount=amount, skip_reason=reason, created_at=now)
    log.info("nightly payout of %s for %s: %s", merchant.pk, day, reason or f"{amount} satang")


def _day(at: datetime) -> date:
    return at.astimezone(clock.BANGKOK).date()
