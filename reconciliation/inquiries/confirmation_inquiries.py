"""Ask banks about money that only an uploaded file or an unsigned notification reports.

The questions share the turns and the limits of all inquiries to the bank
(`reconciliation.inquiries.batches`).
"""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import OuterRef, Q, QuerySet
from django.db.models.functions import Now

import banks
from banks import ReportedTransaction as Told
from core import rows
from merchants.models import Merchant
from qrcodes.models import QrCode
from reconciliation.inquiries import schedule
from reconciliation.inquiries.bank_calls import InquiryResponse
from reconciliation.matching import deduplication
from reconciliation.models import (
    BankRateLimit,
    BankTransaction,
    BankTransactionKind,
    ConfirmationInquiry,
    InquiryAnswer,
    InquiryOutcome,
    NotificationResult,
)
from reconciliation.notifications import intake

log = logging.getLogger("reconciliation")
# Seconds from one question to the next: where somebody waits at the till, and for the lines of a file.
RETRY_SECONDS = {True: (1, 2, 5, 10, 30, 60, 300, 900, 3600), False: (60, 300, 900, 3600)}
URGENT_FOR = timedelta(minutes=2)
# Bank transactions are in a bank's answers long before: from then on a second person has to confirm.
GIVE_UP_AFTER = timedelta(days=1)
ALERT_AFTER = timedelta(minutes=5)
MAX_EXAMINED = 500
CREATE = """
WITH turn AS (
    INSERT INTO reconciliation_bankratelimit (bank, available_at, batch_count, silent_batches) VALUES (%s,
    now(), 0, 0)
    ON CONFLICT DO NOTHING
)
INSERT INTO reconciliation_confirmationinquiry (
    bank, merchant_id, movement_id, bank_transaction_id, biller_id, reference1, amount, paid_at, is_urgent,
    attempts, last_outcome, due_at, created_at
)
SELECT movement.bank, merchant.id, movement.id, '', movement.biller_id, reference1, amount, paid_at, false,
    0, '', %s, %s
FROM reconciliation_banktransaction AS movement JOIN merchants_merchant AS merchant
    ON merchant.bank = movement.bank AND merchant.biller_id = movement.biller_id
WHERE movement.id = ANY(%s) AND reference1 <> ''
"""
# A merchant rests for 1 to 15 s while its bank answers nothing about it.
BACKOFF = timedelta(seconds=5)


def receive_unsigned(*, bank: str, body: bytes, notification: Told, now: datetime) -> None:
    """Keep a notification that proves nothing, and have the bank asked. It credits nothing by itself."""
    merchant = Merchant.objects.filter(bank=bank, biller_id=notification.biller_id).first()
    with transaction.atomic():
        stored = intake.store(bank, body, NotificationResult.UNSIGNED, None, now)
        if merchant is None:
            return
        can_be_asked = bank in banks.banks_with_inquiry()
        inquiry = ConfirmationInquiry(
            bank=bank,
            merchant=merchant,
            notification=stored,
            payment_id=_find_payment_id(bank, notification.biller_id, notification.reference1),
            bank_transaction_id=notification.bank_transaction_id,
            biller_id=notification.biller_id,
            reference1=notification.reference1,
            amount=notification.amount,
            paid_at=notification.paid_at,
            is_urgent=True,
            due_at=now if can_be_asked else None,
            alerted_at=None if can_be_asked else now,
            created_at=now,
        )
        # The bank repeats what it told: one question is enough.
        ConfirmationInquiry.objects.bulk_create([inquiry], ignore_conflicts=True)
        _ensure_rate_limit(bank)


def create_for_statement(bank: str, movements: Sequence[BankTransaction], *, now: datetime) -> None:
    """Have the bank asked about credits that only lines of a statement report, if it can be asked."""
    unconfirmed = [movement.id for movement in movements if not movement.is_confirmed]
    if unconfirmed and bank in banks.banks_with_inquiry():
        rows.run(CREATE, [bank, now, now, unconfirmed])


def first_received_at(movement: BankTransaction) -> datetime:
    """When the first report of this bank transaction reached us, perhaps an unsigned notification."""
    told = ConfirmationInquiry.objects.filter(
        bank=movement.bank,
        bank_transaction_id__in=movement.bank_transaction_ids,
        biller_id=movement.biller_id,
        reference1=movement.reference1,
        amount=movement.amount,
        notification__isnull=False,
    )
    received = told.order_by("created_at").values_list("created_at", flat=True).first()
    return movement.received_at if received is None else min(received, movement.received_at)


