"""Ask a merchant's bank about the transfer on a slip that no bank has reported to us.

The answer credits nothing. If the money is for one of our codes, an ordinary inquiry about that code follows,
and only its answer counts.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

import banks
from banks import InquiryFailed, SlipLookup, SlipTransfer, UnknownBank, UnreadableMessage
from core.slips import Slip
from core.vault import CannotOpen
from merchants import bank_connections
from merchants.models import Merchant
from payments.models import Payment
from reconciliation.inquiries import rate_limit
from reconciliation.inquiries.scan import OPEN_STATUSES
from reconciliation.models import Inquiry, SlipCheck
from reconciliation.slips import checking

log = logging.getLogger("reconciliation")


class BankCheckFailed(Exception):
    """There is no answer; the message tells staff why."""


@dataclass(frozen=True, slots=True)
class BankCheckResult:
    """transfer: None if the bank knows none. payment: the payment that the money is for, if it is ours.

    is_inquiry_scheduled: an inquiry about the payment is due now.
    """

    merchant: Merchant
    transfer: SlipTransfer | None
    payment: Payment | None = None
    is_inquiry_scheduled: bool = False


def merchant_for(payment_or_merchant_id: str) -> Merchant | None:
    """The merchant, or the merchant of the payment, if its bank can look up slips."""
    payment = Payment.objects.select_related("merchant").filter(pk=payment_or_merchant_id).first()
    merchant: Merchant | None = (
        payment.merchant if payment else Merchant.objects.filter(pk=payment_or_merchant_id).first()
    )
    return merchant if merchant is not None and banks.supports_slip_lookup(merchant.bank) else None


def ask_bank(
    slip_check: SlipCheck, *, payment_or_merchant_id: str, now: Callable[[], datetime]
) -> BankCheckResult:
    """Ask the bank of this payment or merchant: one call within the bank's rate limit.

    Raises BankCheckFailed.
    """
    merchant = merchant_for(payment_or_merchant_id)
    if merchant is None or slip_check.sending_bank == checking.TRUEMONEY:  # banks know no slips of wallets
        raise BankCheckFailed(
            _("No bank can be asked: enter a payment or a merchant whose bank can look up slips.")
        )
    if checking.find_transaction(slip_check.sending_bank, slip_check.transaction_id) is not None:
        raise BankCheckFailed(_("The bank has reported this transfer meanwhile: check the slip again."))
    transfer = _request_transfer(merchant, Slip(slip_check.sending_bank, slip_check.transaction_id))
    payment = _find_payment(merchant, transfer) if transfer else None
    if payment is None or payment.status not in OPEN_STATUSES:
        return BankCheckResult(merchant, transfer, payment)
    at = now()
    due, new = {"due_at": at}, {"due_at": at, "bank": payment.merchant.bank, "created_at": at}
    Inquiry.objects.update_or_create(payment=payment, defaults=due, create_defaults=new)
    return BankCheckResult(merchant, transfer, payment, is_inquiry_scheduled=True)


def _request_transfer(merchant: Merchant, slip: Slip) -> SlipTransfer | None:
    try:
        adapter = banks.get(merchant.bank, bank_connections.credentials_of(merchant.id))
        assert isinstance(adapter, SlipLookup), "`merchant_for` checks this"
        with rate_limit.exclusive_call(merchant.bank):
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


def _find_payment(merchant: Merchant, transfer: SlipTransfer) -> Payment | None:
    """The payment that the money is for, of a merchant at the bank that was asked."""
    found = Payment.objects.filter(qr_code__reference1=transfer.reference1, merchant__bank=merchant.bank)
    if transfer.biller_id:
        found = found.filter(qr_code__biller_id=transfer.biller_id)
    payment: Payment | None = found.select_related("merchant").first()
    return payment
