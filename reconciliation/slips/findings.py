"""What staff read about a slip: one sentence for each finding."""

from collections.abc import Iterator
from typing import Literal

from django.utils.timezone import localtime

from banks import SlipTransfer
from core import money, request_context
from reconciliation.exceptions.detail_page import bank_label
from reconciliation.models import BankTransaction, ResolutionState
from reconciliation.slips.bank_check import BankCheckResult
from reconciliation.slips.checking import TRUEMONEY, SlipCheckResult

Level = Literal["success", "warning", "error"]
Finding = tuple[Level, str]
_MONEY_LEFT = {
    ResolutionState.SENDING_BACK: "Its money is on its way back to the payer.",
    ResolutionState.SENT_BACK: "Its money was sent back to the payer.",
    ResolutionState.TAKEN_BACK: "The bank reversed it.",
    ResolutionState.MERGED: "It was merged into another transaction.",
}


def of_check(result: SlipCheckResult) -> list[Finding]:
    """Facts first, then warnings and errors."""
    movement = result.movement
    findings = (
        [_not_reported(result)] if movement is None else [_arrived(movement), *_usage(movement, result)]
    )
    if result.reversal is not None:
        findings.append(("error", f"The bank reversed this money: {result.reversal.id}."))
    return [*findings, *_earlier_checks(result)]


def of_bank_answer(answer: BankCheckResult) -> list[Finding]:
    """The answer of a merchant's bank about a transfer that no bank reported."""
    prefix = f"The bank of {answer.merchant.name}"
    if answer.transfer is None:
        return [("error", f"{prefix} has no such transfer. The slip is no proof of payment.")]
    return [("warning", f"{prefix} knows it: {_describe_transfer(answer.transfer)}."), _of_payment(answer)]


def _describe_transfer(transfer: SlipTransfer) -> str:
    at = localtime(transfer.transferred_at)
    given = filter(None, (transfer.reference1, transfer.reference2, transfer.reference3))
    payee, references = transfer.payee or "an unnamed payee", ", ".join(given) or "none"
    when = f"on {at:%Y-%m-%d at %H:%M:%S}"
    return f"{money.display(transfer.amount)} {when} to {payee}, references {references}"


def _of_payment(answer: BankCheckResult) -> Finding:
    payment = answer.payment
    if payment is None:
        return "error", "It is for no QR code of this service at that bank, so it pays nothing here."
    prefix = f"It is for payment {payment.id} of {payment.merchant.name}"
    if not answer.is_inquiry_scheduled:
        status = payment.get_status_display().lower()
        return "error", (
            f"{prefix}, whose status is {status}. Perhaps this transfer paid it: compare amount and time."
        )
    return "warning", (
        f"{prefix}, and the bank is being asked about it now. Check the slip again in a few seconds: "
        "only received money completes a payment."
    )


def sender_label(result: SlipCheckResult) -> str:
    return "TrueMoney" if result.sending_bank == TRUEMONEY else bank_label(result.sending_bank)


def _not_reported(result: SlipCheckResult) -> Finding:
    sentence = (
        f"No bank has reported this transfer: {sender_label(result)}, id {result.transaction_id}. "
        "The slip is no proof of payment. Do not deliver yet; check again in a moment."
    )
    return "warning", sentence


def _arrived(movement: BankTransaction) -> Finding:
    at = localtime(movement.paid_at)
    return "success", f"{money.display(movement.amount)} arrived, paid on {at:%Y-%m-%d at %H:%M:%S}."


def _usage(movement: BankTransaction, result: SlipCheckResult) -> Iterator[Finding]:
    if movement.is_credited and movement.merchant is not None:
        yield "success", f"It paid payment {movement.payment_id} of {movement.merchant.name}."
    elif movement.resolution_state in _MONEY_LEFT:
        yield "error", _MONEY_LEFT[ResolutionState(movement.resolution_state)]
    else:
        yield "warning", "It has paid nothing yet: it is an open exception."
    if (
        result.claimed_payment_id
        and movement.is_credited
        and result.claimed_payment_id != movement.payment_id
    ):
        yield (
            "error",
            f"It was used already for payment {movement.payment_id}, not for {result.claimed_payment_id}.",
        )


def _earlier_checks(result: SlipCheckResult) -> Iterator[Finding]:
    for shown in result.earlier_checks:
        what = f" for payment {shown.claimed_payment_id}" if shown.claimed_payment_id else ""
        other = shown.claimed_payment_id is not None and shown.claimed_payment_id != result.claimed_payment_id
        at, name = localtime(shown.checked_at), request_context.display_name(shown.actor)
        yield (
            "error" if other else "warning",
            f"This slip was shown before: on {at:%Y-%m-%d at %H:%M:%S} to {name}{what}.",
        )
