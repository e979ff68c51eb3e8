"""Store bank notifications as they came, each with its bank transaction in one commit, before matching."""

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from banks import base
from banks.parsing import MAX_NAME_LENGTH
from core import ids, plain_text, request_context
from core.database import rows
from merchants.errors import has_moved
from reconciliation.matching import deduplication
from reconciliation.models import (
    BankNotification,
    BankTransaction,
    BankTransactionKind,
    NotificationResult,
    ReportSource,
    listing,
)

log = logging.getLogger("reconciliation")
NEEDS_STAFF = {
    NotificationResult.CONFLICT,
    NotificationResult.UNREADABLE,
    NotificationResult.FEE_DIFFERS,
    NotificationResult.MOVED,
}
# Reports with one bank reference must agree on these fields and on the bank day. Not on the payer: banks mask
# names differently.
_COMPARED_FIELDS = ("biller_id", "reference1", "reference2", "reference3", "amount")
_KEPT_AS_REPORTED = (
    "bank_reference", "kind", *_COMPARED_FIELDS, "paid_at", "payer_bank_code", "slip_reference",
)  # fmt: skip


class Moved(Exception):
    """The merchant has moved. The notification is stored, and staff see it."""


def receive(
    *,
    bank: str,
    body: bytes,
    notification: base.ReportedTransaction,
    now: datetime,
    source: ReportSource = ReportSource.CALLBACK,
) -> BankTransaction:
    """Store a notification and return its bank transaction, which is new or known. Raises Moved.
    New details of the payer are stored in a second commit. If that fails, the notification is stored, and the
    bank gets an error and sends it again.
    """
    new_bank_transaction = build_bank_transaction(bank, notification, source, now)
    try:
        with transaction.atomic():
            bank_transaction, result = _find(new_bank_transaction)
            row = build_notification(bank, body, result, now, source, bank_transaction=bank_transaction)
            new_rows = [bank_transaction] if result == NotificationResult.NEW else []
            rows.insert_together([*new_rows, row])
            show([row])
    except IntegrityError as refused:
        if not has_moved(refused):
            raise
        store(bank, body, NotificationResult.MOVED, now, source=source)
        raise Moved from None
    if result == NotificationResult.REPEAT:
        deduplication.add_payer_details(bank_transaction, new_bank_transaction)
    return bank_transaction


def store(
    bank: str,
    body: bytes,
    result: NotificationResult,
    now: datetime,
    *,
    source: ReportSource = ReportSource.CALLBACK,
    order_id: str | None = None,
) -> BankNotification:
    """Store a notification without a bank transaction. order_id: the order of ours that it reports on."""
    notification = build_notification(bank, body, result, now, source, order_id=order_id)
    with transaction.atomic():
        notification.save(force_insert=True)
        show([notification])
    return notification


def build_notification(
    bank: str, body: bytes, result: NotificationResult, now: datetime, source: ReportSource, **reported: Any
) -> BankNotification:
    """A notification, byte for byte, that the caller stores. reported: its bank transaction or order."""
    notification_id = ids.new("ntf_", now)
    if result in NEEDS_STAFF:
        log.warning("notification %s of %s waits for staff: %s", notification_id, bank, result)
    notification = BankNotification(
        id=notification_id,
        bank=bank,
        source=source,
        result=result,
        received_at=now,
        request_id=request_context.current().request_id,
        **reported,
    )
    notification.seal(body.decode("latin-1"))  # latin-1 holds any bytes
    return notification


def show(notifications: Sequence[BankNotification]) -> None:
    """List those that wait for staff. The caller stores them, or holds their locks."""
    listing.show([each.listed() for each in notifications if each.result in NEEDS_STAFF])


def _find(new_bank_transaction: BankTransaction) -> tuple[BankTransaction, NotificationResult]:
    """Return the stored bank transaction, or else the new one, which the caller stores. Takes its locks."""
    stored = deduplication.find_reported(new_bank_transaction)
    if stored and new_bank_transaction.bank_reference in stored.bank_references:
        is_same = _is_same_report(stored, new_bank_transaction)
        return stored, NotificationResult.REPEAT if is_same else NotificationResult.CONFLICT
    if stored:
        deduplication.set_bank_reference(stored, new_bank_transaction.bank_reference)
        return stored, NotificationResult.REPEAT
    if new_bank_transaction.kind == BankTransactionKind.REVERSAL:
        deduplication.identify_credit_of(new_bank_transaction)
    return new_bank_transaction, NotificationResult.NEW


def build_bank_transaction(
    bank: str, notification: base.ReportedTransaction, source: ReportSource, now: datetime
) -> BankTransaction:
    """A bank transaction that the caller stores."""
    bank_transaction = BankTransaction(
        id=ids.new("btx_", now),
        bank=bank,
        source=source,
        payer_name=plain_text.name(notification.payer_name)[:MAX_NAME_LENGTH],
        received_at=now,
        **{name: getattr(notification, name) for name in _KEPT_AS_REPORTED},
    )
    if notification.payer_account:
        bank_transaction.seal(notification.payer_account)
    return bank_transaction


def _is_same_report(stored: BankTransaction, new_bank_transaction: BankTransaction) -> bool:
    """Compare two reports. Times can differ: some banks send milliseconds only in answers to inquiries."""
    if stored.source == ReportSource.STATEMENT:
        return deduplication.is_same_bank_transaction(stored, new_bank_transaction)
    is_same = all(getattr(stored, name) == getattr(new_bank_transaction, name) for name in _COMPARED_FIELDS)
    return is_same and deduplication.is_same_bank_day(stored.paid_at, new_bank_transaction.paid_at)
