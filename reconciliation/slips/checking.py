"""Check whether the transfer on a payer's slip arrived, and whether the slip was shown before.

A slip is no proof of payment, because anybody can draw one. Only a bank transaction is.

The bank of a merchant can be asked about a transfer that no bank has reported. Its answer credits nothing. If
the money is for one of our codes, an ordinary inquiry about that code follows, and only its answer counts.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

import banks
from banks import InquiryFailed, SlipLookup, SlipTransfer, UnknownBank, UnreadableMessage
from core import ids, plain_text, request_context
from core.http import rate_limits
from core.http.rate_limits import RateLimit
from core.thai import slips
from core.thai.slips import Slip, WalletSlip
from core.thai.tlv import BadPayload
from core.vault import CannotOpen
from merchants import bank_connections
from merchants.models import Merchant
from payments.models import Payment
from reconciliation.inquiries import rate_limit
from reconciliation.inquiries.scan import OPEN_STATUSES
from reconciliation.models import BankTransaction, BankTransactionKind, Inquiry, SlipCheck

log = logging.getLogger("reconciliation")
TRUEMONEY = "truemoney"
BANKS_WITH_SLIPS = ["sandbox", *banks.LIVE_BANKS]
MAX_EARLIER_CHECKS = 20
# Of one merchant. All merchants of a bank share its time for slips.
QUESTION_RATE = RateLimit(per_second=0.2, burst=5)
PAYMENT_CODE_START = "000201"  # the first field of every payment code


class InvalidSlip(Exception):
    """The text is not the mini-QR of a slip; the message tells staff why."""


def record(bank: str, transaction_id: str, *, now: datetime, **fields: Any) -> SlipCheck:
    """Store a check of a slip by the actor of the context."""
    found: SlipCheck = SlipCheck.objects.create(
        id=ids.new("slp_", now),
        sending_bank=bank,
        transaction_id=transaction_id,
        checked_at=now,
        **fields,
        **request_context.columns(),
    )
    return found


def delete_old(before: datetime, *, batch: int = 1_000) -> int:
    """Delete the checks from before then, but no first valid one of a payment. Returns how many."""
    old, total = SlipCheck.objects.filter(is_first=False, checked_at__lt=before).order_by("checked_at"), 0
    while found := list(old.values_list("pk", flat=True)[:batch]):
        total += SlipCheck.objects.filter(pk__in=found).delete()[0]
    return total


def earlier_checks(slip_check: SlipCheck) -> list[SlipCheck]:
    """Of the same slip, newest first.

    Called after this one is recorded: of two people who check a slip at once, at least one sees the other's.
    """
    same = SlipCheck.objects.filter(
        sending_bank=slip_check.sending_bank, transaction_id=slip_check.transaction_id
    )
    return list(same.exclude(pk=slip_check.pk).order_by("-checked_at", "-id")[:MAX_EARLIER_CHECKS])


def parse_slip(texts: Iterable[str]) -> tuple[str, str]:
    """The bank and its id of the first text that is a slip. Raises InvalidSlip, about the first text."""
    refusals = []
    for text in texts:
        try:
            slip: Slip | WalletSlip = slips.parse_slip(plain_text.visible(text).strip())
        except BadPayload as error:
            refusals.append(_explain(text, error))
            continue
        return TRUEMONEY if isinstance(slip, WalletSlip) else slip.sending_bank, slip.transaction_id
    raise InvalidSlip(*refusals[:1])


def _explain(payload: str, error: BadPayload) -> str:
    if plain_text.visible(payload).startswith(PAYMENT_CODE_START):
        return _("This is a payment QR code, not the mini-QR of a slip. It does not prove a transfer.")
    if str(error) == "wrong checksum":
        return _("The checksum is wrong: the text was mistyped, cut or changed. It is no proof of payment.")
    return _("This is not the mini-QR of a Thai slip: %(error)s.") % {"error": error}


def find_transactions(sending_bank: str, transaction_id: str) -> "QuerySet[BankTransaction]":
    """By the slip reference or the bank's id of the transfer, the oldest first; of no other sending bank."""
    # Each part repeats the condition of its partial index.
    condition = Q(slip_reference=transaction_id) & ~Q(slip_reference="")
    condition |= Q(bank__in=BANKS_WITH_SLIPS, bank_reference=transaction_id)
    condition |= Q(bank__in=BANKS_WITH_SLIPS, later_bank_reference=transaction_id) & ~Q(
        later_bank_reference=""
    )
    sender = Q() if sending_bank == TRUEMONEY else Q(payer_bank_code__in=["", sending_bank])
    found = BankTransaction.objects.filter(condition, sender, kind=BankTransactionKind.CREDIT).select_related(
        "payment", "merchant"
    )
    return found.order_by("received_at", "id")


