"""The list of exceptions: what needs a decision of staff.

The service that opens or closes an exception writes it, in the same commit and under the same locks.
"""

from collections.abc import Collection, Iterable

from django.db import models
from django.db.models import Q

from core.database import rows
from core.database.columns import KeyedRow, PublicId, PublicIdKey
from merchants.models import Merchant
from merchants.services import SANDBOX
from payments.match_results import MatchResult
from payments.models import Payment
from refunds.models import Refund
from transfers import for_staff
from transfers.models import TransferContradiction
from webhooks import events
from webhooks.models import StaffEventType


class ExceptionReason(models.TextChoices):
    UNMATCHED = MatchResult.UNMATCHED.value, MatchResult.UNMATCHED.label
    DUPLICATE = MatchResult.DUPLICATE.value, MatchResult.DUPLICATE.label
    TIME_MISMATCH = MatchResult.TIME_MISMATCH.value, MatchResult.TIME_MISMATCH.label
    AMOUNT_MISMATCH = MatchResult.AMOUNT_MISMATCH.value, MatchResult.AMOUNT_MISMATCH.label
    LATE = MatchResult.LATE.value, MatchResult.LATE.label
    EXCESS = "excess", "Excess not sent back"
    REVERSAL = "reversal", "Reversed by the bank"
    CONFLICT = "conflict", "Contradicts an earlier message"
    UNREADABLE = "unreadable", "Unreadable message"
    FEE_DIFFERS = "fee_differs", "Another fee than the terms"
    MOVED = "moved", "Of a merchant that has moved"
    UNCONFIRMED = "unconfirmed", "Not confirmed by the bank"
    RETURNED = "returned", "Refund came back"
    CONTRADICTION = "contradiction", "Bank contradicts our record"


class ReconciliationException(KeyedRow):
    """A bank transaction, notification, refund or contradiction that needs a decision; the id says which."""

    id = PublicIdKey()
    reason = models.CharField("reason", max_length=16, choices=ExceptionReason.choices)
    bank = models.CharField(max_length=20)
    # Reported by the sandbox bank, whose money is not real.
    is_sandbox = models.GeneratedField(
        expression=Q(bank="sandbox"),  # type: ignore[arg-type]  # Q is an expression to Django
        output_field=models.BooleanField(),
        db_persist=True,
    )
    # Null: the merchant that has the biller id now, if any.
    merchant = models.ForeignKey(
        Merchant,
        on_delete=models.DO_NOTHING,
        null=True,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    biller_id = models.CharField(max_length=15, default="")
    payment_id = PublicId(null=True)
    amount = models.BigIntegerField(null=True)  # satang
    reference1 = models.CharField(max_length=35)
    bank_reference = models.CharField(max_length=64)
    opened_at = models.DateTimeField()
    search_text = models.TextField(db_collation="C")  # ids and references in capitals

    class Meta(KeyedRow.Meta):
        verbose_name, verbose_name_plural = "exception", "exceptions"
        indexes = [
            models.Index(fields=["is_sandbox", "opened_at", "id"], name="exception_live_first"),
            models.Index(fields=["reason", "is_sandbox", "opened_at", "id"], name="exception_live_by_reason"),
            models.Index(fields=["bank", "is_sandbox", "opened_at", "id"], name="exception_live_by_bank"),
            models.Index(
                fields=["merchant", "is_sandbox", "opened_at", "id"], name="exception_live_by_merchant"
            ),
            models.Index(fields=["opened_at", "id"], name="exception_oldest_first"),
            models.Index(fields=["reason", "opened_at", "id"], name="exception_by_reason"),
            models.Index(fields=["amount", "opened_at", "id"], name="exception_by_amount"),
            # Reading a payment looks here for money of its amount.
            models.Index(
                fields=["bank", "biller_id", "amount", "opened_at"],
                condition=Q(reason="unmatched"),
                name="exception_unmatched",
            ),
        ]


def show(found: Collection[ReconciliationException]) -> None:
    """List these exceptions, or list them anew. The caller holds the locks of what they are about."""
    named = Payment.objects.filter(pk__in={row.payment_id for row in found if row.payment_id})
    references = dict(named.values_list("pk", "reference"))
    for row in found:
        words = [row.id, row.payment_id, row.reference1, row.bank_reference]
        row.search_text = " ".join(filter(None, [*words, references.get(row.payment_id)])).upper()
    known = close(*(row.id for row in found))
    rows.insert_many(list(found))
    for row in found:
        if row.id not in known and row.bank != SANDBOX:
            events.tell_staff(
                StaffEventType.EXCEPTION_OPENED,
                row.id,
                row.opened_at,
                amount=row.amount,
                detail=f"{row.bank}: {row.get_reason_display()}",
            )


def close(*subject_ids: str) -> set[str]:
    """Take them off the list. Return those that were on it. The caller holds the locks."""
    if not subject_ids:
        return set()
    gone = rows.run(
        "DELETE FROM reconciliation_reconciliationexception WHERE id = ANY(%s) RETURNING id",
        [list(subject_ids)],
    )
    return {subject_id for (subject_id,) in gone.fetchall()}


def show_order(subject: Refund | TransferContradiction) -> None:
    """List a refund that came back, or a contradiction."""
    row = ReconciliationException(
        id=subject.id,
        bank=subject.route.partition(":")[2],
        merchant_id=subject.merchant_id or None,
        amount=subject.amount,
    )
    if isinstance(subject, Refund):
        assert subject.returned_at is not None
        row.reason, row.opened_at = ExceptionReason.RETURNED, subject.returned_at
        row.payment_id = subject.payment_id
    else:
        row.reason, row.opened_at = ExceptionReason.CONTRADICTION, subject.created_at
        row.reference1, row.bank_reference = subject.subject_id, subject.bank_reference
        refund = Refund.objects.filter(pk=subject.subject_id).first()
        is_payment = subject.subject_id.startswith("pay_")
        row.payment_id = subject.subject_id if is_payment else refund and refund.payment_id
    show([row])


def name_merchants(shown: Iterable[ReconciliationException]) -> None:
    """Fill in the merchants of money of no payment: those that have its biller ids now."""
    unnamed = [row for row in shown if row.merchant_id is None and row.biller_id]
    known = Merchant.objects.of_billers({row.biller_id for row in unnamed})
    owners = {(terms.bank, terms.biller_id): each for each in known for terms in each.all_terms}
    for row in unnamed:
        row.merchant = owners.get((row.bank, row.biller_id))


for_staff.LISTENERS.append(show_order)
