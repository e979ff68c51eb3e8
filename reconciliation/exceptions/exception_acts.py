"""What staff can do to an exception. The row of each act is an `ExceptionSummary`."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from django.db.models import Model
from django.http import Http404, HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from approvals import services as approvals
from audit_trail.act_pages import ObjectAct, Told
from audit_trail.acts import Act
from reconciliation.exceptions import act_explanations as explain
from reconciliation.exceptions import contradictions, resolutions, returns
from reconciliation.exceptions.forms import AccountForm, AttachForm, ManualReturnForm
from reconciliation.exceptions.resolution_records import CONFIRMED_TYPES
from reconciliation.exceptions.summaries import ExceptionSummary
from reconciliation.matching import confirmation
from reconciliation.models import BankNotification, BankTransaction, ResolutionType
from refunds.models import Refund
from transfers.models import TransferContradiction

VIEW_PERMISSION = "reconciliation.view_banktransaction"
DISMISSIBLE_SUBJECTS = (BankTransaction, BankNotification, TransferContradiction)


def may_view_exceptions(request: HttpRequest) -> bool:
    """Whether this member of staff may see exceptions. The acts need permissions of their own."""
    return request.user.has_perm(VIEW_PERMISSION)


def _run(
    service: Callable[..., object],
    subjects: tuple[type[Model], ...],
    summary: ExceptionSummary,
    values: dict[str, Any],
    now: datetime,
) -> Told | None:
    """Call the service with the fields of the form. Raises Http404 for another kind of exception."""
    if not isinstance(summary.subject, subjects):
        raise Http404
    fields = {name: value for name, value in values.items() if name not in ("reason", "token")}
    made = service(summary.pk, note=values["reason"], now=now, **fields)
    if not approvals.is_waiting(summary.pk, str(getattr(made, "pk", ""))):
        return None
    text = gettext("It is above the limit: a second person must approve it first.")
    return Told(text, is_good=False)


def _is_allowed(type: ResolutionType, summary: ExceptionSummary, now: datetime) -> bool:
    return type in summary.allowed_types


def _can_be_sent(is_to_payer: bool, summary: ExceptionSummary, now: datetime) -> bool:
    """Whether the bank can send the money to the payer, or to any account."""
    if ResolutionType.SENT_BACK not in summary.allowed_types:
        return False
    movement = explain.transaction_of(summary)
    try:
        destination = returns.destination_of_payer(movement) if is_to_payer else returns.ReturnDestination()
        returns.check_bank_can_send(movement, destination)
    except (returns.NoSender, returns.NoDestination):
        return False
    return True


def _send_to(
    movement_id: str, *, bank_code: str, bank_account: str, account_name: str, note: str, now: datetime
) -> object:
    destination = returns.ReturnDestination(bank_code, bank_account, account_name)
    return resolutions.send_back(movement_id, destination=destination, note=note, now=now)


def _act(
    slug: str,
    label: Promise,
    type: ResolutionType,
    explanation: Callable[[ExceptionSummary], str],
    service: Callable[..., object],
    *,
    subjects: tuple[type[Model], ...] = (BankTransaction,),
    **options: Any,
) -> ObjectAct:
    """An act by a service of `resolution_records.decision`, whose keywords are the fields of the form.

    subjects: the models of exceptions that have this act.
    """
    declared: dict[str, Any] = {
        "permission": f"reconciliation.{slug.replace('-', '_')}_exception",
        "is_possible": partial(_is_allowed, type),
        "is_confirmed": type in CONFIRMED_TYPES,
        **options,
    }
    return ObjectAct(
        slug=slug,
        label=label,
        act=Act.EXCEPTION_RESOLVED,
        explain=explanation,
        run=partial(_run, service, subjects),
        is_recorded_by_service=True,
        **declared,
    )


_T = ResolutionType
# In bulk are those that need nothing for each row: no payment, no account, no look at the bank.
EXCEPTION_ACTS = (
    _act("accept", _("Accept"), _T.ACCEPTED, explain.accept, resolutions.accept, is_bulk=True),
    _act(
        "attach", _("Attach to this payment"), _T.ATTACHED, explain.attach, resolutions.attach,
        form=AttachForm,
    ),
    _act(
        "send-back", _("Send back"), _T.SENT_BACK, explain.send_back, resolutions.send_back,
        is_possible=partial(_can_be_sent, True), is_bulk=True,
    ),
    _act(
        "return-excess", _("Return the excess"), _T.EXCESS_SENT_BACK,
        explain.return_excess, resolutions.return_excess, is_bulk=True,
    ),
    _act(
        "send-to", _("Send to another account"), _T.SENT_BACK, explain.send_to, _send_to,
        is_possible=partial(_can_be_sent, False), form=AccountForm, is_dangerous=True,
    ),
    _act(
        "manual-return", _("Record a manual return"), _T.SENT_BACK_BY_HAND,
        explain.manual_return, resolutions.record_manual_return, form=ManualReturnForm,
    ),
    _act("merge", _("Merge as duplicate"), _T.MERGED, explain.merge, resolutions.merge, is_bulk=True),
    _act(
        "dismiss", _("Dismiss"), _T.DISMISSED, explain.dismiss, resolutions.dismiss,
        subjects=DISMISSIBLE_SUBJECTS, is_bulk=True,
    ),
    _act(
        "write-off", _("Write off"), _T.WRITTEN_OFF, explain.write_off, resolutions.write_off,
        is_dangerous=True, is_bulk=True,
    ),
    _act(
        "credit", _("Credit the merchant"), _T.KEPT,
        explain.credit_returned_refund, resolutions.credit_returned_refund, subjects=(Refund,), is_bulk=True,
    ),
    _act(
        "confirm", _("Confirm this transaction"), _T.CONFIRMED,
        explain.confirm, confirmation.confirm_manually,
        permission="reconciliation.confirm_banktransaction",
    ),
    _act(
        "returned", _("Mark as returned"), _T.BOOKED_RETURNED,
        explain.mark_returned, contradictions.mark_returned, subjects=(TransferContradiction,),
    ),
    _act(
        "failed", _("Mark as failed"), _T.BOOKED_FAILED,
        explain.mark_failed, contradictions.mark_failed, subjects=(TransferContradiction,),
    ),
    _act(
        "reopen", _("Reopen"), _T.REOPENED, explain.reopen, resolutions.reopen, subjects=DISMISSIBLE_SUBJECTS
    ),
)  # fmt: skip
