"""What an action will do, in sentences that staff read before they confirm it."""

from collections.abc import Mapping
from typing import Any

from core import ids, money, personal_data, request_context
from payments.models import Payment
from reconciliation.exceptions import resolutions, returns
from reconciliation.exceptions.detail_page import bank_label
from reconciliation.exceptions.resolution_records import ActionNotAllowed
from reconciliation.exceptions.summaries import ExceptionSummary
from reconciliation.matching import confirmation
from reconciliation.models import BankTransaction, ResolutionState
from refunds.models import Refund
from transfers.models import TransferContradiction

FormValues = Mapping[str, Any]


def accept(summary: ExceptionSummary, values: FormValues) -> str:
    movement = transaction_of(summary)
    assert movement.payment is not None, "`allowed_types` checks this"
    return _success(movement, movement.payment)


def attach(summary: ExceptionSummary, values: FormValues) -> str:
    payment_id, payment = values.get("payment_id"), None
    if ids.looks_right(payment_id, "pay_"):
        payment = Payment.objects.filter(pk=payment_id).select_related("merchant").first()
    if payment is None:
        raise ActionNotAllowed("There is no payment with this id.")
    if payment.status not in resolutions.PAYABLE:
        raise ActionNotAllowed(f"Payment {payment.id} is {payment.status}: it is not waiting for money.")
    return _success(transaction_of(summary), payment)


def _success(movement: BankTransaction, payment: Payment) -> str:
    received = money.display(movement.amount)
    if movement.amount == payment.amount:
        return (
            f"Payment {payment.id} of {payment.merchant.name} succeeds with this {received}, "
            "the merchant is notified, and the money is added to its balance."
        )
    return (
        f"Payment {payment.id} of {payment.merchant.name} asked for {money.display(payment.amount)}. "
        f"It succeeds with the {received} that arrived: the merchant is notified, and the money is added to "
        "its balance."
    )


def send_back(summary: ExceptionSummary, values: FormValues) -> str:
    movement = transaction_of(summary)
    destination = returns.destination_of_payer(movement)
    if destination.transaction_id:
        return (
            f"{bank_label(movement.bank)} voids the payment. This is possible until the end of the "
            "bank's day."
        )
    account = f"{personal_data.account(destination.account)} at {bank_label(destination.bank_code)}"
    name = personal_data.name(destination.account_name)
    return f"{money.display(movement.amount)} is sent back to the payer, {name}, account {account}."


def send_to(summary: ExceptionSummary, values: FormValues) -> str:
    amount = money.display(transaction_of(summary).amount)
    if not values.get("bank_account"):
        return (
            f"{amount} is sent to the account that you enter here. You confirm the account in a second step."
        )
    account = f"{values['bank_account']} at {bank_label(values['bank_code'])}"
    return f"{amount} is sent to {values['account_name']}, account {account}. This cannot be undone."


def manual_return(summary: ExceptionSummary, values: FormValues) -> str:
    amount = money.display(transaction_of(summary).amount)
    return f"You have sent {amount} back at the bank yourself. This only records it."


def dismiss(summary: ExceptionSummary, values: FormValues) -> str:
    return "It is removed from the list of exceptions. No money moves, and the record is kept."


def merge(summary: ExceptionSummary, values: FormValues) -> str:
    movement, other = transaction_of(summary), summary.probable_duplicate
    assert other is not None, "`allowed_types` checks this"
    return (
        f"The bank has confirmed that this and {other.id} are one transaction, so they are merged: "
        f"{money.display(movement.amount)} leaves suspense, nothing is sent, and {other.id} stays as it is. "
        "Reopen it if the bank proves later that there are two."
    )


def write_off(summary: ExceptionSummary, values: FormValues) -> str:
    movement = transaction_of(summary)
    return (
        f"{money.display(movement.amount)} left our account at {movement.bank} a second time, as the bank "
        "confirmed when you asked. It is written off, and no merchant is charged. "
        "If it can be recovered later, the write-off is reversed."
    )


def reopen(summary: ExceptionSummary, values: FormValues) -> str:
    subject = summary.subject
    if isinstance(subject, BankTransaction) and subject.resolution_state == ResolutionState.WRITTEN_OFF:
        return (
            f"The write-off of {money.display(subject.amount)} is reversed, and this waits for a "
            "decision again. The earlier decision stays in the history."
        )
    if isinstance(subject, BankTransaction) and subject.resolution_state == ResolutionState.MERGED:
        return (
            f"There are two transactions after all: {money.display(subject.amount)} is in suspense again "
            "and waits for a decision. The earlier decision stays in the history."
        )
    return "It waits for a decision again. The earlier decision stays in the history."


def confirm(summary: ExceptionSummary, values: FormValues) -> str:
    movement = transaction_of(summary)
    uploader = request_context.display_name(confirmation.uploader_of(movement))
    return (
        f"You have seen {money.display(movement.amount)} on the account at {movement.bank} yourself, in its "
        f"online banking or by asking the bank. {uploader} uploaded the statement that reports it. After "
        "this, the money can be withdrawn, refunded and sent back."
    )


def credit_returned_refund(summary: ExceptionSummary, values: FormValues) -> str:
    assert isinstance(summary.subject, Refund)
    refund = summary.subject
    amount = money.display(refund.amount)
    return (
        f"The {amount} that the bank returned is added to the balance of {refund.merchant.name}. "
        "The refund stays completed and returned; the merchant may pay its customer in another way."
    )


def mark_returned(summary: ExceptionSummary, values: FormValues) -> str:
    assert isinstance(summary.subject, TransferContradiction)
    amount, order_id = money.display(summary.subject.amount), summary.subject.subject_id
    if order_id.startswith("wd_"):
        return f"Withdrawal {order_id} fails, and {amount} returns to the merchant's balance."
    return f"The {amount} of {order_id} came back: the money waits for a decision again."


def mark_failed(summary: ExceptionSummary, values: FormValues) -> str:
    assert isinstance(summary.subject, TransferContradiction)
    return (
        f"You have refunded the charge at {summary.subject.route.partition(':')[2]} yourself. Payment "
        f"{summary.subject.subject_id} fails, and the merchant is notified. No money moves here."
    )


def transaction_of(summary: ExceptionSummary) -> BankTransaction:
    assert isinstance(summary.subject, BankTransaction)
    return summary.subject
