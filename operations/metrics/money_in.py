"""Metrics of money that comes in: payments, inquiries, card charges, bank transactions, exceptions."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from prometheus_client.core import Metric

import banks
from core import admin_lists, rows
from ledger import accounts
from operations.metrics.families import Labels, count, gauge, gauges
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

# The sweep runs every second.
INQUIRY_OVERDUE_AFTER = timedelta(minutes=1)
UP_TO = f"Counted up to {admin_lists.MAX_COUNTED}."
MESSAGES = [ExceptionReason.CONFLICT, ExceptionReason.UNREADABLE, ExceptionReason.UNCONFIRMED]
# Rows of the roll-up of counts, a few for each month.
_PAYMENTS = """
SELECT owner_id, kind, sum(count)::bigint FROM counts_listcount
WHERE owner_id IN ('live', 'test') AND list = 'payments' AND bucket = 'month'
GROUP BY 1, 2
"""


def read(now: datetime) -> Iterator[Metric]:
    yield from _payments(now)
    yield from _inquiries(now)
    yield from _card_charges(now)
    yield from _bank_transactions()
    yield from _exceptions(now)
    yield _statements(now)


def _payments(now: datetime) -> Iterator[Metric]:
    overdue = count(Payment.objects.overdue(now))
    pending = count(Payment.objects.filter(status=PaymentStatus.PENDING))
    yield gauge("payments_pending", "Payments without a final status.", max(0, pending - overdue))
    yield gauge("payments_overdue", "Payments past their expiry that are still pending.", overdue)
    by_status: dict[Labels, float] = dict.fromkeys(product(("live", "test"), PaymentStatus.values), 0)
    by_status |= {(mode, status): found for mode, status, found in rows.run(_PAYMENTS, []).fetchall()}
    yield gauges("payments", "Payments by their present status.", ("mode", "status"), by_status)


def _inquiries(now: datetime) -> Iterator[Metric]:
    due = Inquiry.objects.filter(due_at__lte=now)
    yield gauge("inquiries_due", "Payments with a due inquiry.", count(due))
    late = due.filter(due_at__lte=now - INQUIRY_OVERDUE_AFTER)
    yield gauge("inquiries_overdue", "Payments whose inquiry is overdue by a minute.", count(late))
    for name, help_text, waiting in [
        (
            "confirmation_inquiries_due",
            "Statement lines with a due confirmation inquiry",
            ConfirmationInquiry.objects.filter(due_at__isnull=False, notification=None),
        ),
        (
            "notifications_unconfirmed",
            "Unsigned notifications with a due confirmation inquiry",
            ConfirmationInquiry.objects.filter(due_at__isnull=False).exclude(notification=None),
        ),
    ]:
        yield gauge(name, f"{help_text}. {UP_TO}", count(waiting, admin_lists.MAX_COUNTED))


def _card_charges(now: datetime) -> Iterator[Metric]:
    """Reads the index of open charges only."""
    pending = CardCharge.objects.filter(state__in=OPEN_STATES).order_by("created_at")
    oldest = pending.values_list("created_at", flat=True).first()
    help_text = f"Card charges without a final status. {UP_TO}"
    yield gauge("card_charges_pending", help_text, count(pending, admin_lists.MAX_COUNTED))
    yield gauge("card_charges_oldest_pending_seconds", "Age of the oldest of these.", _age(now, oldest))


def _bank_transactions() -> Iterator[Metric]:
    for name, help_text, found in [
        (
            "bank_transactions_not_matched",
            "Bank transactions that are stored but not applied.",
            BankTransaction.objects.not_matched(),
        ),
        (
            "bank_transactions_unconfirmed",
            "Credits reported only by a statement.",
            BankTransaction.objects.unconfirmed(),
        ),
    ]:
        live, sandbox = found.exclude(bank=accounts.SANDBOX), found.filter(bank=accounts.SANDBOX)
        yield _by_money(name, help_text, live, sandbox)


def _exceptions(now: datetime) -> Iterator[Metric]:
    known = ReconciliationException.objects
    others = [*MESSAGES, ExceptionReason.RETURNED, ExceptionReason.CONTRADICTION]
    for name, help_text, found in [
        (
            "bank_transaction_exceptions",
            "Bank transactions that wait for staff.",
            known.exclude(reason__in=others),
        ),
        (
            "notification_exceptions",
            "Bank notifications that are exceptions.",
            known.filter(reason__in=MESSAGES),
        ),
        (
            "transfer_contradictions",
            "Transfers and charges whose bank contradicts our record.",
            known.filter(reason=ExceptionReason.CONTRADICTION),
        ),
        (
            "refunds_returned_open",
            "Refunds returned by the bank, not yet resolved.",
            known.filter(reason=ExceptionReason.RETURNED),
        ),
    ]:
        yield _by_money(name, help_text, found.filter(is_sandbox=False), found.filter(is_sandbox=True))
    ages = {}
    for money, is_sandbox in (("live", False), ("sandbox", True)):
        opened = known.filter(is_sandbox=is_sandbox).order_by("opened_at", "id")
        ages[money] = _age(now, opened.values_list("opened_at", flat=True).first())
    yield gauges("exceptions_oldest_seconds", "Age of the oldest open exception, or 0.", "money", ages)


def _by_money(name: str, help_text: str, live: Any, sandbox: Any) -> Metric:
    """Money of the sandbox bank is not real, so alerts use the live numbers only."""
    values = {
        "live": count(live, admin_lists.MAX_COUNTED),
        "sandbox": count(sandbox, admin_lists.MAX_COUNTED),
    }
    return gauges(name, f"{help_text} {UP_TO}", "money", values)


def _statements(now: datetime) -> Metric:
    """A bank without any statement has no value. The newest one stands at the end of the index."""
    ages = {}
    for bank in sorted(banks.configured_banks()):
        done = Statement.objects.filter(bank=bank, completed_at__isnull=False).order_by("-created_at")
        newest = done.values_list("completed_at", flat=True).first()
        if newest is not None:
            ages[bank] = _age(now, newest)
    return gauges("statement_age_seconds", "Time since the last import of a statement.", "bank", ages)


def _age(now: datetime, at: datetime | None) -> float:
    return 0.0 if at is None else max((now - at).total_seconds(), 0.0)
