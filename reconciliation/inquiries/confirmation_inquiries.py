"""Inquiries to banks about money that only an uploaded statement or an unsigned notification reports.

`reconciliation.inquiries.batches` makes them, within the rate limit that all inquiries to a bank share.
"""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction

import banks
from banks import ReportedTransaction
from core.database import rows
from core.work import due_work
from merchants.models import OF_MERCHANT, Merchant
from qrcodes.models import QrCode
from reconciliation import models
from reconciliation.inquiries import bank_calls, rate_limit, schedule
from reconciliation.inquiries.bank_calls import InquiryResponse
from reconciliation.matching import deduplication, intake

log = logging.getLogger("reconciliation")
# Seconds between two inquiries: a payer may wait for an unsigned notification, but not for a statement line.
RETRY_SECONDS = {True: (1, 2, 5, 10, 30, 60, 300, 900, 3600), False: (60, 300, 900, 3600)}
ALERT_AFTER = timedelta(minutes=5)
CREATE = f"""
INSERT INTO reconciliation_confirmationinquiry (
    bank, merchant_id, bank_transaction_id, bank_reference, biller_id, reference1, amount, paid_at, is_urgent,
    attempts, last_outcome, due_at, created_at
)
SELECT bank_transaction.bank, m.id, bank_transaction.id, '', bank_transaction.biller_id,
    reference1, amount, paid_at, false, 0, '', %s, %s
FROM reconciliation_banktransaction AS bank_transaction JOIN merchants_merchant AS m
    ON (bank_transaction.bank, bank_transaction.biller_id) IN ({OF_MERCHANT})
WHERE bank_transaction.id = ANY(%s) AND reference1 <> ''
"""  # noqa: S608


def receive_unsigned(*, bank: str, body: bytes, notification: ReportedTransaction, now: datetime) -> None:
    """Store an unsigned notification and schedule an inquiry. Nothing is credited before the answer."""
    merchant = Merchant.objects.of_biller(bank, notification.biller_id)
    codes = QrCode.objects.filter(
        reference1=notification.reference1, biller_id=notification.biller_id, bank=bank
    )
    has_moved = merchant is not None and merchant.moved_at is not None
    with transaction.atomic():
        result = models.NotificationResult.MOVED if has_moved else models.NotificationResult.UNSIGNED
        stored = intake.store(bank, body, result, now)
        if merchant is None or has_moved:
            return
        inquiry = models.ConfirmationInquiry(
            bank=bank,
            merchant=merchant,
            notification=stored,
            payment_id=codes.values_list("payment_id", flat=True).first(),
            bank_reference=notification.bank_reference,
            biller_id=notification.biller_id,
            reference1=notification.reference1,
            amount=notification.amount,
            paid_at=notification.paid_at,
            is_urgent=True,
            due_at=now,
            created_at=now,
        )
        # The bank may repeat its notification: one inquiry is enough.
        models.ConfirmationInquiry.objects.bulk_create([inquiry], ignore_conflicts=True)
        rate_limit.ensure_rows([bank])


def create_for_statement(
    bank: str, bank_transactions: Sequence[models.BankTransaction], *, now: datetime
) -> None:
    """Schedule inquiries about credits that only a statement reports, if the bank is configured."""
    unconfirmed = [each.id for each in bank_transactions if not each.is_confirmed]
    if unconfirmed and bank in banks.configured_banks():
        rate_limit.ensure_rows([bank])
        rows.run(CREATE, [now, now, unconfirmed])


@transaction.atomic
def record_answer(inquiry: models.ConfirmationInquiry, answer: InquiryResponse, now: datetime) -> None:
    """Store the answer and the time of the next inquiry. Confirmed money needs no further inquiry."""
    if inquiry.notification_id:
        models.BankNotification.objects.select_for_update(no_key=True).get(pk=inquiry.notification_id)
    locked = models.ConfirmationInquiry.objects.select_for_update().get(pk=inquiry.pk)
    locked.attempts, locked.last_outcome, locked.lease_until = locked.attempts + 1, answer.outcome, None
    age = now - locked.created_at
    if _is_confirmed(locked):
        locked.due_at, locked.confirmed_at = None, now
    else:
        wait = due_work.interval(RETRY_SECONDS[locked.notification_id is not None], locked.attempts - 1)
        # After a day a second person must confirm the money. Banks report a payment much sooner.
        is_over = age >= schedule.scaled(schedule.GIVE_UP_AFTER)
        locked.due_at = None if is_over else now + schedule.scaled(timedelta(seconds=wait))
        locked.is_urgent = locked.is_urgent and age < schedule.scaled(schedule.URGENT_FOR)
        # Staff see a notification then. Unconfirmed money of a statement is on a separate list.
        if locked.notification_id and locked.alerted_at is None and age >= schedule.scaled(ALERT_AFTER):
            locked.alerted_at = now
            log.warning("notification %s of %s is not confirmed", locked.notification_id, locked.bank)
    locked.save()
    if locked.alerted_at:
        show(locked)
    if payment_id := locked.payment_id or (
        locked.bank_transaction.payment_id if locked.bank_transaction else None
    ):
        bank_calls.record_response(payment_id, answer, now)


def show(inquiry: models.ConfirmationInquiry) -> None:
    """List its notification while staff should look at it. The caller holds the notification's lock."""
    message_id = str(inquiry.notification_id)
    decision = models.Resolution.latest(message_id)
    is_dismissed = decision is not None and decision.type == models.ResolutionType.DISMISSED
    if inquiry.alerted_at is None or inquiry.confirmed_at or is_dismissed:
        models.listing.close(message_id)
        return
    row = models.ReconciliationException(
        id=message_id,
        reason=models.ExceptionReason.UNCONFIRMED,
        bank=inquiry.bank,
        merchant_id=inquiry.merchant_id,
        payment_id=inquiry.payment_id,
        amount=inquiry.amount,
        reference1=inquiry.reference1,
        bank_reference=inquiry.bank_reference,
        opened_at=inquiry.created_at,
    )
    models.listing.show([row])


def _is_confirmed(inquiry: models.ConfirmationInquiry) -> bool:
    if inquiry.bank_transaction_id:
        return bool(
            models.BankTransaction.objects.filter(pk=inquiry.bank_transaction_id, is_confirmed=True).exists()
        )
    known = deduplication.find_by_bank_reference(
        inquiry.bank, inquiry.bank_reference, models.BankTransactionKind.CREDIT
    )
    return known is not None and known.is_confirmed
