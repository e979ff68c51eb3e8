"""What an act on an exception will do, in sentences that staff read before they confirm it."""

from typing import Any

from django.utils.translation import gettext as _

from audit_trail.acts import ActRefused
from core import ids, money, personal_data, request_context
from payments.models import Payment
from reconciliation.exceptions import excesses, resolutions, returns
from reconciliation.exceptions.detail_page import bank_label
from reconciliation.exceptions.summaries import ExceptionSummary
from reconciliation.matching import confirmation
from reconciliation.models import BankTransaction, ResolutionState
from refunds.models import Refund
from transfers.models import TransferContradiction


def accept(summary: ExceptionSummary) -> str:
    movement = transaction_of(summary)
    assert movement.payment is not None, "`allowed_types` checks this"
    return _success(movement, movement.payment)


def attach(summary: ExceptionSummary, payment_id: object = None) -> str:
    """Raises ActRefused for a payment that this money cannot pay."""
    payment = None
    if ids.looks_right(payment_id, "pay_"):
        payment = Payment.objects.filter(pk=payment_id).select_related("merchant").first()
    if payment is None:
        raise ActRefused(_("There is no payment with this id."))
    if payment.status not in resolutions.PAYABLE:
        raise ActRefused(
            _("Payment %(payment)s is %(status)s: it is not waiting for money.")
            % {"payment": payment.id, "status": payment.get_status_display().lower()}
        )
    return _success(transaction_of(summary), payment)


def _success(movement: BankTransaction, payment: Payment) -> str:
    received = money.display(movement.amount)
    if movement.amount == payment.amount:
        return _(
            "Payment %(payment)s of %(merchant)s succeeds with this %(received)s, the merchant is "
            "notified, and the money is added to its balance."
        ) % {"payment": payment.id, "merchant": payment.merchant.name, "received": received}
    return _(
        "Payment %(payment)s of %(merchant)s asked for %(amount)s. It succeeds with the "
        "%(received)s that arrived: the merchant is notified, and the money is added to its "
        "balance."
    ) % {
        "payment": payment.id,
        "merchant": payment.merchant.name,
        "amount": money.display(payment.amount),
        "received": received,
    }


def return_excess(summary: ExceptionSummary) -> str:
    movement = transaction_of(summary)
    payment = movement.payment
    assert payment is not None, "`allowed_types` checks this"
    credited = _(
        "Payment %(payment)s of %(merchant)s succeeds with its %(amount)s: the merchant is notified, and "
        "%(amount)s are credited."
    ) % {
        "payment": payment.id,
        "merchant": payment.merchant.name,
        "amount": money.display(payment.amount),
    }
    return f"{credited} {_of_excess(movement, movement.amount - payment.amount)}"


def _of_excess(movement: BankTransaction, excess: int) -> str:
    destination = returns.find_destination_of_excess(movement)
    if destination is None or destination.transaction_id:
        return _(
            "The excess of %(amount)s waits here for another decision: it cannot be sent to the payer's "
            "account from here."
        ) % {"amount": money.display(excess)}
    return _("The excess of %(amount)s goes back to the payer, %(name)s, account %(account)s.") % {
        "amount": money.display(excess),
        "name": personal_data.name(destination.account_name),
        "account": _payer_account(destination),
    }


def send_back(summary: ExceptionSummary) -> str:
    movement = transaction_of(summary)
    destination = returns.destination_of_payer(movement)
    if destination.transaction_id:
        return _("%(bank)s voids the payment. This is possible until the end of the bank's day.") % {
            "bank": bank_label(movement.bank)
        }
    name = personal_data.name(destination.account_name)
    return _("%(amount)s is sent back to the payer, %(name)s, account %(account)s.") % {
        "amount": _held(movement),
        "name": name,
        "account": _payer_account(destination),
    }


def _payer_account(destination: returns.ReturnDestination) -> str:
    return _("%(account)s at %(bank)s") % {
        "account": personal_data.account(destination.account),
        "bank": bank_label(destination.bank_code),
    }


def _held(movement: BankTransaction) -> str:
    """The amount that waits: all of the bank transaction, or its excess."""
    return money.display(excesses.held_part(movement).amount)


def send_to(summary: ExceptionSummary) -> str:
    return _(
        "%(amount)s is sent to the account that you enter here. You confirm the account in a second step."
    ) % {"amount": _held(transaction_of(summary))}


