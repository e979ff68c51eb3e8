"""The fee that the statement of a bank names for a payment by QR code. It wins over the merchant's terms.

Money that is credited after its line was stored takes the fee of the line at once. A line of money that was
credited before is due: the import corrects its payment in the next commit, and the sweep after a crash.
"""

import logging
from collections.abc import Collection
from datetime import datetime

from django.db import transaction

from core.database import rows
from ledger import accounts
from ledger.services import Fee
from payments import fee_terms, services as payments
from payments.models import Payment
from reconciliation.matching import intake, probable_duplicates
from reconciliation.models import (
    BankNotification,
    BankTransaction,
    MatchResult,
    NotificationResult,
    ReportSource,
    ResolutionState,
    StatementLine,
)

log = logging.getLogger("reconciliation")
# Most payments have this fee already. It cannot change any more, so no lock is needed.
CLOSE_EQUAL = """
UPDATE reconciliation_statementline AS line SET is_fee_due = false
FROM reconciliation_banktransaction AS paid JOIN payments_payment AS payment ON payment.id = paid.payment_id
WHERE line.id = ANY(ARRAY(
        SELECT id FROM reconciliation_statementline WHERE id = ANY(%s) AND is_fee_due
        FOR NO KEY UPDATE SKIP LOCKED
    )) AND paid.id = line.bank_transaction_id
    AND (paid.match_result = 'applied' OR paid.resolution_state IN ('accepted', 'attached'))
    AND (payment.fee, payment.fee_vat) = (line.fee, line.fee_vat)
"""


def choose(
    bank_transaction: BankTransaction, payment: Payment, received: int, by_terms: Fee, now: datetime
) -> Fee:
    """The fee of a payment: that of its statement line if there is one, or else `by_terms`.

    Staff get a question if the two differ, unless the merchant has no terms. received: satang of the payment.
    A fee beyond them, of money with an excess, is asked about and not taken.
    """
    line = StatementLine.objects.filter(bank_transaction=bank_transaction, fee__isnull=False).first()
    if line is None or line.named_fee == by_terms:
        return by_terms
    is_too_much = line.named_fee.total > received
    if is_too_much or fee_terms.terms_of(
        payment.merchant_id, bank_transaction.bank, bank_transaction.paid_at
    ):
        result = NotificationResult.FEE_DIFFERS
        if not BankNotification.objects.filter(bank_transaction=bank_transaction, result=result).exists():
            _store(bank_transaction, line.line, result, now)
    return by_terms if is_too_much else line.named_fee


def contradict(bank_transaction: BankTransaction, raw: bytes, now: datetime) -> None:
    """Keep a line that names another fee than an earlier file, and ask staff, once for each content."""
    asked = BankNotification.objects.filter(
        bank_transaction=bank_transaction, result=NotificationResult.CONFLICT, source=ReportSource.STATEMENT
    )
    if not any(each.body == raw for each in asked):
        _store(bank_transaction, raw, NotificationResult.CONFLICT, now)


def ask_about_merged(bank_transaction: BankTransaction, counted: BankTransaction, now: datetime) -> None:
    """Ask about the fee that the line of a merged report names, unless the payment of `counted` has it."""
    line = StatementLine.objects.filter(bank_transaction=bank_transaction, fee__isnull=False).first()
    payment = counted.payment if counted.is_credited else None
    if line and (payment is None or (payment.fee, payment.fee_vat) != (line.fee, line.fee_vat)):
        contradict(counted, line.line, now)


def apply_due(*, now: datetime, batch: int = 500, bank_transactions: Collection[str] | None = None) -> None:
    """Compare due lines, of these bank transactions or all. After an error the sweep tries again."""
    due = StatementLine.objects.filter(is_fee_due=True)
    due = due.exclude(bank_transaction__match_result=MatchResult.PENDING)
    if bank_transactions is not None:
        due = due.filter(bank_transaction__in=bank_transactions)
    found = list(due.order_by("id").values_list("id", flat=True)[:batch])
    if found:
        rows.run(CLOSE_EQUAL, [found])
    for line_id in StatementLine.objects.filter(pk__in=found, is_fee_due=True).values_list("pk", flat=True):
        try:
            _apply(line_id, now)
        except Exception:
            log.exception("the fee of statement line %s could not be taken", line_id)


@transaction.atomic
def _apply(line_id: int, now: datetime) -> None:
    """Lock the payment and the bank transaction, in this order, and correct the fee of the payment.

    Money that is held or unconfirmed gets the fee of its line when it is credited or confirmed.
    """
    unlocked = StatementLine.objects.select_related("bank_transaction").defer("line_sealed").get(pk=line_id)
    assert unlocked.bank_transaction is not None
    seen = unlocked.bank_transaction.payment_id
    payment = Payment.objects.locked(seen) if seen else None
    bank_transaction = BankTransaction.objects.locked(unlocked.bank_transaction.pk)
    if bank_transaction.payment_id != seen:
        return  # it was attached to another payment meanwhile: the sweep comes again
    is_due = StatementLine.objects.filter(pk=line_id, is_fee_due=True).update(is_fee_due=False)
    if is_due and bank_transaction.resolution_state == ResolutionState.MERGED:
        ask_about_merged(bank_transaction, probable_duplicates.merged_into(bank_transaction), now)
    if is_due and payment and bank_transaction.is_credited and payment.fee is not None:
        taken = Fee(payment.fee, payment.fee_vat or 0)
        fee = choose(bank_transaction, payment, payment.received, taken, now)
        if fee != taken:
            payments.correct_fee(payment, fee, source=accounts.bank(bank_transaction.bank), now=now)


def _store(bank_transaction: BankTransaction, raw: bytes, result: NotificationResult, now: datetime) -> None:
    bank, source = bank_transaction.bank, ReportSource.STATEMENT
    asked = intake.build_notification(bank, raw, result, now, source, bank_transaction=bank_transaction)
    asked.save(force_insert=True)
    intake.show([asked])
