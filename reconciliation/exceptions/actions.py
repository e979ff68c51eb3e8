"""What staff can do about an exception: what they are told will happen, and the service that does it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Model

from reconciliation.exceptions import (
    action_descriptions,
    card_contradictions,
    order_completion,
    resolution_records,
    resolutions,
    returns,
)
from reconciliation.exceptions.action_descriptions import FormValues
from reconciliation.exceptions.forms import AccountForm, AttachForm, ManualReturnForm, NoteForm
from reconciliation.exceptions.summaries import ExceptionSummary, Subject
from reconciliation.models import (
    BankNotification,
    BankTransaction,
    NotificationResult,
    Resolution,
    ResolutionType,
)
from refunds.models import Refund
from transfers.models import TransferContradiction

RESOLVE, CONFIRM = "reconciliation.resolve_exception", "reconciliation.confirm_banktransaction"


@dataclass(frozen=True, slots=True)
class Action:
    """One button. done: said afterwards. says: what will happen, by what is filled in. do: the service.

    permission: of staff who may use it.
    """

    slug: str
    label: str
    success_message: str
    resolution_type: ResolutionType
    form: type[NoteForm]
    describe: Callable[[ExceptionSummary, FormValues], str]
    execute: Callable[..., object]
    needs_second_step: bool = False
    permission: str = RESOLVE


def _attach(subject_id: str, values: FormValues, actor: str, now: datetime) -> object:
    return resolutions.attach(
        subject_id, payment_id=values["payment"], actor=actor, note=values["note"], now=now
    )


def _send_back(subject_id: str, values: FormValues, actor: str, now: datetime) -> object:
    return resolutions.send_back(subject_id, actor=actor, note=values["note"], now=now)


def _send_to(subject_id: str, values: FormValues, actor: str, now: datetime) -> object:
    destination = resolutions.ReturnDestination(
        values["bank_code"], values["bank_account"], values["account_name"]
    )
    return resolutions.send_back(
        subject_id, destination=destination, actor=actor, note=values["note"], now=now
    )


def _record_manual_return(subject_id: str, values: FormValues, actor: str, now: datetime) -> object:
    reference = values["bank_reference"]
    return resolutions.record_manual_return(
        subject_id, bank_reference=reference, actor=actor, note=values["note"], now=now
    )


def _with_note(function: Callable[..., object]) -> Callable[..., object]:
    """An act that needs nothing but a reason."""

    def execute(subject_id: str, values: FormValues, actor: str, now: datetime) -> object:
        return function(subject_id, actor=actor, note=values["note"], now=now)

    return execute


ACTIONS = [
    Action(
        "accept",
        "Accept",
        "Accepted",
        ResolutionType.ACCEPTED,
        NoteForm,
        action_descriptions.accept,
        _with_note(resolutions.accept),
    ),
    Action(
        "attach",
        "Attach to this payment",
        "Attached",
        ResolutionType.ATTACHED,
        AttachForm,
        action_descriptions.attach,
        _attach,
    ),
    Action(
        "send-back",
        "Send back",
        "On its way back",
        ResolutionType.SENT_BACK,
        NoteForm,
        action_descriptions.send_back,
        _send_back,
    ),
    Action(
        "send-to",
        "Send to another account",
        "On its way",
        ResolutionType.SENT_BACK,
        AccountForm,
        action_descriptions.send_to,
        _send_to,
        True,
    ),
    Action(
        "manual-return",
        "Record a manual return",
        "Recorded",
        ResolutionType.SENT_BACK_BY_HAND,
        ManualReturnForm,
        action_descriptions.manual_return,
        _record_manual_return,
    ),
    Action(
        "merge",
        "Merge as duplicate",
        "Merged",
        ResolutionType.MERGED,
        NoteForm,
        action_descriptions.merge,
        _with_note(resolutions.merge),
    ),
    Action(
        "dismiss",
        "Dismiss",
        "Dismissed",
        ResolutionType.DISMISSED,
        NoteForm,
        action_descriptions.dismiss,
        _with_note(resolutions.dismiss),
    ),
    Action(
        "write-off",
        "Write off",
        "Booked",
        ResolutionType.WRITTEN_OFF,
        NoteForm,
        action_descriptions.write_off,
        _with_note(resolutions.write_off),
    ),
    Action(
        "credit",
        "Credit the merchant",
        "Given",
        ResolutionType.KEPT,
        NoteForm,
        action_descriptions.credit_returned_refund,
        _with_note(resolutions.credit_returned_refund),
    ),
    Action(
        "confirm",
        "Confirm this transaction",
        "Confirmed",
        ResolutionType.CONFIRMED,
        NoteForm,
        action_descriptions.confirm,
        _with_note(resolutions.confirm),
        permission=CONFIRM,
    ),
    Action(
        "returned",
        "Mark as returned",
        "Booked",
        ResolutionType.BOOKED_RETURNED,
        NoteForm,
        action_descriptions.mark_returned,
        _with_note(order_completion.mark_returned),
    ),
    Action(
        "failed",
        "Mark as failed",
        "Booked",
        ResolutionType.BOOKED_FAILED,
        NoteForm,
        action_descriptions.mark_failed,
        _with_note(card_contradictions.mark_failed),
    ),
    Action(
        "reopen",
        "Reopen",
        "Opened",
        ResolutionType.REOPENED,
        NoteForm,
        action_descriptions.reopen,
        _with_note(resolutions.reopen),
    ),
]
ACTIONS_BY_SLUG = {action.slug: action for action in ACTIONS}
# What is not named here is about money.
SUBJECT_TYPES: dict[ResolutionType, tuple[type[Model], ...]] = {
    ResolutionType.DISMISSED: (BankTransaction, BankNotification, TransferContradiction),
    ResolutionType.REOPENED: (BankTransaction, BankNotification, TransferContradiction),
    ResolutionType.BOOKED_RETURNED: (TransferContradiction,),
    ResolutionType.BOOKED_FAILED: (TransferContradiction,),
    ResolutionType.KEPT: (Refund,),
}


def find(slug: str, summary: ExceptionSummary) -> Action | None:
    """What can be done about such a subject, now or at another time."""
    action = ACTIONS_BY_SLUG.get(slug)
    return (
        action
        if action
        and isinstance(summary.subject, SUBJECT_TYPES.get(action.resolution_type, (BankTransaction,)))
        else None
    )


def available(summary: ExceptionSummary) -> list[Action]:
    """What can be done now."""
    allowed = _allowed_types(summary.subject)
    return [
        action for action in ACTIONS if action.resolution_type in allowed and _bank_can_send(action, summary)
    ]


def describe(summary: ExceptionSummary, action: Action, values: FormValues) -> str:
    """What will happen, before it does. Raises acts.ActionNotAllowed."""
    if action not in available(summary):
        raise resolutions.ActionNotAllowed(f"“{action.label}” is not possible, or no longer possible.")
    return action.describe(summary, values)


def _allowed_types(subject: Subject) -> frozenset[ResolutionType]:
    if isinstance(subject, BankTransaction):
        return resolutions.allowed_types(subject)
    latest = resolution_records.latest(subject.pk)
    if isinstance(subject, TransferContradiction):
        return _allowed_for_contradiction(subject, latest)
    if isinstance(subject, BankNotification):
        return _allowed_for_message(
            subject, is_dismissed=latest is not None and latest.type == ResolutionType.DISMISSED
        )
    return frozenset([ResolutionType.KEPT]) if subject.returned_at and latest is None else frozenset()


def _allowed_for_message(notification: BankNotification, *, is_dismissed: bool) -> frozenset[ResolutionType]:
    if notification.result not in (
        NotificationResult.CONFLICT,
        NotificationResult.UNREADABLE,
        NotificationResult.UNSIGNED,
    ):
        return frozenset()
    return frozenset([ResolutionType.REOPENED if is_dismissed else ResolutionType.DISMISSED])


def _allowed_for_contradiction(
    contradiction: TransferContradiction, latest: Resolution | None
) -> frozenset[ResolutionType]:
    if latest is None or latest.type == ResolutionType.REOPENED:
        if card_contradictions.is_payment_pending(contradiction):
            return frozenset([ResolutionType.BOOKED_FAILED])
        allowed = {ResolutionType.DISMISSED}
        return frozenset(
            allowed | {ResolutionType.BOOKED_RETURNED}
            if order_completion.can_be_marked_returned(contradiction)
            else allowed
        )
    return frozenset([ResolutionType.REOPENED] if latest.type == ResolutionType.DISMISSED else [])


def _bank_can_send(action: Action, summary: ExceptionSummary) -> bool:
    """Whether the bank can send it there, to the payer or to any account."""
    if action.resolution_type != ResolutionType.SENT_BACK:
        return True
    movement = action_descriptions.transaction_of(summary)
    try:
        destination = (
            returns.destination_of_payer(movement)
            if action.slug == "send-back"
            else resolutions.ReturnDestination()
        )
        returns.check_bank_can_send(movement, destination)
    except (returns.NoSender, returns.NoDestination):
        return False
    return True