def send_to_account(summary: ExceptionSummary, values: dict[str, Any]) -> str:
    account = _("%(account)s at %(bank)s") % {
        "account": values["bank_account"],
        "bank": bank_label(values["bank_code"]),
    }
    return _("%(amount)s is sent to %(account_name)s, account %(account)s. This cannot be undone.") % {
        "amount": _held(transaction_of(summary)),
        "account_name": values["account_name"],
        "account": account,
    }


def manual_return(summary: ExceptionSummary) -> str:
    amount = _held(transaction_of(summary))
    return _("You have sent %(amount)s back at the bank yourself. This only records it.") % {"amount": amount}


def dismiss(summary: ExceptionSummary) -> str:
    return _("It is removed from the list of exceptions. No money moves, and the record is kept.")


def merge(summary: ExceptionSummary) -> str:
    movement, other = transaction_of(summary), summary.probable_duplicate
    assert other is not None, "`allowed_types` checks this"
    return _(
        "The bank has confirmed that this and %(other)s are one transaction, so they are merged: "
        "%(amount)s leaves suspense, nothing is sent, and %(other)s stays as it is. Reopen it if "
        "the bank proves later that there are two."
    ) % {"other": other.id, "amount": money.display(movement.amount)}


def write_off(summary: ExceptionSummary) -> str:
    movement = transaction_of(summary)
    return _(
        "%(amount)s left our account at %(bank)s a second time, as the bank confirmed when you "
        "asked. It is written off, and no merchant is charged. If it can be recovered later, the "
        "write-off is reversed."
    ) % {"amount": money.display(movement.amount), "bank": movement.bank}


def reopen(summary: ExceptionSummary) -> str:
    subject = summary.subject
    if isinstance(subject, BankTransaction) and subject.resolution_state == ResolutionState.WRITTEN_OFF:
        return _(
            "The write-off of %(amount)s is reversed, and this waits for a decision again. The earlier "
            "decision stays in the history."
        ) % {"amount": money.display(subject.amount)}
    if isinstance(subject, BankTransaction) and subject.resolution_state == ResolutionState.MERGED:
        return _(
            "There are two transactions after all: %(amount)s is in suspense again and waits for a "
            "decision. The earlier decision stays in the history."
        ) % {"amount": money.display(subject.amount)}
    return _("It waits for a decision again. The earlier decision stays in the history.")


def confirm(summary: ExceptionSummary) -> str:
    movement = transaction_of(summary)
    uploader = request_context.display_name(confirmation.uploader_of(movement))
    return _(
        "You have seen %(amount)s on the account at %(bank)s yourself, in its online banking or by "
        "asking the bank. %(uploader)s uploaded the statement that reports it. After this, the "
        "money can be withdrawn, refunded and sent back."
    ) % {"amount": money.display(movement.amount), "bank": movement.bank, "uploader": uploader}


def credit_returned_refund(summary: ExceptionSummary) -> str:
    assert isinstance(summary.subject, Refund)
    refund = summary.subject
    amount = money.display(refund.amount)
    return _(
        "The %(amount)s that the bank returned is added to the balance of %(merchant)s. The "
        "refund stays completed and returned; the merchant may pay its customer in another way."
    ) % {"amount": amount, "merchant": refund.merchant.name}


def mark_returned(summary: ExceptionSummary) -> str:
    assert isinstance(summary.subject, TransferContradiction)
    amount, order_id = money.display(summary.subject.amount), summary.subject.subject_id
    if order_id.startswith("wd_"):
        return _("Withdrawal %(order_id)s fails, and %(amount)s returns to the merchant's balance.") % {
            "order_id": order_id,
            "amount": amount,
        }
    return _("The %(amount)s of %(order_id)s came back: the money waits for a decision again.") % {
        "amount": amount,
        "order_id": order_id,
    }


def mark_failed(summary: ExceptionSummary) -> str:
    assert isinstance(summary.subject, TransferContradiction)
    return _(
        "You have refunded the charge at %(sender)s yourself. Payment %(subject_id)s fails, and the "
        "merchant is notified. No money moves here."
    ) % {"sender": summary.subject.route.partition(":")[2], "subject_id": summary.subject.subject_id}


def transaction_of(summary: ExceptionSummary) -> BankTransaction:
    assert isinstance(summary.subject, BankTransaction)
    return summary.subject
