"""What a slip is worth, as staff are told: one sentence for each thing that is known of it."""

from collections.abc import Iterator
from typing import Literal

from django.utils.timezone import localtime

from banks import Transferred
from core import money
from receipts.case_page import bank_named
from receipts.models import Receipt, Resolution
from receipts.slip_asking import Told
from receipts.slips import WALLET, Checked

Level = Literal["success", "warning", "error"]
Said = tuple[Level, str]
_WENT = {
    Resolution.SENDING_BACK: "Its money is on its way back to the payer.",
    Resolution.SENT_BACK: "Its money was sent back to the payer.",
    Resolution.TAKEN_BACK: "The bank took its money back.",
    Resolution.MERGED: "It is the same transaction as another, which counts.",
}


def of(checked: Checked) -> list[Said]:
    """The worst is not first: what is known comes before what is odd about it."""
    receipt = checked.receipt
    told = [_unknown(checked)] if receipt is None else [_arrived(receipt), *_used(receipt, checked)]
    if checked.reversal is not None:
        told.append(("error", f"The bank took this money back: {checked.reversal.id}."))
    return [*told, *_shown_before(checked)]


def of_bank(told: Told) -> list[Said]:
    """What a merchant's bank says of a slip of whose transfer we have not heard."""
    whose = f"The bank of {told.merchant.name}"
    if told.transfer is None:
        return [("error", f"{whose} knows no such transfer. The slip is no proof of payment.")]
    return [("warning", f"{whose} knows it: {_described(told.transfer)}."), _worth(told)]


def _described(transfer: Transferred) -> str:
    at = localtime(transfer.at)
    given = filter(None, (transfer.reference1, transfer.reference2, transfer.reference3))
    payee, references = transfer.payee or "nobody named", ", ".join(given) or "none"
    when = f"on {at:%Y-%m-%d at %H:%M:%S}"
    return f"{money.display(transfer.amount)} {when} to {payee}, references {references}"


def _worth(told: Told) -> Said:
    payment = told.payment
    if payment is None:
        return "error", "It is for no code of ours at that bank: it pays nothing here."
    whose = f"It is for payment {payment.id} of {payment.merchant.name}"
    if not told.is_asked_about:
        status = payment.get_status_display().lower()
        return "error", (
            f"{whose}, whose status is {status}. Perhaps this transfer paid it: compare amount and time."
        )
    return "warning", (
        f"{whose}, and the bank is being asked about it now. Check the slip again in a few seconds: "
        "only money that has arrived pays."
    )


def sender_of(checked: Checked) -> str:
    return "TrueMoney" if checked.sending_bank == WALLET else bank_named(checked.sending_bank)


def _unknown(checked: Checked) -> Said:
    sentence = (
        f"We have not heard of this transfer: {sender_of(checked)}, id {checked.transaction_id}. "
        "The slip is no proof of payment. Hand nothing over; check again when the bank has spoken."
    )
    return "warning", sentence


def _arrived(receipt: Receipt) -> Said:
    at = localtime(receipt.paid_at)
    return "success", f"{money.display(receipt.amount)} arrived, paid on {at:%Y-%m-%d at %H:%M:%S}."


def _used(receipt: Receipt, checked: Checked) -> Iterator[Said]:
    if receipt.is_credited and receipt.merchant is not None:
        yield "success", f"It paid payment {receipt.payment_id} of {receipt.merchant.name}."
    elif receipt.resolution in _WENT:
        yield "error", _WENT[Resolution(receipt.resolution)]
    else:
        yield "warning", "It has paid nothing yet: it waits for a decision."
    if checked.shown_for and receipt.is_credited and checked.shown_for != receipt.payment_id:
        yield "error", f"It was used already for payment {receipt.payment_id}, not for {checked.shown_for}."


def _shown_before(checked: Checked) -> Iterator[Said]:
    for shown in checked.before:
        what = f" for payment {shown.shown_for}" if shown.shown_for else ""
        other = shown.shown_for is not None and shown.shown_for != checked.shown_for
        at = localtime(shown.at)
        yield (
            "error" if other else "warning",
            f"This slip was shown before: on {at:%Y-%m-%d at %H:%M:%S} to {shown.by}{what}.",
        )
