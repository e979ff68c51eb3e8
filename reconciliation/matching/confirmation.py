"""Money that only an uploaded statement reports is credited, and cannot leave until it is confirmed.

A bank confirms it by a callback or by its answer to an inquiry, a person by an act. The person is never the
one who uploaded the statement; the database refuses that too.
"""

import logging
from datetime import datetime

from django.db import transaction

from core import request_context
from ledger import services as ledger
from payments.models import Payment
from reconciliation.exceptions import resolution_records
from reconciliation.exceptions.resolution_records import ActionNotAllowed
from reconciliation.models import (
    BankNotification,
    BankTransaction,
    NotificationResult,
    ReportSource,
    Resolution,
    ResolutionType,
    StatementLine,
)
from refunds import completion as refunds

log = logging.getLogger("reconciliation")
BANK_SOURCES = [ReportSource.CALLBACK, ReportSource.INQUIRY]


def confirm_if_bank_reported(movement: BankTransaction, *, now: datetime) -> None:
    """Confirm it if the bank itself has reported it by now.

    The caller holds the locks: payment, bank transaction.
    """
    if movement.is_confirmed:
        return
    agree = BankNotification.objects.filter(
        movement=movement, result__in=[NotificationResult.NEW, NotificationResult.REPEAT]
    )
    if agree.filter(source__in=BANK_SOURCES).exists():
        _confirm(movement, now)


@transaction.atomic
def confirm_manually(movement_id: str, *, note: str, now: datetime) -> Resolution:
    """A second person has made sure that the bank has this money. Raises ActionNotAllowed,
    AlreadyResolved."""
    payment_id = BankTransaction.objects.values_list("payment_id", flat=True).get(pk=movement_id)
    if payment_id is not None:
        Payment.objects.locked(payment_id)
    movement: BankTransaction = BankTransaction.objects.locked(movement_id)
    if movement.is_confirmed:
        raise _already_confirmed(movement)
    if request_context.current().actor == uploader_of(movement):
        raise ActionNotAllowed("You uploaded this statement: another person must confirm what it reports.")
    resolution = resolution_records.draft(
        movement_id, ResolutionType.CONFIRMED, note, now, movement.payment_id
    )
    resolution_records.save(resolution)
    _confirm(movement, now)
    return resolution


def uploader_of(movement: BankTransaction) -> str:
    """Who imported the statement whose line made it."""
    line = StatementLine.objects.filter(movement=movement).select_related("statement").first()
    return line.statement.actor if line else ""


def _confirm(movement: BankTransaction, now: datetime) -> None:
    """What is credited moves to the balance, less what the bank took back meanwhile."""
    movement.is_confirmed = True
    movement.save(update_fields=["is_confirmed"])
    log.info("bank transaction %s of %s is confirmed", movement.id, movement.bank)
    payment = movement.payment
    if not movement.is_credited or payment is None:
        return
    left = movement.amount - refunds.reversed_amount(payment)
    if left:
        ledger.confirm(merchant_id=payment.merchant_id, subject_id=movement.id, amount=left, now=now)


def _already_confirmed(movement: BankTransaction) -> ActionNotAllowed:
    if Resolution.objects.filter(subject_id=movement.id, type=ResolutionType.CONFIRMED).exists():
        return resolution_records.already_resolved(movement.id)
    return ActionNotAllowed("This money is confirmed: the bank itself reported it.")
