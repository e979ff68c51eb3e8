"""Whether the transfer that a payer's slip tells of came to us, and whether somebody showed it before.

A slip is no proof of payment: anybody can draw one. What counts is the bank's word, a bank transaction.
"""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

import banks
from core import request_context, slips
from core.slips import Slip, WalletSlip
from core.tlv import BadPayload
from reconciliation.matching import deduplication
from reconciliation.models import BankTransaction, BankTransactionKind, SlipCheck

TRUEMONEY = "truemoney"
BANKS_WITH_SLIPS = ["sandbox", *banks.LIVE_BANKS]
MAX_EARLIER_CHECKS = 20


class InvalidSlip(Exception):
    """The text is not the mini-QR of a slip; the message is a sentence for staff."""


@dataclass(frozen=True, slots=True)
class SlipCheckResult:
    """id: of the SlipCheck. sending_bank: three digits, or truemoney.

    movement: None if we have not heard of the transfer. reversal: the bank's word that it took this money
    back. before: to whom the slip was shown earlier, newest first, at most BEFORE of them.
    """

    id: int
    sending_bank: str
    transaction_id: str
    claimed_payment_id: str | None
    movement: BankTransaction | None
    reversal: BankTransaction | None
    earlier_checks: list[SlipCheck]


def check(payload: str, *, claimed_payment_id: str | None, now: datetime) -> SlipCheckResult:
    """Look a slip up and note that `by` of staff was shown it. Raises InvalidSlip; then nothing is noted."""
    bank, transaction_id = parse_slip(payload)
    movement = find_transaction(bank, transaction_id)
    cause = request_context.current()
    # Noted before it is looked up: of two who are shown it at once, one at least is told of the other.
    slip_check = SlipCheck.objects.create(
        sending_bank=bank,
        transaction_id=transaction_id,
        movement=movement,
        claimed_payment_id=claimed_payment_id,
        checked_at=now,
        actor=cause.actor,
        request_id=cause.request_id,
    )
    others = SlipCheck.objects.filter(sending_bank=bank, transaction_id=transaction_id).exclude(
        pk=slip_check.pk
    )
    earlier = list(others.order_by("-checked_at", "-id")[:MAX_EARLIER_CHECKS])
    return SlipCheckResult(
        slip_check.pk, bank, transaction_id, claimed_payment_id, movement, _find_reversal(movement), earlier
    )


def parse_slip(payload: str) -> tuple[str, str]:
    """Who sent the money and what they call the transfer. Raises InvalidSlip."""
    try:
        slip: Slip | WalletSlip = slips.parse_slip(payload.strip())
    except BadPayload as error:
        raise InvalidSlip(_explain(payload, error)) from None
    sending_bank = TRUEMONEY if isinstance(slip, WalletSlip) else slip.sending_bank
    return sending_bank, slip.transaction_id


def pick_slip(texts: list[str]) -> str:
    """The one that is a slip, of what was read off a picture; else the first."""
    for text in texts:
        try:
            parse_slip(text)
        except InvalidSlip:
            continue
        return text
    return texts[0]


def _explain(payload: str, error: BadPayload) -> str:
    if payload.strip().startswith("000201"):
        return "This is a code to pay with, not the mini-QR of a slip. It says nothing about a transfer."
    if str(error) == "wrong checksum":
        return (
            "The checksum is wrong: no bank made this text as it stands. It was typed wrongly, cut short "
            "or altered. It proves nothing."
        )
    return f"This is not the mini-QR of a Thai slip: {error}."


def find_transaction(sending_bank: str, transaction_id: str) -> BankTransaction | None:
    """By what the slip calls the transfer, or the bank's own id of it; never one that another bank sent."""
    # Each arm says what its index wants to hear.
    condition = Q(slip_reference=transaction_id) & ~Q(slip_reference="")
    condition |= Q(bank__in=BANKS_WITH_SLIPS, bank_transaction_id=transaction_id)
    condition |= Q(bank__in=BANKS_WITH_SLIPS, later_bank_transaction_id=transaction_id) & ~Q(
        later_bank_transaction_id=""
    )
    sender = Q() if sending_bank == TRUEMONEY else Q(payer_bank_code__in=["", sending_bank])
    found = BankTransaction.objects.filter(condition, sender, kind=BankTransactionKind.CREDIT).select_related(
        "payment", "merchant"
    )
    movement: BankTransaction | None = found.order_by("received_at", "id").first()
    return movement


def _find_reversal(movement: BankTransaction | None) -> BankTransaction | None:
    if movement is None:
        return None
    found = (
        deduplication.find_by_bank_id(movement.bank, name, BankTransactionKind.REVERSAL)
        for name in movement.bank_transaction_ids
    )
    return next((reversal for reversal in found if reversal is not None), None)
