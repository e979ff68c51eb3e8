"""Check whether the transfer on a payer's slip arrived, and whether the slip was shown before.

A slip is no proof of payment, because anybody can draw one. Only a bank transaction is.
"""

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Q
from django.utils.translation import gettext as _

import banks
from core import plain_text, request_context, slips
from core.slips import Slip, WalletSlip
from core.tlv import BadPayload
from reconciliation.models import BankTransaction, BankTransactionKind, SlipCheck

TRUEMONEY = "truemoney"
BANKS_WITH_SLIPS = ["sandbox", *banks.LIVE_BANKS]
MAX_EARLIER_CHECKS = 20


PAYMENT_CODE_START = "000201"
"""The first field of every payment code."""


class InvalidSlip(Exception):
    """The text is not the mini-QR of a slip; the message tells staff why."""


def check(bank: str, transaction_id: str, *, claimed_payment_id: str | None, now: datetime) -> SlipCheck:
    """Look up a slip and record that it was shown."""
    found: SlipCheck = SlipCheck.objects.create(
        sending_bank=bank,
        transaction_id=transaction_id,
        movement=find_transaction(bank, transaction_id),
        claimed_payment_id=claimed_payment_id,
        checked_at=now,
        **request_context.columns(),
    )
    return found


def earlier_checks(slip_check: SlipCheck) -> list[SlipCheck]:
    """Of the same slip, newest first.

    Called after this one is recorded: of two people who check a slip at once, at least one sees the other's.
    """
    same = SlipCheck.objects.filter(
        sending_bank=slip_check.sending_bank, transaction_id=slip_check.transaction_id
    )
    return list(same.exclude(pk=slip_check.pk).order_by("-checked_at", "-id")[:MAX_EARLIER_CHECKS])


def parse_slip(texts: Iterable[str]) -> tuple[str, str]:
    """The sending bank and its transaction id, of the first text that is a slip.

    Raises InvalidSlip, about the first text if there are several.
    """
    refusals = []
    for text in texts:
        try:
            slip: Slip | WalletSlip = slips.parse_slip(plain_text.visible(text).strip())
        except BadPayload as error:
            refusals.append(_explain(text, error))
            continue
        return TRUEMONEY if isinstance(slip, WalletSlip) else slip.sending_bank, slip.transaction_id
    raise InvalidSlip(refusals[0])


def _explain(payload: str, error: BadPayload) -> str:
    if plain_text.visible(payload).startswith(PAYMENT_CODE_START):
        return _("This is a payment QR code, not the mini-QR of a slip. It does not prove a transfer.")
    if str(error) == "wrong checksum":
        return _("The checksum is wrong: the text was mistyped, cut or changed. It is no proof of payment.")
    return _("This is not the mini-QR of a Thai slip: %(error)s.") % {"error": error}


def find_transaction(sending_bank: str, transaction_id: str) -> BankTransaction | None:
    """By the slip reference or the bank's id of the transfer; never a credit that another bank sent."""
    # Each part repeats the condition of its partial index.
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
