"""Ask a merchant's bank about the transfer that a slip names, where we have not heard of it.

What it says is no notice. If the money is for a code of ours, the bank is asked about that code as it always
is, and what it says then comes in by the door of all notices.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import banks
from banks import KnowsSlips, NotAnswered, Transferred, UnknownBank, Unreadable
from core.crypto import CannotOpen
from core.slips import Slip
from merchants import links
from merchants.models import Merchant
from payments.models import Payment
from receipts import slips, turns
from receipts.enrolment import OPEN
from receipts.models import Inquiry, SlipCheck

log = logging.getLogger("receipts")


class NotAsked(Exception):
    """There is no answer; the message is a sentence for staff."""


@dataclass(frozen=True, slots=True)
class Told:
    """transfer: None if the bank knows none. payment: whose code it is for, if that is ours.

    is_asked_about: the bank is to be asked about that code now, as if that had come due.
    """

    merchant: Merchant
    transfer: Transferred | None
    payment: Payment | None = None
    is_asked_about: bool = False


def can_be_asked(sending_bank: str) -> bool:
    """Banks know the slips of banks."""
    return sending_bank != slips.WALLET


def merchant_of(given: str) -> Merchant | None:
    """Of a payment or a merchant by its id: one whose bank can be asked about slips."""
    payment = Payment.objects.select_related("merchant").filter(pk=given).first()
    merchant: Merchant | None = payment.merchant if payment else Merchant.objects.filter(pk=given).first()
    return merchant if merchant is not None and banks.knows_slips(merchant.bank) else None


def ask(shown: SlipCheck, *, of: str, now: Callable[[], datetime]) -> Told:
    """of: the id of a payment or a merchant, whose bank is asked. One call, within the bank's rate.

    Raises NotAsked.
    """
    merchant = merchant_of(of)
    if merchant is None or not can_be_asked(shown.sending_bank):
        raise NotAsked("Nobody can be asked: name a payment or a merchant whose bank knows slips.")
    if slips.receipt_of(shown.sending_bank, shown.transaction_id) is not None:
        raise NotAsked("The bank has told of this transfer meanwhile: check the slip again.")
    transfer = _asked(merchant, Slip(shown.sending_bank, shown.transaction_id))
    payment = _paid(merchant, transfer) if transfer else None
    if payment is None or payment.status not in OPEN:
        return Told(merchant, transfer, payment)
    _ask_about(payment, now())
    return Told(merchant, transfer, payment, is_asked_about=True)


def _asked(merchant: Merchant, slip: Slip) -> Transferred | None:
    try:
        adapter = banks.get(merchant.bank, links.of(merchant.id))
        assert isinstance(adapter, KnowsSlips), "merchant_of has looked"
        with turns.of(merchant.bank):
            return adapter.transfer(slip)
    except (UnknownBank, CannotOpen):
        log.error("the bank of merchant %s cannot be asked", merchant.id)
        raise NotAsked("The bank cannot be asked: its link is not in order.") from None
    except turns.Busy:
        raise NotAsked("The bank is being asked about other money: try again in a moment.") from None
    except NotAnswered:
        raise NotAsked(
            "The bank did not answer: try again in a moment. The slip alone proves nothing."
        ) from None
    except Unreadable:
        raise NotAsked("The bank's answer cannot be read. The slip alone proves nothing.") from None


def _paid(merchant: Merchant, transfer: Transferred) -> Payment | None:
    """The payment whose code this money is for: one at the bank that was asked."""
    found = Payment.objects.filter(qr_code__reference1=transfer.reference1, merchant__bank=merchant.bank)
    if transfer.biller_id:
        found = found.filter(qr_code__biller_id=transfer.biller_id)
    payment: Payment | None = found.select_related("merchant").first()
    return payment


def _ask_about(payment: Payment, now: datetime) -> None:
    known = {"due_at": now}
    born = known | {"bank": payment.merchant.bank, "created_at": now}
    Inquiry.objects.update_or_create(payment=payment, defaults=known, create_defaults=born)
