from typing import Any

from core import money, thaibanks
from core.clock import iso, iso_or_none
from withdrawals.models import Withdrawal, WithdrawalPendingReason


def withdrawal_object(withdrawal: Withdrawal, *, is_held: bool = False) -> dict[str, Any]:
    """Return the API object, which is also `data` of withdrawal events. It has 4 digits of the account."""
    bank = thaibanks.find(withdrawal.bank_code)
    return {
        "withdrawal_id": withdrawal.id,
        "status": withdrawal.status,
        "awaiting_approval": withdrawal.awaiting_approval,
        "pending_reason": WithdrawalPendingReason.NEGATIVE_BALANCE if is_held else None,
        "amount": withdrawal.amount,
        "amount_display": money.display(withdrawal.amount),
        "currency": withdrawal.currency,
        "bank_code": withdrawal.bank_code,
        "bank_name": withdrawal.bank_code if bank is None else bank.name,
        "bank_account": withdrawal.account_last4,
        "account_name": withdrawal.account_name,
        "reference": withdrawal.reference,
        "failure_code": withdrawal.failure_code,
        "bank_reference": withdrawal.bank_reference,
        "metadata": withdrawal.metadata,
        "created_at": iso(withdrawal.created_at),
        "updated_at": iso(withdrawal.updated_at),
        "completed_at": iso_or_none(withdrawal.completed_at),
    }
