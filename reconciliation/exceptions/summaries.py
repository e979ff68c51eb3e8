"""Summaries of exceptions: why each is open, and which payments it may be meant for.

Loads any number of them with a fixed number of statements.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from approvals.models import Approval
from reconciliation.exceptions import (
    candidates,
    contradictions,
    explanations,
    resolution_records,
    resolutions,
)
from reconciliation.exceptions.candidates import Candidate
from reconciliation.exceptions.explanations import Subject
from reconciliation.matching import probable_duplicates
from reconciliation.models import (
    HELD_RESULTS,
    BankNotification,
    BankTransaction,
    BankTransactionKind,
    MatchResult,
    Resolution,
    ResolutionState,
    ResolutionType,
    Return,
)
from refunds.models import Refund
from transfers.models import TransferContradiction


@dataclass(frozen=True)
class ExceptionSummary:
    """candidates and probable_duplicate: only of an open bank transaction; the best candidate first."""

    subject: Subject
    explanation: str
    candidates: list[Candidate] = field(default_factory=list)
    probable_duplicate: BankTransaction | None = None

    def __str__(self) -> str:
        return self.title

    @property
    def title(self) -> str:
        return explanations.title(self.subject)

    @property
    def pk(self) -> str:
        return str(self.subject.pk)

    @cached_property
    def allowed_types(self) -> frozenset[ResolutionType]:
        """What staff may decide now. `returns.check_bank_can_send` checks whether the bank can send."""
        subject = self.subject
        if isinstance(subject, BankTransaction):
            return resolutions.allowed_types(subject)
        latest, types = Resolution.latest(subject.pk), list[ResolutionType]()
        if latest is not None and latest.type != ResolutionType.REOPENED:
            types = [ResolutionType.REOPENED] if latest.type == ResolutionType.DISMISSED else []
        elif isinstance(subject, BankNotification):
            is_dismissible = subject.result in resolution_records.DISMISSIBLE_RESULTS
            types = [ResolutionType.DISMISSED] if is_dismissible else []
        elif isinstance(subject, Refund):
            types = [ResolutionType.KEPT] if subject.returned_at else []
        elif contradictions.is_card_payment_pending(subject):
            types = [ResolutionType.BOOKED_FAILED]
        else:
            returned = [ResolutionType.BOOKED_RETURNED] if contradictions.is_never_sent(subject) else []
            types = [ResolutionType.DISMISSED, *returned]
        return frozenset(types)


def by_id(ids: Sequence[str]) -> dict[str, ExceptionSummary]:
    """Summaries by id; unknown ids are left out."""
    others = [
        *BankNotification.objects.filter(pk__in=ids).select_related("bank_transaction"),
        *Refund.objects.filter(pk__in=ids).select_related("merchant", "payment"),
        *TransferContradiction.objects.filter(pk__in=ids),
    ]
    found = {each.pk: ExceptionSummary(each, explanations.of_other(each)) for each in others}
    return found | _of_transactions(ids)


def _of_transactions(ids: Sequence[str]) -> dict[str, ExceptionSummary]:
    found = list(BankTransaction.objects.filter(pk__in=ids).select_related("payment", "merchant", "excess"))
    paid_ids = {each.payment_id for each in found if each.payment_id}
    paid = BankTransaction.objects.credited().filter(payment__in=paid_ids)
    credited = {each.payment_id: each for each in paid}
    made = Return.objects.filter(bank_transaction__in=ids).order_by("created_at", "id")
    returns = {each.bank_transaction_id: each for each in made} | _manual_returns(found)
    subject_ids = [*(each.id for each in found), *(each.id for each in returns.values())]
    waiting = Approval.objects.waiting().filter(subject_id__in=subject_ids)
    waiting_ids = set(waiting.values_list("subject_id", flat=True))
    payment_candidates = candidates.find(
        [
            each
            for each in found
            if each.match_result in HELD_RESULTS and each.resolution_state == ResolutionState.OPEN
        ]
    )
    duplicates = probable_duplicates.find(found)
    return {
        each.id: ExceptionSummary(
            each,
            explanations.of_transaction(
                each,
                credited.get(each.payment_id),
                payer_return := returns.get(each.id),
                excess=getattr(each, "excess", None),
                is_waiting_for_approval=each.id in waiting_ids
                or (payer_return is not None and payer_return.id in waiting_ids),
                probable_duplicate=duplicates.get(each.id),
            ),
            payment_candidates.get(each.id, []),
            duplicates.get(each.id),
        )
        for each in found
    }


def _manual_returns(bank_transactions: Iterable[BankTransaction]) -> dict[str, Return]:
    """Manual returns of the credits of unmatched reversals, by the id of the reversal."""
    wanted = {
        (each.bank, name): each.id
        for each in bank_transactions
        if each.kind == BankTransactionKind.REVERSAL and each.match_result == MatchResult.UNMATCHED
        for name in each.bank_references
    }
    names = [name for _, name in wanted]
    made = Return.objects.filter(is_manual=True, bank_transaction__bank_reference__in=names).select_related(
        "bank_transaction"
    )
    credits = (
        (each, (each.bank_transaction.bank, name))
        for each in made
        for name in each.bank_transaction.bank_references
    )
    return {wanted[credit]: each for each, credit in credits if credit in wanted}