class BankCheckFailed(Exception):
    """There is no answer; the message tells staff why."""


@dataclass(frozen=True, slots=True)
class BankCheckResult:
    """What the bank of a merchant knows about a slip."""

    merchant: Merchant
    transfer: SlipTransfer | None  # None: the bank knows none
    payment: Payment | None = None  # what the money is for, if it is ours
    is_inquiry_scheduled: bool = False  # an inquiry about the payment is due now


def bank_for(payment_or_merchant_id: str) -> tuple[Merchant, str] | None:
    """The merchant, or that of the payment, and the bank of its code, if this bank can look up slips."""
    paid = Payment.objects.select_related("merchant", "qr_code").filter(pk=payment_or_merchant_id).first()
    merchant = paid.merchant if paid else Merchant.objects.filter(pk=payment_or_merchant_id).first()
    if merchant is None:
        return None
    bank = paid.qr_code.bank if paid and paid.qr_code_id else merchant.bank
    return (merchant, bank) if banks.supports_slip_lookup(bank) else None


def ask_bank(
    slip_check: SlipCheck, *, payment_or_merchant_id: str, now: Callable[[], datetime]
) -> BankCheckResult:
    """Ask the bank of this payment or merchant. Raises BankCheckFailed."""
    found = bank_for(payment_or_merchant_id)
    if found is None or slip_check.sending_bank == TRUEMONEY:  # banks know no slips of wallets
        raise BankCheckFailed(
            _("No bank can be asked: enter a payment or a merchant whose bank can look up slips.")
        )
    if find_transactions(slip_check.sending_bank, slip_check.transaction_id):
        raise BankCheckFailed(_("The bank has reported this transfer meanwhile: check the slip again."))
    return look_up(*found, Slip(slip_check.sending_bank, slip_check.transaction_id), now=now)


def look_up(merchant: Merchant, bank: str, slip: Slip, *, now: Callable[[], datetime]) -> BankCheckResult:
    """Ask a bank of a merchant, which can look up slips, within its rate limit. Raises BankCheckFailed."""
    transfer = _request_transfer(merchant, bank, slip)
    payment: Payment | None = None
    if transfer is not None:
        found = Payment.objects.filter(qr_code__reference1=transfer.reference1, qr_code__bank=bank)
        if transfer.biller_id:
            found = found.filter(qr_code__biller_id=transfer.biller_id)
        payment = found.select_related("merchant").first()
    if payment is None or payment.status not in OPEN_STATUSES:
        return BankCheckResult(merchant, transfer, payment)
    at = now()
    due, new = {"due_at": at}, {"due_at": at, "bank": bank, "created_at": at}
    Inquiry.objects.update_or_create(payment=payment, defaults=due, create_defaults=new)
    return BankCheckResult(merchant, transfer, payment, is_inquiry_scheduled=True)


def _request_transfer(merchant: Merchant, bank: str, slip: Slip) -> SlipTransfer | None:
    try:
        adapter = banks.get(bank, bank_connections.credentials_of(merchant.id, bank))
        assert isinstance(adapter, SlipLookup), "`bank_for` checks this"
        room = rate_limits.consume(f"slip-questions:{merchant.id}", QUESTION_RATE)
        if room is not None and not room.allowed:
            raise rate_limit.BankBusy
        with rate_limit.exclusive_call(bank, is_about_slip=True):
            return adapter.look_up_slip(slip)
    except (UnknownBank, CannotOpen):
        log.error("the bank of merchant %s cannot be asked", merchant.id)
        text = _("The bank cannot be asked: its connection is not set up correctly.")
    except rate_limit.BankBusy:
        text = _("The bank is busy with other inquiries: try again in a moment.")
    except InquiryFailed:
        text = _("The bank did not answer: try again in a moment. A slip alone is no proof of payment.")
    except UnreadableMessage:
        text = _("The bank's answer cannot be read. A slip alone is no proof of payment.")
    raise BankCheckFailed(text)
