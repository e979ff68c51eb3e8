from typing import Annotated, TypedDict

from core.clock import iso
from core.console.personal_data import masked_name
from core.http.objects import AmountDisplay, Instant, PaymentId, SlipId, one_of, satang, up_to
from core.money import display as baht
from reconciliation.models import BankTransaction, SlipCheck, SlipVerdict


class SlipObject(TypedDict):
    """What banks say about the transfer on a payer's slip. It credits nothing."""

    slip_id: SlipId
    verdict: Annotated[
        str,
        one_of(SlipVerdict),
        "`valid`: a bank has the transfer, it is for your payment, its amount is right, and the slip was not "
        "valid before for another order. `repeated`: the money is of another payment than the named one, or "
        "the slip was valid before and no payment is named. `wrong_amount`. `wrong_receiver`: the money is "
        "not for you. `not_found`: the bank has no such transfer, or the money went back. `unreadable`: no "
        "mini-QR of a slip. `unknown`: the bank does not answer, or the money waits for a decision.",
    ]
    payment_id: Annotated[PaymentId | None, "Your payment that the money is for."]
    bank: Annotated[str | None, up_to(20), "The payer's bank: three digits, or `truemoney`."]
    transferred_at: Annotated[Instant | None, "The bank's time. Null without `payment_id`."]
    amount: Annotated[int | None, satang(1), "Satang. Null without `payment_id`."]
    amount_display: AmountDisplay | None
    payer: Annotated[str | None, up_to(140), "First letters of the payer's name, if the bank reported it."]


def slip_object(slip_check: SlipCheck, money: BankTransaction | None) -> SlipObject:
    """money: for the payment of the check, or None."""
    return {
        "slip_id": slip_check.id,
        "verdict": slip_check.verdict,
        "payment_id": slip_check.payment_id,
        "bank": slip_check.sending_bank or None,
        "transferred_at": None if money is None else iso(money.paid_at),
        "amount": None if money is None else money.amount,
        "amount_display": None if money is None else baht(money.amount),
        "payer": None if money is None else masked_name(money.payer_name) or None,
    }
