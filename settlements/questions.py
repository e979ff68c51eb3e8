"""Questions about settlements: asked once, closed by a person, and perhaps booked."""

import logging
from collections.abc import Collection
from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from audit_trail.acts import Act
from audit_trail.recording import recorded
from core import ids
from ledger import accounts, services as ledger
from payments import cards
from payments.models import CardCharge, Payment
from settlements.models import AcquirerTransfer, AcquirerTransferState, OpenQuestion, QuestionKind

log = logging.getLogger("settlements")


def ask(
    kind: QuestionKind,
    transfer: AcquirerTransfer | None,
    subject: str,
    *,
    difference: int,
    now: datetime,
    acquirer: str = "",
    payment: Payment | None = None,
) -> None:
    """Ask a question, unless it was asked before."""
    found, is_new = OpenQuestion.objects.get_or_create(
        kind=kind,
        acquirer=transfer.acquirer if transfer else acquirer,
        subject=subject[:64],
        transfer=transfer,
        defaults={"id": ids.new("oq_", now), "payment": payment, "difference": difference, "opened_at": now},
    )
    if is_new:
        log.warning("question %s about %s of %s: %s", found.pk, subject, found.acquirer, kind.value)


def ask_what_is_late(acquirer: str, *, now: datetime) -> None:
    """Ask about transfers that should have arrived."""
    for transfer in AcquirerTransfer.objects.filter(acquirer=acquirer).late(now):
        ask(QuestionKind.LATE, transfer, transfer.transfer_id, difference=-transfer.net_amount, now=now)


def ask_about_fees(acquirer: str, *, now: datetime) -> None:
    """Ask about fees that nobody named in time. A fee that is named closes its question."""
    asked = OpenQuestion.objects.filter(kind=QuestionKind.FEE_UNKNOWN, acquirer=acquirer, closed_at=None)
    asked.filter(payment__charge__awaits_fee=False).update(closed_at=now, note="The acquirer has named it.")
    since = now - cards.FEE_WITHIN
    unknown = CardCharge.objects.filter(acquirer=acquirer, awaits_fee=True, completed_at__lt=since)
    for charge in unknown.select_related("payment"):
        kind, payment = QuestionKind.FEE_UNKNOWN, charge.payment
        ask(kind, None, charge.charge_id, acquirer=acquirer, payment=payment, difference=0, now=now)


def close_missing(payment_ids: Collection[str], *, note: str, now: datetime) -> None:
    """Close the questions about charges that were missing: a transfer has paid them after all."""
    missing = OpenQuestion.objects.filter(kind=QuestionKind.MISSING, payment__in=payment_ids, closed_at=None)
    missing.update(closed_at=now, note=note)


def lock_open(question_id: str) -> OpenQuestion:
    """Raises ValidationError if somebody has closed the question before."""
    question: OpenQuestion = OpenQuestion.objects.select_for_update().get(pk=question_id)
    if question.closed_at is not None:
        raise ValidationError(_("Somebody has closed it before: nothing changed."))
    return question


@transaction.atomic
def close(question_id: str, *, note: str, is_booked: bool, now: datetime) -> OpenQuestion:
    """Close a question. is_booked: book its difference as a loss of the operator, or take a loss back."""
    question = lock_open(question_id)
    transfer = question.transfer
    has_arrived = transfer is not None and transfer.state == AcquirerTransferState.PAID
    if is_booked and not (has_arrived and question.difference and question.kind != QuestionKind.LATE):
        raise ValidationError({"is_booked": _("There is nothing to book: the money is still expected.")})
    # What changed after the books had it is missing at our bank. Anything else is on the acquirer's account.
    at_bank, at_acquirer = accounts.bank(question.acquirer), accounts.acquirer(question.acquirer)
    account = at_bank if question.kind == QuestionKind.CHANGED else at_acquirer
    with recorded(Act.QUESTION_CLOSED, question):
        question.closed_at, question.note, question.is_booked = now, note, is_booked
        question.save(update_fields=["closed_at", "note", "is_booked"])
        if question.kind == QuestionKind.FEE_UNKNOWN:  # ask the acquirer once more
            CardCharge.objects.filter(pk=question.payment_id, awaits_fee=True).update(due_at=now)
        if is_booked:
            ledger.book_difference(
                subject_id=question.pk, account=account, difference=question.difference, now=now
            )
    return question
