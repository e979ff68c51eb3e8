"""What a merchant is told about a payer's slip: what banks say of its transfer. Nothing is credited.

A merchant learns nothing about money of others: of a transfer to somebody else it gets `wrong_receiver`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import banks
from core.thai.slips import Slip
from merchants.models import Merchant
from payments.models import Payment, PaymentStatus
from reconciliation.matching import deduplication, match_rules
from reconciliation.models import (
    BankTransaction,
    BankTransactionKind,
    MatchResult,
    ReportSource,
    ResolutionState,
    SlipCheck,
    SlipVerdict,
)
from reconciliation.slips import checking
from reconciliation.slips.checking import BankCheckFailed, InvalidSlip

# Other results wait for a decision.
OF_MATCH_RESULT = {
    MatchResult.APPLIED: SlipVerdict.VALID,
    MatchResult.AMOUNT_MISMATCH: SlipVerdict.WRONG_AMOUNT,
}
WENT_BACK = (ResolutionState.SENT_BACK, ResolutionState.TAKEN_BACK)


@dataclass(frozen=True, slots=True)
class Judgment:
    """A verdict before it is compared with what the merchant expects."""

    verdict: SlipVerdict
    bank: str = ""
    transaction_id: str = ""
    money: BankTransaction | None = None  # for its payment; not stored if only the answer of a bank has it


def judge(merchant: Merchant, texts: Sequence[str], *, now: Callable[[], datetime]) -> Judgment:
    """Look for the transfer of a slip, and ask the merchant's bank if none is reported.

    texts: of QR codes. The caller opens no transaction.
    """
    try:
        bank, transaction_id = checking.parse_slip(texts)
    except InvalidSlip:
        return Judgment(SlipVerdict.UNREADABLE)
    reported = list(checking.find_transactions(bank, transaction_id))
    if reported:
        # Others can have money with the same id, at other banks.
        own = next((each for each in reported if each.merchant_id == merchant.id), reported[0])
        verdict, money = _of_report(merchant, own)
    else:
        verdict, money = _of_question(merchant, Slip(bank, transaction_id), now)
    return Judgment(verdict, bank, transaction_id, money)


def store(
    judgment: Judgment, *, merchant: Merchant, payment_id: str | None, amount: int | None, now: datetime
) -> SlipCheck:
    """Compare with the payment and the satang that the merchant expects, if it named any, and record it.

    The lock of the payment keeps a second first check out.
    """
    verdict, money, is_first = judgment.verdict, judgment.money, False
    if money is not None:
        Payment.objects.locked(str(money.payment_id))
    if verdict == SlipVerdict.VALID and money is not None:
        # By the payment, because slips can name one transfer by several ids.
        was_valid = SlipCheck.objects.filter(payment=money.payment_id, is_first=True).exists()
        if payment_id not in (None, money.payment_id) or (was_valid and payment_id is None):
            verdict = SlipVerdict.REPEATED
        elif amount not in (None, money.amount):
            verdict = SlipVerdict.WRONG_AMOUNT
        else:
            is_first = not was_valid
    return checking.record(
        judgment.bank,
        judgment.transaction_id,
        bank_transaction=None if money is None or money._state.adding else money,
        claimed_payment_id=payment_id,
        merchant=merchant,
        verdict=verdict,
        payment=None if money is None else money.payment,
        is_first=is_first,
        now=now,
    )


def _of_report(merchant: Merchant, money: BankTransaction) -> tuple[SlipVerdict, BankTransaction | None]:
    """The verdict about money that a bank has reported."""
    payment = money.payment
    if payment is None or payment.merchant_id != merchant.id:
        # Without a merchant, its reference is unknown.
        is_own = payment is None and merchant.has_biller(money.bank, money.biller_id)
        return SlipVerdict.UNKNOWN if is_own else SlipVerdict.WRONG_RECEIVER, None
    if (
        money.resolution_state in WENT_BACK
        or payment.status == PaymentStatus.REFUNDED
        or deduplication.counterpart(money) is not None
    ):
        return SlipVerdict.NOT_FOUND, money
    result = MatchResult.APPLIED if money.is_credited else MatchResult(money.match_result)
    return OF_MATCH_RESULT.get(result, SlipVerdict.UNKNOWN), money


def _of_question(
    merchant: Merchant, slip: Slip, now: Callable[[], datetime]
) -> tuple[SlipVerdict, BankTransaction | None]:
    """The verdict about a transfer that nobody has reported, by the answer of the merchant's bank."""
    if slip.sending_bank == checking.TRUEMONEY or not banks.supports_slip_lookup(merchant.bank):
        return SlipVerdict.UNKNOWN, None
    try:
        answer = checking.look_up(merchant, merchant.bank, slip, now=now)
    except BankCheckFailed:
        return SlipVerdict.UNKNOWN, None
    transfer, payment = answer.transfer, answer.payment
    if transfer is None:  # the other bank of the merchant may have got it
        return SlipVerdict.UNKNOWN if merchant.bank_changed_at else SlipVerdict.NOT_FOUND, None
    if payment is None or payment.merchant_id != merchant.id:
        is_own = payment is None and merchant.has_biller(merchant.bank, transfer.biller_id)
        return SlipVerdict.UNKNOWN if is_own else SlipVerdict.WRONG_RECEIVER, None
    money = BankTransaction(
        kind=BankTransactionKind.CREDIT,
        source=ReportSource.INQUIRY,
        amount=transfer.amount,
        paid_at=transfer.transferred_at,
        received_at=now(),
        payment=payment,
    )
    return OF_MATCH_RESULT.get(match_rules.result_for(money, payment), SlipVerdict.UNKNOWN), money
