"""The balance, and what changed it."""

from dataclasses import dataclass
from datetime import datetime

from thaiqr.decoding import Model


@dataclass(frozen=True, kw_only=True)
class Balance(Model):
    """Satang. `owed`, `unconfirmed` and `pending_settlement` are absent in the answer when they are zero."""

    available: int
    reserved: int
    currency: str
    owed: int = 0
    unconfirmed: int = 0
    pending_settlement: int = 0


@dataclass(frozen=True, kw_only=True)
class BalanceTransaction(Model):
    """One change of the balance, with the balance after it. `source`: the id of what caused it."""

    balance_transaction_id: str
    type: str
    amount: int
    amount_display: str
    balance_after: int
    reserved_amount: int
    reserved_after: int
    unconfirmed_amount: int
    unconfirmed_after: int
    pending_settlement_amount: int
    pending_settlement_after: int
    currency: str
    source: str
    created_at: datetime
