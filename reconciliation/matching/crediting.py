"""Credit the payments that bank transactions pay: at once, or after a decision of staff.

Money that only an uploaded statement reports cannot leave until a callback, an answer to an inquiry or a
second person (`exceptions.confirmations`) confirms it. The caller holds the locks of payments and money.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from ledger import accounts, services as ledger
from ledger.models import AccountType
from payments import fee_terms, services as payments
from payments.models import Payment
from payments.services import PaidPayment
from reconciliation.matching import statement_fees
from reconciliation.models import (
    BankNotification,
    BankTransaction,
    NotificationResult,
    ReportSource,
    Resolution,
    ResolutionState,
    ResolutionType,
)
from refunds import completion as refunds

log = logging.getLogger("reconciliation")
POLICY_ACTOR = "policy:late_money"


def credit(paid: Sequence[tuple[BankTransaction, Payment]], *, source: str, now: datetime) -> None:
    """Make the payments succeed by money from the account `source`, with a fixed number of statements."""
    received = [(*each, each[0].amount) for each in paid]
    payments.succeed(_paid_payments(received, now=now), source=source, now=now)


def credit_from_suspense(
    bank_transaction: BankTransaction, payment: Payment, resolution: Resolution, *, received: int = 0
) -> None:
    """Credit held money to this payment, by a decision of staff or by the merchant's policy.

    received: satang, if only a part of the money is credited. The rest stays in suspense.
    """
    source = accounts.suspense_for(accounts.bank(bank_transaction.bank))
    paid = _paid_payments(
        [(bank_transaction, payment, received or bank_transaction.amount)],
        now=resolution.created_at,
        is_held=True,
    )
    payments.succeed(paid, source=source, now=resolution.created_at)
    is_attached = resolution.type == ResolutionType.ATTACHED
    target = ResolutionState.ATTACHED if is_attached else ResolutionState.ACCEPTED
    bank_transaction.resolve(target, now=resolution.created_at, payment=payment, merchant=payment.merchant)
    resolution.save(force_insert=True)


def accept_by_policy(bank_transaction: BankTransaction, payment: Payment, *, now: datetime) -> None:
    """Credit late money by the merchant's policy, without a decision of staff."""
    resolution = Resolution(
        subject_id=bank_transaction.id,
        type=ResolutionType.ACCEPTED,
        actor=POLICY_ACTOR,
        note="The merchant accepts money that arrives after the code expired.",
        payment_id=payment.id,
        created_at=now,
    )
    credit_from_suspense(bank_transaction, payment, resolution)


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


def _paid_payments(
    paid: Sequence[tuple[BankTransaction, Payment, int]], *, now: datetime, is_held: bool = False
) -> list[PaidPayment]:
    """With the received satang of each. Unconfirmed money has no fee before it is confirmed.

    Nothing is read for money that a bank reports: if a statement has its line already, that line is due.
    """
    fees = fee_terms.fees_of(
        [
            (payment.merchant_id, reported.bank, received, reported.paid_at)
            for reported, payment, received in paid
        ]
    )
    found = []
    for (reported, payment, received), by_terms in zip(paid, fees, strict=True):
        into, fee = AccountType.UNCONFIRMED, None
        if reported.is_confirmed:
            may_have_line = is_held or reported.source == ReportSource.STATEMENT
            chosen = (reported, payment, received, by_terms, now)
            fee = statement_fees.choose(*chosen) if may_have_line else by_terms
            into, fee = AccountType.AVAILABLE, replace(fee, owner=reported.bank)
        found.append(PaidPayment(payment, reported.paid_at, reported.payer, received, into, fee))
    return found
