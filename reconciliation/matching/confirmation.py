"""Confirm money that only an uploaded statement reports. Until then it is credited but cannot leave.

A callback, an answer to an inquiry or a second person confirms it. The database also refuses confirmation by
the person who uploaded the statement.
"""

import logging
from datetime import datetime

from django.utils.translation import gettext as _

from audit_trail.acts import ActRefused
from core import request_context
from ledger import services as ledger
from payments.models import Payment
from reconciliation.exceptions import resolution_records
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


def confirm_if_bank_reported(bank_transaction: BankTransaction, *, now: datetime) -> None:
    """Confirm money that the bank itself has reported. The caller has locked payment and bank transaction."""
    if bank_transaction.is_confirmed:
        return
    agree = BankNotification.objects.filter(
        bank_transaction=bank_transaction, result__in=[NotificationResult.NEW, NotificationResult.REPEAT]
    )
    if agree.filter(source__in=[ReportSource.CALLBACK, ReportSource.INQUIRY]).exists():
        _confirm(bank_transaction, now)


@resolution_records.decision(ResolutionType.CONFIRMED)
def confirm_manually(bank_transaction_id: str, *, note: str, now: datetime) -> Resolution:
    """Confirm that the bank has this money, as a second person. Raises ActRefused, AlreadyResolved."""
    payment_id = BankTransaction.objects.values_list("payment_id", flat=True).get(pk=bank_transaction_id)
    if payment_id is not None:
        Payment.objects.locked(payment_id)
    bank_transaction: BankTransaction = BankTransaction.objects.locked(bank_transaction_id)
    if bank_transaction.is_confirmed:
        if Resolution.objects.filter(subject_id=bank_transaction.id, type=ResolutionType.CONFIRMED).exists():
            raise resolution_records.already_resolved(bank_transaction.id)
        raise ActRefused(_("This money is confirmed: the bank itself reported it."))
    if request_context.current().actor == uploader_of(bank_transaction):
        raise ActRefused(_("You uploaded this statement: another person must confirm what it reports."))
    resolution = resolution_records.draft(
        bank_transaction_id, ResolutionType.CONFIRMED, note, now, bank_transaction.payment_id
    )
    resolution_records.save(resolution)
    _confirm(bank_transaction, now)
    return resolution


def uploader_of(bank_transaction: BankTransaction) -> str:
    """Return the actor who imported the statement, or an empty text."""
    line = StatementLine.objects.filter(bank_transaction=bank_transaction).select_related("statement").first()
    return line.statement.actor if line else ""


def _confirm(bank_transaction: BankTransaction, now: datetime) -> None:
    """Make credited money available, less what the bank has reversed."""
    bank_transaction.set_fields(is_confirmed=True)
    log.info("bank transaction %s of %s is confirmed", bank_transaction.id, bank_transaction.bank)
    payment = bank_transaction.payment
    if not bank_transaction.is_credited or payment is None:
        return
    left = bank_transaction.amount - refunds.reversed_amount(payment)
    if left:
        ledger.confirm(
            merchant_id=payment.merchant_id,
            subject_id=bank_transaction.id,
            source_id=payment.id,
            amount=left,
            now=now,
        )
