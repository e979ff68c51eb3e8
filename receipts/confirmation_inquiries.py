"""Ask banks about money that only an uploaded file or an unsigned notification reports.

The questions share the turns and the limits of all inquiries to the bank (`receipts.rounds`).
"""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import OuterRef, Q, QuerySet
from django.db.models.functions import Now

import banks
from banks import Notice as Told
from core import rows
from merchants.models import Merchant
from qrcodes.models import QrCode
from receipts import inbox, joining, schedule
from receipts.models import (
    ConfirmationInquiry,
    InquiryAnswer,
    Kind,
    Receipt,
    Said,
    Turn,
    Verdict,
)
from receipts.questions import Answer

log = logging.getLogger("receipts")
# Seconds from one question to the next: where somebody waits at the till, and for the lines of a file.
WAITS = {True: (1, 2, 5, 10, 30, 60, 300, 900, 3600), False: (60, 300, 900, 3600)}
FRESH_FOR = timedelta(minutes=2)
# Bank transactions are in a bank's answers long before: from then on a second person has to confirm.
PATIENCE = timedelta(days=1)
ALERT_AFTER = timedelta(minutes=5)
LOOKED_AT = 500
ASK = """
WITH turn AS (
    INSERT INTO receipts_turn (bank, free_at, rounds, silences) VALUES (%s, now(), 0, 0)
    ON CONFLICT DO NOTHING
)
INSERT INTO receipts_confirmationinquiry (
    bank, merchant_id, receipt_id, bank_transaction_id, biller_id, reference1, amount, paid_at, is_fresh,
    attempts, said, due_at, created_at
)
SELECT receipt.bank, merchant.id, receipt.id, '', receipt.biller_id, reference1, amount, paid_at, false,
    0, '', %s, %s
FROM receipts_receipt AS receipt JOIN merchants_merchant AS merchant
    ON merchant.bank = receipt.bank AND merchant.biller_id = receipt.biller_id
WHERE receipt.id = ANY(%s) AND reference1 <> ''
"""
# A merchant rests for 1 to 15 s while its bank answers nothing about it.
REST = timedelta(seconds=5)


def accept_unsigned(*, bank: str, body: bytes, notice: Told, now: datetime) -> None:
    """Keep a notification that proves nothing, and have the bank asked. It credits nothing by itself."""
    merchant = Merchant.objects.filter(bank=bank, biller_id=notice.biller_id).first()
    with transaction.atomic():
        kept = inbox.keep(bank, body, Verdict.UNSIGNED, None, now)
        if merchant is None:
            return
        can_be_asked = bank in banks.asked()
        inquiry = ConfirmationInquiry(
            bank=bank,
            merchant=merchant,
            notice=kept,
            payment_id=_payment_of(bank, notice.biller_id, notice.reference1),
            bank_transaction_id=notice.bank_transaction_id,
            biller_id=notice.biller_id,
            reference1=notice.reference1,
            amount=notice.amount,
            paid_at=notice.paid_at,
            is_fresh=True,
            due_at=now if can_be_asked else None,
            alerted_at=None if can_be_asked else now,
            created_at=now,
        )
        # The bank repeats what it told: one question is enough.
        ConfirmationInquiry.objects.bulk_create([inquiry], ignore_conflicts=True)
        _open_turn(bank)


def ask_about(bank: str, receipts: Sequence[Receipt], *, now: datetime) -> None:
    """Have the bank asked about credits that only lines of a statement report, if it can be asked."""
    unconfirmed = [receipt.id for receipt in receipts if not receipt.is_confirmed]
    if unconfirmed and bank in banks.asked():
        rows.run(ASK, [bank, now, now, unconfirmed])


def first_received_at(receipt: Receipt) -> datetime:
    """When the first report of this bank transaction reached us, perhaps an unsigned notification."""
    told = ConfirmationInquiry.objects.filter(
        bank=receipt.bank,
        bank_transaction_id__in=receipt.names,
        biller_id=receipt.biller_id,
        reference1=receipt.reference1,
        amount=receipt.amount,
        notice__isnull=False,
    )
    received = told.order_by("created_at").values_list("created_at", flat=True).first()
    return receipt.received_at if received is None else min(received, receipt.received_at)


