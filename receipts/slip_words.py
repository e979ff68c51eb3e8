"""What a slip is worth, as staff are told: one sentence for each thing that is known of it."""

from collections.abc import Iterator
from typing import Literal

from django.utils.timezone import localtime

from core import money
from receipts.case_page import bank_named
from receipts.models import Receipt, Resolution
from receipts.slips import WALLET, Checked

Level = Literal["success", "warning", "error"]
Said = tuple[Level, str]
_WENT = {
    Resolution.SENDING_BACK: "Its money is on its way back to the payer.",
    Resolution.SENT_BACK: "Its money was sent back to the payer.",
    Resolution.TAKEN_BACK: "The bank took its money back.",
}


def of(checked: Checked) -> list[Said]:
    """The worst is not first: what is known comes before what is odd about it."""
    receipt = checked.receipt
    told = [_unknown(checked)] if receipt is None else [_arrived(receipt), *_used(receipt, checked)]
    if checked.reversal is not None:
        told.append(("error", f"The bank took this money back: {checked.reversal.id}."))
    return [*told, *_shown_before(checked)]


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
