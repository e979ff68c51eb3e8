"""Money that only an uploaded statement reports is credited, and cannot leave until it is confirmed.

A bank confirms it by a callback or by its answer to an inquiry, a person by an act. The person is never the
one who uploaded the statement; the database refuses that too.
"""

import logging
from datetime import datetime

from django.db import transaction

from payments.models import Payment
from receipts import acting
from receipts.acting import NotPossible
from receipts.models import Act, Deed, Notice, Receipt, Source, StatementLine, Verdict
from refunds import reversals as refunds
from transactions import ledger

log = logging.getLogger("receipts")
BY_BANK = [Source.CALLBACK, Source.INQUIRY]


def by_bank(receipt: Receipt, *, now: datetime) -> None:
    """Confirm it if the bank itself has reported it by now. The caller holds the locks: payment, receipt."""
    if receipt.is_confirmed:
        return
    agree = Notice.objects.filter(receipt=receipt, verdict__in=[Verdict.NEW, Verdict.REPEAT])
    if agree.filter(source__in=BY_BANK).exists():
        _confirm(receipt, now)


@transaction.atomic
def by_person(receipt_id: str, *, by: str, why: str, now: datetime) -> Act:
    """A second person has made sure that the bank has this money. Raises NotPossible, AlreadyDone."""
    payment_id = Receipt.objects.values_list("payment_id", flat=True).get(pk=receipt_id)
    if payment_id is not None:
        Payment.objects.locked(payment_id)
    receipt: Receipt = Receipt.objects.locked(receipt_id)
    if receipt.is_confirmed:
        raise _refusal(receipt)
    if by == uploader_of(receipt):
        raise NotPossible("You uploaded this statement: somebody else has to confirm what it reports.")
    act = acting.draft(receipt_id, Deed.CONFIRMED, by, why, now, receipt.payment_id)
    acting.write_down(act)
    _confirm(receipt, now)
    return act


def uploader_of(receipt: Receipt) -> str:
    """Who imported the statement whose line made it."""
    line = StatementLine.objects.filter(receipt=receipt).select_related("statement").first()
    return line.statement.imported_by if line else ""


def _confirm(receipt: Receipt, now: datetime) -> None:
    """What is credited moves to the balance, less what the bank took back meanwhile."""
    receipt.is_confirmed = True
    receipt.save(update_fields=["is_confirmed"])
    log.info("receipt %s of %s is confirmed", receipt.id, receipt.bank)
    payment = receipt.payment
    if not receipt.is_credited or payment is None:
        return
    left = receipt.amount - refunds.taken_back(payment)
    if left:
        ledger.confirm(merchant_id=payment.merchant_id, subject_id=receipt.id, amount=left, at=now)


def _refusal(receipt: Receipt) -> NotPossible:
    if Act.objects.filter(subject_id=receipt.id, deed=Deed.CONFIRMED).exists():
        return acting.already(receipt.id)
    return NotPossible("This money is confirmed: the bank itself reported it.")
