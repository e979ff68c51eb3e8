"""Whether the transfer that a payer's slip tells of came to us, and whether somebody showed it before.

A slip is no proof of payment: anybody can draw one. What counts is the bank's word, a receipt.
"""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

import banks
from core import origin, slips
from core.slips import Slip, WalletSlip
from core.tlv import BadPayload
from receipts import joining
from receipts.models import Kind, Receipt, SlipCheck

WALLET = "truemoney"
BANKS = ["sandbox", *banks.LIVE]
BEFORE = 20


class NotASlip(Exception):
    """The text is not the mini-QR of a slip; the message is a sentence for staff."""


@dataclass(frozen=True, slots=True)
class Checked:
    """id: of the SlipCheck. sending_bank: three digits, or truemoney.

    receipt: None if we have not heard of the transfer. reversal: the bank's word that it took this money
    back. before: to whom the slip was shown earlier, newest first, at most BEFORE of them.
    """

    id: int
    sending_bank: str
    transaction_id: str
    shown_for: str | None
    receipt: Receipt | None
    reversal: Receipt | None
    before: list[SlipCheck]


def check(payload: str, *, shown_for: str | None, by: str, now: datetime) -> Checked:
    """Look a slip up and note that `by` of staff was shown it. Raises NotASlip; then nothing is noted."""
    bank, transaction_id = read(payload)
    receipt = receipt_of(bank, transaction_id)
    # Noted before it is looked up: of two who are shown it at once, one at least is told of the other.
    noted = SlipCheck.objects.create(
        sending_bank=bank,
        transaction_id=transaction_id,
        receipt=receipt,
        shown_for=shown_for,
        by=by,
        at=now,
        request_id=origin.current().request_id,
    )
    others = SlipCheck.objects.filter(sending_bank=bank, transaction_id=transaction_id).exclude(pk=noted.pk)
    before = list(others.order_by("-at", "-id")[:BEFORE])
    return Checked(noted.pk, bank, transaction_id, shown_for, receipt, _reversal(receipt), before)


def read(payload: str) -> tuple[str, str]:
    """Who sent the money and what they call the transfer. Raises NotASlip."""
    try:
        slip: Slip | WalletSlip = slips.parse_slip(payload.strip())
    except BadPayload as fault:
        raise NotASlip(_in_words(payload, fault)) from None
    sending_bank = WALLET if isinstance(slip, WalletSlip) else slip.sending_bank
    return sending_bank, slip.transaction_id


def likeliest(texts: list[str]) -> str:
    """The one that is a slip, of what was read off a picture; else the first."""
    for text in texts:
        try:
            read(text)
        except NotASlip:
            continue
        return text
    return texts[0]


def _in_words(payload: str, fault: BadPayload) -> str:
    if payload.strip().startswith("000201"):
        return "This is a code to pay with, not the mini-QR of a slip. It says nothing about a transfer."
    if str(fault) == "wrong checksum":
        return (
            "The checksum is wrong: no bank made this text as it stands. It was typed wrongly, cut short "
            "or altered. It proves nothing."
        )
    return f"This is not the mini-QR of a Thai slip: {fault}."


def receipt_of(sending_bank: str, transaction_id: str) -> Receipt | None:
    """By what the slip calls the transfer, or the bank's own id of it; never one that another bank sent."""
    # Each arm says what its index wants to hear.
    named = Q(slip_reference=transaction_id) & ~Q(slip_reference="")
    named |= Q(bank__in=BANKS, bank_transaction_id=transaction_id)
    named |= Q(bank__in=BANKS, also_known_as=transaction_id) & ~Q(also_known_as="")
    sender = Q() if sending_bank == WALLET else Q(payer_bank_code__in=["", sending_bank])
    found = Receipt.objects.filter(named, sender, kind=Kind.CREDIT).select_related("payment", "merchant")
    receipt: Receipt | None = found.order_by("received_at", "id").first()
    return receipt


def _reversal(receipt: Receipt | None) -> Receipt | None:
    if receipt is None:
        return None
    found = (joining.named(receipt.bank, name, Kind.REVERSAL) for name in receipt.names)
    return next((reversal for reversal in found if reversal is not None), None)
