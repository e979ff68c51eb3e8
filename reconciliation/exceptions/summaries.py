"""Summaries of exceptions: why each is open, and which payments it may be meant for.

Loads any number of them with a fixed number of statements.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from django.utils.translation import gettext as _

from approvals.models import Approval
from core import money
from reconciliation.exceptions import (
    candidates,
    contradictions,
    explanations,
    probable_duplicates,
    resolution_records,
    resolutions,
)
from reconciliation.exceptions.candidates import Candidate
from reconciliation.models import (
    HELD_RESULTS,
    BankNotification,
    BankTransaction,
    BankTransactionKind,
    MatchResult,
    ResolutionState,
    ResolutionType,
    Return,
)
from refunds.explanations import RETURNED
from refunds.models import Refund
from transfers.models import TransferContradiction

Subject = BankTransaction | BankNotification | Refund | TransferContradiction


@dataclass(frozen=True)
class ExceptionSummary:
    """candidates and probable_duplicate: only of an open bank transaction; the best candidate first."""

    subject: Subject
    title: str
    explanation: str
    candidates: list[Candidate] = field(default_factory=list)
    probable_duplicate: BankTransaction | None = None

    def __str__(self) -> str:
        return self.title

    @property
    def pk(self) -> str:
        return str(self.subject.pk)

    @cached_property
    def allowed_types(self) -> frozenset[ResolutionType]:
        """What staff may decide now. `returns.check_bank_can_send` checks whether the bank can send."""
        subject = self.subject
        if isinstance(subject, BankTransaction):
            return resolutions.allowed_types(subject)
        latest = resolution_records.latest(subject.pk)
        is_dismissed = latest is not None and latest.type == ResolutionType.DISMISSED
        if isinstance(subject, TransferContradiction):
            if latest is None or latest.type == ResolutionType.REOPENED:
                return contradictions.allowed_types(subject)
            return frozenset([ResolutionType.REOPENED] if is_dismissed else [])
        if isinstance(subject, BankNotification):
            if subject.result not in resolution_records.DISMISSIBLE_RESULTS:
                return frozenset()
            return frozenset([ResolutionType.REOPENED if is_dismissed else ResolutionType.DISMISSED])
        return frozenset([ResolutionType.KEPT]) if subject.returned_at and latest is None else frozenset()


def by_id(ids: Sequence[str]) -> dict[str, ExceptionSummary]:
    """Summaries by id; unknown ids are left out."""
    summaries: dict[str, ExceptionSummary] = {}
    for load in (_of_transactions, _of_notifications, _of_refunds, _of_contradictions):
        summaries |= load(ids)
    return summaries


def is_open(movement: BankTransaction) -> bool:
    return movement.match_result in HELD_RESULTS and movement.resolution_state == ResolutionState.OPEN


def _of_transactions(ids: Sequence[str]) -> dict[str, ExceptionSummary]:
    found = list(BankTransaction.objects.filter(pk__in=ids).select_related("payment", "merchant", "excess"))
    credited = _credited_transactions(movement.payment_id for movement in found)
    returns = _latest_returns(ids) | _manual_returns(found)
    subject_ids = [*(movement.id for movement in found), *(each.id for each in returns.values())]
    waiting = Approval.objects.waiting().filter(subject_id__in=subject_ids)
    waiting_ids = set(waiting.values_list("subject_id", flat=True))
    payment_candidates = candidates.find([movement for movement in found if is_open(movement)])
    duplicates = probable_duplicates.find(found)
    return {
        movement.id: ExceptionSummary(
            movement,
            _("%(amount)s at %(bank)s") % {"amount": money.display(movement.amount), "bank": movement.bank},
            explanations.of_transaction(
                movement,
                credited.get(movement.payment_id),
                payer_return := returns.get(movement.id),
                excess=getattr(movement, "excess", None),
                is_waiting_for_approval=movement.id in waiting_ids
                or (payer_return is not None and payer_return.id in waiting_ids),
                probable_duplicate=duplicates.get(movement.id),
            ),
            payment_candidates.get(movement.id, []),
            duplicates.get(movement.id),
        )
        for movement in found
    }


def _credited_transactions(payment_ids: Iterable[str | None]) -> dict[str, BankTransaction]:
    """The credited bank transaction of each payment, by the id of the payment."""
    credited = BankTransaction.objects.credited().filter(payment__in={each for each in payment_ids if each})
    return {movement.payment_id: movement for movement in credited}


def _latest_returns(movement_ids: Sequence[str]) -> dict[str, Return]:
    """The latest return of each bank transaction."""
    made = Return.objects.filter(movement__in=movement_ids).order_by("created_at", "id")
    return {each.movement_id: each for each in made}


def _manual_returns(movements: Iterable[BankTransaction]) -> dict[str, Return]:
    """Manual returns of the credits of unmatched reversals, by the id of the reversal."""
    wanted = {
        (movement.bank, name): movement.id
        for movement in movements
        if movement.kind == BankTransactionKind.REVERSAL and movement.match_result == MatchResult.UNMATCHED
        for name in movement.bank_transaction_ids
    }
    names = [name for _, name in wanted]
    made = Return.objects.filter(is_manual=True, movement__bank_transaction_id__in=names).select_related(
        "movement"
    )
    credits = (
        (each, (each.movement.bank, name)) for each in made for name in each.movement.bank_transaction_ids
    )
    return {wanted[credit]: each for each, credit in credits if credit in wanted}


def _of_notifications(ids: Sequence[str]) -> dict[str, ExceptionSummary]:
    found = BankNotification.objects.filter(pk__in=ids).select_related("movement")
    return {
        notification.id: ExceptionSummary(
            notification,
            _("A message from %(bank)s") % {"bank": notification.bank},
            explanations.of_notification(notification),
        )
        for notification in found
    }


def _of_refunds(ids: Sequence[str]) -> dict[str, ExceptionSummary]:
    found = Refund.objects.filter(pk__in=ids).select_related("merchant", "payment")
    return {
        refund.id: ExceptionSummary(
            refund,
            _("A refund of %(merchant)s") % {"merchant": refund.merchant.name},
            RETURNED.format(amount=money.display(refund.amount)),
        )
        for refund in found
    }


def _of_contradictions(ids: Sequence[str]) -> dict[str, ExceptionSummary]:
    return {
        found.id: ExceptionSummary(
            found,
            _("%(amount)s of %(subject_id)s")
            % {"amount": money.display(found.amount), "subject_id": found.subject_id},
            explanations.of_contradiction(found),
        )
        for found in TransferContradiction.objects.filter(pk__in=ids)
    }
