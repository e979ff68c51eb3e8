"""The actions that staff can take on an exception: each is a button, a form, a description and a service."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Model
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from reconciliation.exceptions import action_descriptions as descriptions
from reconciliation.exceptions import contradictions, resolution_records, resolutions, returns
from reconciliation.exceptions.action_descriptions import FormValues
from reconciliation.exceptions.forms import AccountForm, AttachForm, ManualReturnForm, NoteForm
from reconciliation.exceptions.summaries import ExceptionSummary, Subject
from reconciliation.matching import confirmation
from reconciliation.models import BankNotification, BankTransaction, ResolutionType
from refunds.models import Refund
from transfers.models import TransferContradiction

VIEW_PERMISSION = "reconciliation.view_banktransaction"
DISMISSIBLE_SUBJECTS = (BankTransaction, BankNotification, TransferContradiction)


@dataclass(frozen=True, slots=True)
class Action:
    """A button on the page of an exception.

    describe: returns the text that staff read before they confirm.
    execute: the service; its keywords are the fields of the form, and `now`.
    subjects: the models of exceptions that have this action.
    """

    slug: str
    label: Promise
    success_message: Promise
    resolution_type: ResolutionType
    describe: Callable[[ExceptionSummary, FormValues], str]
    execute: Callable[..., object]
    form: type[NoteForm] = NoteForm
    subjects: tuple[type[Model], ...] = (BankTransaction,)
    needs_second_step: bool = False

    @property
    def permission(self) -> str:
        """Each action has its own, such as `reconciliation.send_back_exception`."""
        if self.slug == "confirm":
            return "reconciliation.confirm_banktransaction"
        return f"reconciliation.{self.slug.replace('-', '_')}_exception"


def _send_to(
    movement_id: str, *, bank_code: str, bank_account: str, account_name: str, note: str, now: datetime
) -> object:
    destination = returns.ReturnDestination(bank_code, bank_account, account_name)
    return resolutions.send_back(movement_id, destination=destination, note=note, now=now)


_T = ResolutionType
ACTIONS = [
    Action("accept", _("Accept"), _("Accepted"), _T.ACCEPTED, descriptions.accept, resolutions.accept),
    Action(
        "attach", _("Attach to this payment"), _("Attached"), _T.ATTACHED,
        descriptions.attach, resolutions.attach, AttachForm,
    ),
    Action(
        "send-back", _("Send back"), _("On its way back"), _T.SENT_BACK,
        descriptions.send_back, resolutions.send_back,
    ),
    Action(
        "return-excess", _("Return the excess"), _("Credited"), _T.EXCESS_SENT_BACK,
        descriptions.return_excess, resolutions.return_excess,
    ),
    Action(
        "send-to", _("Send to another account"), _("On its way"), _T.SENT_BACK,
        descriptions.send_to, _send_to, AccountForm, needs_second_step=True,
    ),
    Action(
        "manual-return", _("Record a manual return"), _("Recorded"), _T.SENT_BACK_BY_HAND,
        descriptions.manual_return, resolutions.record_manual_return, ManualReturnForm,
    ),
    Action("merge", _("Merge as duplicate"), _("Merged"), _T.MERGED, descriptions.merge, resolutions.merge),
    Action(
        "dismiss", _("Dismiss"), _("Dismissed"), _T.DISMISSED,
        descriptions.dismiss, resolutions.dismiss, subjects=DISMISSIBLE_SUBJECTS,
    ),
    Action(
        "write-off", _("Write off"), _("Written off"), _T.WRITTEN_OFF,
        descriptions.write_off, resolutions.write_off,
    ),
    Action(
        "credit", _("Credit the merchant"), _("Credited"), _T.KEPT,
        descriptions.credit_returned_refund, resolutions.credit_returned_refund, subjects=(Refund,),
    ),
    Action(
        "confirm", _("Confirm this transaction"), _("Confirmed"), _T.CONFIRMED,
        descriptions.confirm, confirmation.confirm_manually,
    ),
    Action(
        "returned", _("Mark as returned"), _("Marked as returned"), _T.BOOKED_RETURNED,
        descriptions.mark_returned, contradictions.mark_returned, subjects=(TransferContradiction,),
    ),
    Action(
        "failed", _("Mark as failed"), _("Marked as failed"), _T.BOOKED_FAILED,
        descriptions.mark_failed, contradictions.mark_failed, subjects=(TransferContradiction,),
    ),
    Action(
        "reopen", _("Reopen"), _("Reopened"), _T.REOPENED,
        descriptions.reopen, resolutions.reopen, subjects=DISMISSIBLE_SUBJECTS,
    ),
]  # fmt: skip
ACTIONS_BY_SLUG = {action.slug: action for action in ACTIONS}


def may_view_exceptions(request: HttpRequest) -> bool:
    """Whether this member of staff may see exceptions. The actions need permissions of their own."""
    return request.user.has_perm(VIEW_PERMISSION)


def find(slug: str, summary: ExceptionSummary) -> Action | None:
    """The action that exceptions of this model have, even if it is not possible now."""
    action = ACTIONS_BY_SLUG.get(slug)
    return action if action and isinstance(summary.subject, action.subjects) else None


def available(summary: ExceptionSummary) -> list[Action]:
    """The actions that are possible now."""
    allowed = _allowed_types(summary.subject)
    return [
        action for action in ACTIONS if action.resolution_type in allowed and _bank_can_send(action, summary)
    ]


def describe(summary: ExceptionSummary, action: Action, values: FormValues) -> str:
    """What will happen if staff confirm the action. Raises ActionNotAllowed."""
    if action not in available(summary):
        text = gettext("“%(action)s” is not possible, or no longer possible.")
        raise resolution_records.ActionNotAllowed(text % {"action": action.label})
    return action.describe(summary, values)


def _allowed_types(subject: Subject) -> frozenset[ResolutionType]:
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


def _bank_can_send(action: Action, summary: ExceptionSummary) -> bool:
    """Whether the bank can send the money to the payer or, for `send-to`, to any account."""
    if action.resolution_type != ResolutionType.SENT_BACK:
        return True
    movement = descriptions.transaction_of(summary)
    try:
        destination = (
            returns.destination_of_payer(movement)
            if action.slug == "send-back"
            else returns.ReturnDestination()
        )
        returns.check_bank_can_send(movement, destination)
    except (returns.NoSender, returns.NoDestination):
        return False
    return True
