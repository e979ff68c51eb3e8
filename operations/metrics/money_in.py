"""Metrics of money that comes in: payments, inquiries, card charges, bank transactions, exceptions."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from django.db.models import Count, Q, QuerySet
from prometheus_client.core import Metric

import banks
from core.database import rows
from ledger import accounts
from merchants.models import Merchant
from operations.metrics.families import Labels, age, count, few, gauge, gauges
from payments.card_models import OPEN_STATES
from payments.models import CardCharge, Payment, PaymentStatus
from reconciliation.models import (
    BankTransaction,
    ConfirmationInquiry,
    ExceptionReason,
    Inquiry,
    ReconciliationException,
    Statement,
)
from settlements.models import AcquirerTransfer, OpenQuestion

# The sweep runs every second.
INQUIRY_OVERDUE_AFTER = timedelta(minutes=1)
MESSAGES = [
    ExceptionReason.CONFLICT,
    ExceptionReason.UNREADABLE,
    ExceptionReason.MOVED,
    ExceptionReason.UNCONFIRMED,
]
# Rows of the roll-up of counts, a few for each month.
_PAYMENTS = """
SELECT owner_id, kind, sum(count)::bigint FROM counts_listcount
WHERE owner_id IN ('live', 'test') AND list = 'payments' AND bucket = 'month'
GROUP BY 1, 2
"""


def read(now: datetime) -> Iterator[Metric]:
    overdue = count(Payment.objects.overdue(now))
    pending = count(Payment.objects.filter(status=PaymentStatus.PENDING))
    yield gauge("payments_pending", max(0, pending - overdue))
    yield gauge("payments_overdue", overdue)
    by_status: dict[Labels, float] = dict.fromkeys(product(("live", "test"), PaymentStatus.values), 0)
    by_status |= {(mode, status): found for mode, status, found in rows.run(_PAYMENTS, []).fetchall()}
    yield gauges("payments", ("mode", "status"), by_status)
    due = Inquiry.objects.filter(due_at__lte=now)
    yield gauge("inquiries_due", count(due))
    yield gauge("inquiries_overdue", count(due.filter(due_at__lte=now - INQUIRY_OVERDUE_AFTER)))
    waiting = ConfirmationInquiry.objects.filter(due_at__isnull=False)
    yield gauge("confirmation_inquiries_due", few(waiting.filter(notification=None)))
    yield gauge("notifications_unconfirmed", few(waiting.exclude(notification=None)))
    # These read the index of open charges only.
    charges = CardCharge.objects.filter(state__in=OPEN_STATES).order_by("created_at")
    yield gauge("card_charges_pending", few(charges))
    oldest = charges.values_list("created_at", flat=True).first()
    yield gauge("card_charges_oldest_pending_seconds", age(now, oldest))
    found = BankTransaction.objects
    yield _by_money("bank_transactions_not_matched", found.not_matched(), bank=accounts.SANDBOX)
    yield _by_money("bank_transactions_unconfirmed", found.unconfirmed(), bank=accounts.SANDBOX)
    yield from _exceptions(now)
    yield from _settlements(now)
    yield _statements(now)
    at_standby = Merchant.objects.filter(uses_standby=True).values_list("bank")
    by_bank = dict.fromkeys(banks.LIVE_BANKS, 0) | dict(at_standby.annotate(found=Count("pk")))
    yield gauges("merchants_at_standby", "bank", by_bank)


def _exceptions(now: datetime) -> Iterator[Metric]:
    known = ReconciliationException.objects
    others = [*MESSAGES, ExceptionReason.RETURNED, ExceptionReason.CONTRADICTION]
    for name, found in [
        ("bank_transaction_exceptions", known.exclude(reason__in=others)),
        ("notification_exceptions", known.filter(reason__in=MESSAGES)),
        ("transfer_contradictions", known.filter(reason=ExceptionReason.CONTRADICTION)),
        ("refunds_returned_open", known.filter(reason=ExceptionReason.RETURNED)),
    ]:
        yield _by_money(name, found, is_sandbox=True)
    ages = {}
    for money, is_sandbox in (("live", False), ("sandbox", True)):
        opened = known.filter(is_sandbox=is_sandbox).order_by("opened_at", "id")
        ages[money] = age(now, opened.values_list("opened_at", flat=True).first())
    yield gauges("exceptions_oldest_seconds", "money", ages)


def _settlements(now: datetime) -> Iterator[Metric]:
    late, asked = AcquirerTransfer.objects.late(now), OpenQuestion.objects.filter(closed_at__isnull=True)
    yield _by_money("settlements_late", late, acquirer=accounts.SANDBOX)
    yield _by_money("settlement_questions_open", asked, acquirer=accounts.SANDBOX)
    ages = {}
    is_sandbox = Q(acquirer=accounts.SANDBOX)
    for money, found in (("live", asked.exclude(is_sandbox)), ("sandbox", asked.filter(is_sandbox))):
        ages[money] = age(now, found.order_by("opened_at").values_list("opened_at", flat=True).first())
    yield gauges("settlement_questions_oldest_seconds", "money", ages)


def _by_money(name: str, found: "QuerySet[Any]", **sandbox: Any) -> Metric:
    """Money of the sandbox bank is not real, so alerts use the live numbers only."""
    live = few(found.exclude(**sandbox))
    return gauges(name, "money", {"live": live, "sandbox": few(found.filter(**sandbox))})


def _statements(now: datetime) -> Metric:
    """A bank without any statement has no value. The newest one stands at the end of the index."""
    ages = {}
    for bank in sorted(banks.configured_banks()):
        done = Statement.objects.filter(bank=bank, completed_at__isnull=False).order_by("-created_at")
        newest = done.values_list("completed_at", flat=True).first()
        if newest is not None:
            ages[bank] = age(now, newest)
    return gauges("statement_age_seconds", "bank", ages)
