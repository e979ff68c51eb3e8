from typing import Annotated, TypedDict

from core import failures, money
from core.clock import iso, iso_or_none
from core.http import objects
from core.thai import thaibanks
from core.thai.thaibanks import Bank
from transfers.models import MAX_NAME_LENGTH
from withdrawals.models import Withdrawal, WithdrawalPendingReason, WithdrawalStatus

MAX_REFERENCE_LENGTH = 35


class WithdrawalObject(TypedDict):
    withdrawal_id: objects.WithdrawalId
    status: Annotated[str, objects.one_of(WithdrawalStatus)]
    awaiting_approval: Annotated[bool, "A pending withdrawal waits until the operator approves it."]
    pending_reason: Annotated[
        str | None,
        objects.one_of(WithdrawalPendingReason),
        "`negative_balance`: a bank reversed money, and nothing is sent until the debt is paid.",
    ]
    amount: objects.Amount
    amount_display: objects.AmountDisplay
    currency: objects.Currency
    bank_code: Annotated[str, {"pattern": "^[0-9]{3}$"}, "The bank's 3-digit code."]
    bank_name: Annotated[str, objects.up_to(100)]
    bank_account: Annotated[str, {"pattern": "^[0-9]{4}$"}, "The last 4 digits."]
    account_name: Annotated[str, objects.up_to(MAX_NAME_LENGTH)]
    reference: Annotated[str | None, objects.up_to(MAX_REFERENCE_LENGTH)]
    payout_night: Annotated[
        str | None, objects.Schema(format="date"), "Of a nightly payout: its day in Bangkok. Otherwise null."
    ]
    failure_code: Annotated[str | None, objects.up_to(40), failures.described(failures.OF_WITHDRAWALS)]
    bank_reference: Annotated[str | None, objects.up_to(64), "The bank's own id."]
    metadata: objects.Metadata | None
    created_at: objects.Instant
    updated_at: objects.Instant
    completed_at: Annotated[objects.Instant | None, "When the money arrived; kept if the bank returned it."]


def withdrawal_object(withdrawal: Withdrawal, *, is_held: bool = False) -> WithdrawalObject:
    """Return the API object, which is also `data` of withdrawal events. It has 4 digits of the account."""
    bank = thaibanks.find(withdrawal.bank_code)
    return {
        "withdrawal_id": withdrawal.id,
        "status": withdrawal.status,
        "awaiting_approval": withdrawal.awaiting_approval,
        "pending_reason": WithdrawalPendingReason.NEGATIVE_BALANCE if is_held else None,
        "amount": withdrawal.amount,
        "amount_display": money.with_code(withdrawal.amount),
        "currency": withdrawal.currency,
        "bank_code": withdrawal.bank_code,
        "bank_name": withdrawal.bank_code if bank is None else bank.name,
        "bank_account": withdrawal.account_last4,
        "account_name": withdrawal.account_name,
        "reference": withdrawal.reference,
        "payout_night": str(withdrawal.payout_night) if withdrawal.payout_night else None,
        "failure_code": withdrawal.failure_code,
        "bank_reference": withdrawal.bank_reference,
        "metadata": withdrawal.metadata,
        "created_at": iso(withdrawal.created_at),
        "updated_at": iso(withdrawal.updated_at),
        "completed_at": iso_or_none(withdrawal.completed_at),
    }


class AccountDigits(TypedDict):
    """How many digits an account number of the bank has."""

    min: Annotated[int, objects.between(thaibanks.MIN_DIGITS, thaibanks.MAX_DIGITS)]
    max: Annotated[int, objects.between(thaibanks.MIN_DIGITS, thaibanks.MAX_DIGITS)]


class BankObject(TypedDict):
    """A bank in Thailand."""

    bank_code: Annotated[str, {"pattern": "^[0-9]{3}$"}]
    short_name: Annotated[
        str, objects.up_to(10), "As banking apps show it. `bank_code` of a request takes it too."
    ]
    name: Annotated[str, objects.up_to(100), "In English."]
    name_th: Annotated[str, objects.up_to(100), "In Thai."]
    account_digits: AccountDigits


class BankList(TypedDict):
    """All banks, by code."""

    banks: list[BankObject]


def bank_object(bank: Bank) -> BankObject:
    shortest, longest = bank.digits
    return {
        "bank_code": bank.code,
        "short_name": bank.alias.upper(),
        "name": bank.name,
        "name_th": bank.name_th,
        "account_digits": {"min": shortest, "max": longest},
    }
