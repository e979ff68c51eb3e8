"""Confirm money that only an uploaded statement reports. Until then it is credited but cannot leave.

A callback, an answer to an inquiry or a second person (`exceptions.confirmations`) confirms it.
"""

import logging
from datetime import datetime

from ledger import accounts
from ledger import services as ledger
from payments import fee_terms
from payments import services as payments
from reconciliation.matching import statement_fees
from reconciliation.models import BankNotification, BankTransaction, NotificationResult, ReportSource
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
        confirm(bank_transaction, now)


def confirm(bank_transaction: BankTransaction, now: datetime) -> None:
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
    bank, paid_at = bank_transaction.bank, bank_transaction.paid_at
    (by_terms,) = fee_terms.fees_of([(payment.merchant_id, bank, payment.received, paid_at)])
    fee = statement_fees.choose(bank_transaction, payment, payment.received, by_terms, now)
    payments.charge_fee(payment, fee, source=accounts.bank(bank_transaction.bank), now=now)