def lane(bank: str | OuterRef, now: datetime, *, is_fresh: bool) -> "QuerySet[ConfirmationInquiry]":
    """What a bank is to be asked and nobody has in hand, the longest waiting first."""
    free = Q(lease_until__isnull=True) | Q(lease_until__lte=Now())
    due = ConfirmationInquiry.objects.filter(free, bank=bank, is_fresh=is_fresh, due_at__lte=now)
    return due.order_by("due_at")


def ready(bank: str, resting: set[str], now: datetime, *, is_fresh: bool) -> list[ConfirmationInquiry]:
    """Of one lane, those of merchants about whom the bank answers. The others are put off."""
    waiting = list(lane(bank, now, is_fresh=is_fresh)[:LOOKED_AT])
    put_off = [each.pk for each in waiting if each.merchant_id in resting]
    if put_off:
        ConfirmationInquiry.objects.filter(pk__in=put_off).update(due_at=now + schedule.paced(REST))
    return [each for each in waiting if each.merchant_id not in resting]


def locked(inquiry_ids: Sequence[int]) -> dict[str | int, ConfirmationInquiry]:
    """Those that are still due, by id, under their locks."""
    due = ConfirmationInquiry.objects.filter(pk__in=inquiry_ids, due_at__isnull=False)
    return {each.pk: each for each in due.select_for_update(skip_locked=True)}


@transaction.atomic
def settle(inquiry: ConfirmationInquiry, answer: Answer, now: datetime) -> None:
    """Write down the answer and when to ask again. Nobody is asked about what is confirmed."""
    ours = ConfirmationInquiry.objects.select_for_update().get(pk=inquiry.pk)
    ours.attempts, ours.said, ours.lease_until = ours.attempts + 1, answer.said, None
    if _is_confirmed(ours):
        ours.due_at, ours.confirmed_at = None, now
    else:
        ours.due_at = _again_at(ours, now)
        ours.is_fresh = ours.is_fresh and now < ours.created_at + schedule.paced(FRESH_FOR)
        _alert(ours, now)
    ours.save(
        update_fields=["attempts", "said", "lease_until", "due_at", "confirmed_at", "is_fresh", "alerted_at"]
    )
    if payment_id := ours.payment_id or (ours.receipt.payment_id if ours.receipt else None):
        InquiryAnswer.objects.create(
            payment_id=payment_id,
            said=answer.said,
            found=len(answer.found.notices),
            took_ms=round(answer.seconds * 1000),
            at=now,
        )


def was_parked(inquiry: ConfirmationInquiry) -> bool:
    """Whether an earlier answer could not be read either."""
    return inquiry.said == Said.UNREADABLE


def _is_confirmed(inquiry: ConfirmationInquiry) -> bool:
    if inquiry.receipt_id:
        return bool(Receipt.objects.filter(pk=inquiry.receipt_id, is_confirmed=True).exists())
    known = joining.named(inquiry.bank, inquiry.bank_transaction_id, Kind.CREDIT)
    return known is not None and known.is_confirmed


def _again_at(inquiry: ConfirmationInquiry, now: datetime) -> datetime | None:
    """None: the bank had a day to confirm it."""
    if now - inquiry.created_at >= schedule.paced(PATIENCE):
        return None
    waits = WAITS[inquiry.notice_id is not None]
    wait = waits[min(inquiry.attempts, len(waits)) - 1]
    return now + schedule.paced(timedelta(seconds=wait))


def _alert(inquiry: ConfirmationInquiry, now: datetime) -> None:
    """Staff see a notification that the bank does not confirm. Money of a file has a list of its own."""
    is_late = now - inquiry.created_at >= schedule.paced(ALERT_AFTER)
    if inquiry.notice_id and inquiry.alerted_at is None and is_late:
        inquiry.alerted_at = now
        log.warning("notice %s of %s is not confirmed by its bank", inquiry.notice_id, inquiry.bank)


def _payment_of(bank: str, biller_id: str, reference1: str) -> str | None:
    codes = QrCode.objects.filter(reference1=reference1, biller_id=biller_id, merchant__bank=bank)
    found: str | None = codes.values_list("payment_id", flat=True).first()
    return found


def _open_turn(bank: str) -> None:
    Turn.objects.bulk_create([Turn(bank=bank, free_at=Now())], ignore_conflicts=True)
