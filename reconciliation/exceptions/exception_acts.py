"""What staff can do to an exception, and what they read before they confirm it.

The row of each act is an `ExceptionSummary`.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from django import forms
from django.db.models import Model
from django.http import Http404
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy as _

from approvals import services as approvals
from audit_trail.act_pages import ObjectAct, ReasonForm, Told
from audit_trail.acts import Act, ActRefused
from core import ids, money, plain_text, request_context
from core.console import personal_data
from core.console.form_fields import PlainCharField
from core.thai import thaibanks
from payments.models import Payment
from reconciliation.exceptions import acquirer_transfers, confirmations, contradictions, resolutions
from reconciliation.exceptions.resolution_records import CONFIRMED_TYPES
from reconciliation.exceptions.summaries import ExceptionSummary
from reconciliation.matching import returns
from reconciliation.matching.refusals import NoWayBack
from reconciliation.models import BankNotification, BankTransaction, ResolutionState, ResolutionType
from refunds.destinations import Destination
from refunds.models import Refund
from transfers.models import TransferContradiction
from transfers.serializers import Payee

VIEW_PERMISSION = "reconciliation.view_banktransaction"  # of exceptions; each act has its own permission
DISMISSIBLE_SUBJECTS = (BankTransaction, BankNotification, TransferContradiction)
ACCOUNT_FIELDS = ["bank_code", "bank_account", "account_name"]
REOPENED: dict[str, Promise] = {
    ResolutionState.WRITTEN_OFF: _(
        "The write-off of %(amount)s is reversed, and this waits for a decision again. The earlier decision "
        "stays in the history."
    ),
    ResolutionState.MERGED: _(
        "There are two transactions after all: %(amount)s is in suspense again and waits for a decision. The "
        "earlier decision stays in the history."
    ),
}


class AttachForm(ReasonForm):
    """The payment is that of the link."""

    payment_id = PlainCharField(plain=plain_text.visible, widget=forms.HiddenInput)

    def explanation(self) -> str:
        """Raises ActRefused for a payment that this money cannot pay."""
        payment_id = (self.cleaned_data if self.is_bound else self.initial).get("payment_id")
        payment = None
        if ids.looks_right(payment_id, "pay_"):
            payment = Payment.objects.filter(pk=payment_id).select_related("merchant").first()
        if payment is None:
            raise ActRefused(gettext("There is no payment with this id."))
        if payment.status not in resolutions.PAYABLE:
            text = gettext("Payment %(payment)s is %(status)s: it is not waiting for money.")
            status = payment.get_status_display().lower()
            raise ActRefused(text % {"payment": payment.id, "status": status})
        return _explain_success(self.row, payment)


class AccountFields(forms.Form):
    """An account that staff enter, with the same checks as in the API."""

    bank_code = PlainCharField(
        plain=plain_text.visible,
        max_length=10,
        label=_("Bank"),
        widget=forms.Select(choices=thaibanks.choices),  # type: ignore[arg-type]  # in the language of the reader
    )
    bank_account = PlainCharField(
        plain=plain_text.compact, max_length=20, label=_("Account"), help_text=_("Digits only.")
    )
    account_name = PlainCharField(plain=plain_text.name, max_length=140, label=_("Account holder"))

    def clean(self) -> dict[str, Any]:
        filled = super().clean() or self.cleaned_data
        payee = Payee(data={name: filled[name] for name in ACCOUNT_FIELDS if name in filled})
        if payee.is_valid():
            return {**filled, **payee.validated_data}
        for name, faults in payee.errors.items():
            if name in filled:
                self.add_error(name, [str(fault) for fault in faults])
        return filled


class AccountForm(AccountFields, ReasonForm):
    """Staff see once more what they typed, because nobody can take the money back."""

    asks_twice = True

    def explanation(self) -> str:
        if not self.is_valid():
            return ""
        name, bank_account = self.cleaned_data["account_name"], self.cleaned_data["bank_account"]
        account = _account(bank_account, self.cleaned_data["bank_code"])
        text = _("%(amount)s is sent to %(account_name)s, account %(account)s. This cannot be undone.")
        return _explain(text, self.row, account_name=name, account=account)


class ManualReturnForm(ReasonForm):
    bank_reference = PlainCharField(
        plain=plain_text.visible,
        max_length=64,
        label=_("Bank's reference"),
        help_text=_("The bank's reference of the transfer that you made."),
    )


def _explain(text: str | Promise, summary: ExceptionSummary, **words: str) -> str:
    """The sentence, with what it says about the exception."""
    subject = summary.subject
    known: dict[str, str] = {}
    if isinstance(subject, BankTransaction):
        known = {
            "amount": money.display(returns.held_part(subject).amount),
            "bank": subject.bank,
            "other": summary.probable_duplicate.id if summary.probable_duplicate else "",
        }
    elif isinstance(subject, Refund):
        known = {"amount": money.display(subject.amount), "merchant": subject.merchant.name}
    elif isinstance(subject, TransferContradiction):
        known = {"amount": money.display(subject.amount), "sender": subject.route.partition(":")[2]}
        known |= {"order_id": subject.subject_id, "subject_id": subject.subject_id}
    return str(text) % (known | words)


def _explain_success(summary: ExceptionSummary, payment: Payment | None = None) -> str:
    """The money pays this payment, or its own."""
    bank_transaction = _transaction_of(summary)
    payment = payment or bank_transaction.payment
    assert payment is not None, "`allowed_types` checks this"
    text = _(
        "Payment %(payment)s of %(merchant)s asked for %(amount)s. It succeeds with the %(received)s that "
        "arrived: the merchant is notified, and the money is added to its balance."
    )
    if bank_transaction.amount == payment.amount:
        text = _(
            "Payment %(payment)s of %(merchant)s succeeds with this %(received)s, the merchant is notified, "
            "and the money is added to its balance."
        )
    return text % _words_of(payment, received=money.display(bank_transaction.amount))


def _words_of(payment: Payment, **words: str) -> dict[str, str]:
    name, amount = payment.merchant.name, money.display(payment.amount)
    return {"payment": payment.id, "merchant": name, "amount": amount} | words


def _explain_return_of_excess(summary: ExceptionSummary) -> str:
    bank_transaction = _transaction_of(summary)
    payment, destination = bank_transaction.payment, returns.find_destination_of_excess(bank_transaction)
    assert payment is not None, "`allowed_types` checks this"
    credited = _(
        "Payment %(payment)s of %(merchant)s succeeds with its %(amount)s: the merchant is notified, and "
        "%(amount)s are credited."
    ) % _words_of(payment)
    words = {"amount": money.display(bank_transaction.amount - payment.amount)}
    text = _(
        "The excess of %(amount)s waits here for another decision: it cannot be sent to the payer's account "
        "from here."
    )
    if destination is not None:
        text = _("The excess of %(amount)s goes back to the payer, %(name)s, account %(account)s.")
        words |= _words_to(destination)
    return f"{credited} {text % words}"


def _explain_send_back(summary: ExceptionSummary) -> str:
    bank_transaction = _transaction_of(summary)
    destination = returns.destination_of_payer(bank_transaction)
    text = _("%(amount)s is sent back to the payer, %(name)s, account %(account)s.")
    if destination.charge_id:
        text = _("%(bank)s voids the payment. This is possible until the end of the bank's day.")
    return _explain(text, summary, bank=thaibanks.label(bank_transaction.bank), **_words_to(destination))


def _words_to(destination: Destination) -> dict[str, str]:
    account = _account(personal_data.account(destination.account), destination.bank_code)
    return {"name": personal_data.name(destination.account_name), "account": account}


def _account(number: str | None, bank_code: str) -> str:
    return _("%(account)s at %(bank)s") % {"account": number, "bank": thaibanks.label(bank_code)}


def _explain_confirm(summary: ExceptionSummary) -> str:
    text = _(
        "You have seen %(amount)s on the account at %(bank)s yourself, in its online banking or by "
        "asking the bank. %(uploader)s uploaded the statement that reports it. After this, the "
        "money can be withdrawn, refunded and sent back."
    )
    uploader = confirmations.uploader_of(_transaction_of(summary))
    return _explain(text, summary, uploader=request_context.display_name(uploader))


def _explain_reopen(summary: ExceptionSummary) -> str:
    text = _("It waits for a decision again. The earlier decision stays in the history.")
    return _explain(REOPENED.get(getattr(summary.subject, "resolution_state", ""), text), summary)


def _explain_returned(summary: ExceptionSummary) -> str:
    text = _("The %(amount)s of %(order_id)s came back: the money waits for a decision again.")
    if getattr(summary.subject, "subject_id", "").startswith("wd_"):
        text = _("Withdrawal %(order_id)s fails, and %(amount)s returns to the merchant's balance.")
    return _explain(text, summary)


def _transaction_of(summary: ExceptionSummary) -> BankTransaction:
    assert isinstance(summary.subject, BankTransaction)
    return summary.subject


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


def _can_be_sent(is_to_payer: bool, summary: ExceptionSummary, now: datetime) -> bool:
    """Whether the bank can send the money to the payer, or to any account."""
    if ResolutionType.SENT_BACK not in summary.allowed_types:
        return False
    bank_transaction = _transaction_of(summary)
    try:
        destination = returns.destination_of_payer(bank_transaction) if is_to_payer else Destination()
        returns.check_bank_can_send(bank_transaction, destination)
    except NoWayBack:
        return False
    return True


def _is_of_acquirer(summary: ExceptionSummary, now: datetime) -> bool:
    if ResolutionType.ACQUIRER not in summary.allowed_types:
        return False
    return bool(acquirer_transfers.candidates(_transaction_of(summary)))


def _send_to(
    bank_transaction_id: str, bank_code: str, bank_account: str, account_name: str, note: str, now: datetime
) -> object:
    destination = Destination(bank_code, bank_account, account_name)
    return resolutions.send_back(bank_transaction_id, destination=destination, note=note, now=now)


def _act(
    slug: str,
    label: Promise,
    type: ResolutionType,
    explanation: Promise | Callable[[ExceptionSummary], str],
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
        "is_possible": lambda summary, now: type in summary.allowed_types,
        "is_confirmed": type in CONFIRMED_TYPES,
        **options,
    }
    return ObjectAct(
        slug=slug,
        label=label,
        act=Act.EXCEPTION_RESOLVED,
        explain=explanation if callable(explanation) else partial(_explain, explanation),
        run=partial(_run, service, subjects),
        is_recorded_by_service=True,
        **declared,
    )


_T = ResolutionType
# In bulk are those that need nothing for each row: no payment, no account, no look at the bank.
EXCEPTION_ACTS = (
    _act("accept", _("Accept"), _T.ACCEPTED, _explain_success, resolutions.accept, is_bulk=True),
    _act(
        "attach", _("Attach to this payment"), _T.ATTACHED, _explain_success, resolutions.attach,
        form=AttachForm,
    ),
    _act(
        "send-back", _("Send back"), _T.SENT_BACK, _explain_send_back, resolutions.send_back,
        is_possible=partial(_can_be_sent, True), is_bulk=True,
    ),
    _act(
        "return-excess", _("Return the excess"), _T.EXCESS_SENT_BACK,
        _explain_return_of_excess, resolutions.return_excess, is_bulk=True,
    ),
    _act(
        "send-to", _("Send to another account"), _T.SENT_BACK,
        _("%(amount)s is sent to the account that you enter here. You confirm the account in a second step."),
        _send_to, is_possible=partial(_can_be_sent, False), form=AccountForm, is_dangerous=True,
    ),
    _act(
        "manual-return", _("Record a manual return"), _T.SENT_BACK_BY_HAND,
        _("You have sent %(amount)s back at the bank yourself. This only records it."),
        resolutions.record_manual_return, form=ManualReturnForm,
    ),
    _act(
        "merge", _("Merge as duplicate"), _T.MERGED,
        _(
            "The bank has confirmed that this and %(other)s are one transaction, so they are merged: "
            "%(amount)s leaves suspense, nothing is sent, and %(other)s stays as it is. Reopen it if "
            "the bank proves later that there are two."
        ),
        resolutions.merge, is_bulk=True,
    ),
    _act(
        "acquirer", _("It is a transfer of the acquirer"), _T.ACQUIRER,
        _(
            "The acquirer has reported this transfer of %(amount)s, and merchants have their parts of it. "
            "The money leaves suspense, and nobody gets it again."
        ),
        acquirer_transfers.identify, form=acquirer_transfers.TransferForm, is_possible=_is_of_acquirer,
    ),
    _act(
        "dismiss", _("Dismiss"), _T.DISMISSED,
        _("It is removed from the list of exceptions. No money moves, and the record is kept."),
        resolutions.dismiss, subjects=DISMISSIBLE_SUBJECTS, is_bulk=True,
    ),
    _act(
        "write-off", _("Write off"), _T.WRITTEN_OFF,
        _(
            "%(amount)s left our account at %(bank)s a second time, as the bank confirmed when you "
            "asked. It is written off, and no merchant is charged. If it can be recovered later, the "
            "write-off is reversed."
        ),
        resolutions.write_off, is_dangerous=True, is_bulk=True,
    ),
    _act(
        "credit", _("Credit the merchant"), _T.KEPT,
        _(
            "The %(amount)s that the bank returned is added to the balance of %(merchant)s. The "
            "refund stays completed and returned; the merchant may pay its customer in another way."
        ),
        resolutions.credit_returned_refund, subjects=(Refund,), is_bulk=True,
    ),
    _act(
        "confirm", _("Confirm this transaction"), _T.CONFIRMED,
        _explain_confirm, confirmations.confirm_manually, permission="reconciliation.confirm_banktransaction",
    ),
    _act(
        "returned", _("Mark as returned"), _T.BOOKED_RETURNED,
        _explain_returned, contradictions.mark_returned, subjects=(TransferContradiction,),
    ),
    _act(
        "failed", _("Mark as failed"), _T.BOOKED_FAILED,
        _(
            "You have refunded the charge at %(sender)s yourself. Payment %(subject_id)s fails, and the "
            "merchant is notified. No money moves here."
        ),
        contradictions.mark_failed, subjects=(TransferContradiction,),
    ),
    _act(
        "reopen", _("Reopen"), _T.REOPENED, _explain_reopen, resolutions.reopen, subjects=DISMISSIBLE_SUBJECTS
    ),
)  # fmt: skip