def due_inquiries(bank: str | OuterRef, now: datetime, *, is_urgent: bool) -> "QuerySet[ConfirmationInquiry]":
    """What a bank is to be asked and nobody has in hand, the longest waiting first."""
    free = Q(lease_until__isnull=True) | Q(lease_until__lte=Now())
    due = ConfirmationInquiry.objects.filter(free, bank=bank, is_urgent=is_urgent, due_at__lte=now)
    return due.order_by("due_at")


def select_due(bank: str, paused: set[str], now: datetime, *, is_urgent: bool) -> list[ConfirmationInquiry]:
    """Of one lane, those of merchants about whom the bank answers. The others are put off."""
    waiting = list(due_inquiries(bank, now, is_urgent=is_urgent)[:MAX_EXAMINED])
    put_off = [each.pk for each in waiting if each.merchant_id in paused]
    if put_off:
        ConfirmationInquiry.objects.filter(pk__in=put_off).update(due_at=now + schedule.scaled(BACKOFF))
    return [each for each in waiting if each.merchant_id not in paused]


def lock_due(inquiry_ids: Sequence[int]) -> dict[str | int, ConfirmationInquiry]:
    """Those that are still due, by id, under their locks."""
    due = ConfirmationInquiry.objects.filter(pk__in=inquiry_ids, due_at__isnull=False)
    return {each.pk: each for each in due.select_for_update(skip_locked=True)}


@transaction.atomic
def record_answer(inquiry: ConfirmationInquiry, answer: InquiryResponse, now: datetime) -> None:
    """Write down the answer and when to ask again. Nobody is asked about what is confirmed."""
    locked = ConfirmationInquiry.objects.select_for_update().get(pk=inquiry.pk)
    locked.attempts, locked.last_outcome, locked.lease_until = locked.attempts + 1, answer.outcome, None
    if _is_confirmed(locked):
        locked.due_at, locked.confirmed_at = None, now
    else:
        locked.due_at = _retry_at(locked, now)
        locked.is_urgent = locked.is_urgent and now < locked.created_at + schedule.scaled(URGENT_FOR)
        _alert(locked, now)
    locked.save(
        update_fields=[
            "attempts",
            "last_outcome",
            "lease_until",
            "due_at",
            "confirmed_at",
            "is_urgent",
            "alerted_at",
        ]
    )
    if payment_id := locked.payment_id or (locked.movement.payment_id if locked.movement else None):
        InquiryAnswer.objects.create(
            payment_id=payment_id,
            outcome=answer.outcome,
            transaction_count=len(answer.found.transactions),
            duration_ms=round(answer.seconds * 1000),
            answered_at=now,
        )


def was_stored_unreadable(inquiry: ConfirmationInquiry) -> bool:
    """Whether an earlier answer could not be read either."""
    return inquiry.last_outcome == InquiryOutcome.UNREADABLE


def _is_confirmed(inquiry: ConfirmationInquiry) -> bool:
    if inquiry.movement_id:
        return bool(BankTransaction.objects.filter(pk=inquiry.movement_id, is_confirmed=True).exists())
    known = deduplication.find_by_bank_id(
        inquiry.bank, inquiry.bank_transaction_id, BankTransactionKind.CREDIT
    )
    return known is not None and known.is_confirmed


def _retry_at(inquiry: ConfirmationInquiry, now: datetime) -> datetime | None:
    """None: the bank had a day to confirm it."""
    if now - inquiry.created_at >= schedule.scaled(GIVE_UP_AFTER):
        return None
    waits = RETRY_SECONDS[inquiry.notification_id is not None]
    wait = waits[min(inquiry.attempts, len(waits)) - 1]
    return now + schedule.scaled(timedelta(seconds=wait))


def _alert(inquiry: ConfirmationInquiry, now: datetime) -> None:
    """Staff see a notification that the bank does not confirm. Money of a file has a list of its own."""
    is_late = now - inquiry.created_at >= schedule.scaled(ALERT_AFTER)
    if inquiry.notification_id and inquiry.alerted_at is None and is_late:
        inquiry.alerted_at = now
        log.warning(
            "notification %s of %s is not confirmed by its bank", inquiry.notification_id, inquiry.bank
        )


def _find_payment_id(bank: str, biller_id: str, reference1: str) -> str | None:
    codes = QrCode.objects.filter(reference1=reference1, biller_id=biller_id, merchant__bank=bank)
    found: str | None = codes.values_list("payment_id", flat=True).first()
    return found


def _ensure_rate_limit(bank: str) -> None:
    BankRateLimit.objects.bulk_create([BankRateLimit(bank=bank, available_at=Now())], ignore_conflicts=True)
