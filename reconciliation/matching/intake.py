"""Store bank notifications as they came, each with its bank transaction in one commit, before matching."""

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from banks import base
from banks.parsing import MAX_NAME_LENGTH
from core import ids, plain_text, request_context
from core.database import rows
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
NEEDS_STAFF = {NotificationResult.CONFLICT, NotificationResult.UNREADABLE}
# Reports with one transaction id must agree on these fields and on the bank day. Not on the payer: banks mask
# names differently.
_COMPARED_FIELDS = ("biller_id", "reference1", "reference2", "reference3", "amount")
_KEPT_AS_REPORTED = (
    "bank_transaction_id", "kind", *_COMPARED_FIELDS, "paid_at", "payer_bank_code", "slip_reference",
)  # fmt: skip


def receive(
    *,
    bank: str,
    body: bytes,
    notification: base.ReportedTransaction,
    now: datetime,
    source: ReportSource = ReportSource.CALLBACK,
) -> BankTransaction:
    """Store a notification and return its bank transaction, which is new or known.

    New details of the payer are stored in a second commit. If that fails, the notification is stored, and the
    bank gets an error and sends it again.
    """
    new_movement = build_movement(bank, notification, source, now)
    with transaction.atomic():
        movement, result = _find(new_movement)
        notification_row = build_notification(bank, body, result, now, source, movement=movement)
        new_rows = [movement] if result == NotificationResult.NEW else []
        rows.insert_together([*new_rows, notification_row])
        show([notification_row])
    if result == NotificationResult.REPEAT:
        deduplication.add_payer_details(movement, new_movement)
    return movement


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
    bank: str,
    body: bytes,
    result: NotificationResult,
    now: datetime,
    source: ReportSource,
    **reported: Any,
) -> BankNotification:
    """Return a notification, byte for byte, that the caller stores. reported: its movement, or its order."""
    notification_id = ids.new("ntc_", now)
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


def _find(new_movement: BankTransaction) -> tuple[BankTransaction, NotificationResult]:
    """Return the stored bank transaction, or else the new one, which the caller stores. Takes its locks."""
    # Also lock the bank's id: no id may be the first id of one bank transaction and the later id of another.
    deduplication.lock_names(
        [
            f"name {new_movement.bank} {new_movement.bank_transaction_id}",
            deduplication.lock_name(new_movement.bank, new_movement),
        ]
    )
    bank_id = new_movement.bank_transaction_id
    if stored := deduplication.find_by_bank_id(new_movement.bank, bank_id, new_movement.kind):
        is_same = _is_same_report(stored, new_movement)
        return stored, NotificationResult.REPEAT if is_same else NotificationResult.CONFLICT
    if of_line := deduplication.find_statement_movement(new_movement):
        deduplication.set_bank_id(of_line, bank_id)
        return of_line, NotificationResult.REPEAT
    if new_movement.kind == BankTransactionKind.REVERSAL:
        deduplication.identify_credit_of(new_movement)
    return new_movement, NotificationResult.NEW


def build_movement(
    bank: str, notification: base.ReportedTransaction, source: ReportSource, now: datetime
) -> BankTransaction:
    """A bank transaction that the caller stores."""
    movement = BankTransaction(
        id=ids.new("rcp_", now),
        bank=bank,
        source=source,
        payer_name=plain_text.name(notification.payer_name)[:MAX_NAME_LENGTH],
        received_at=now,
        **{name: getattr(notification, name) for name in _KEPT_AS_REPORTED},
    )
    if notification.payer_account:
        movement.seal(notification.payer_account)
    return movement


def _is_same_report(stored: BankTransaction, new_movement: BankTransaction) -> bool:
    """Compare two reports. Times can differ: some banks send milliseconds only in answers to inquiries."""
    if stored.source == ReportSource.STATEMENT:
        return deduplication.is_same_movement(stored, new_movement)
    is_same = all(getattr(stored, name) == getattr(new_movement, name) for name in _COMPARED_FIELDS)
    return is_same and deduplication.is_same_bank_day(stored.paid_at, new_movement.paid_at)
