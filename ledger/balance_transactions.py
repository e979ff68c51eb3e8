"""Which postings change a merchant's balance, and how. `GET /balance/transactions` lists them.

A balance has four parts: `available` less the debt, `reserved`, `unconfirmed` and `unsettled`. The type of a
balance transaction fixes the signs of its changes. So the sums by type up to a row give the balance after it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from core import ids
from counts import running_sums
from counts.lists import CountedList
from ledger import accounts
from ledger.journal_types import BalanceTransactionType as Type, JournalType
from ledger.models import AccountType, BalanceTransaction

BALANCE_TRANSACTIONS = CountedList(
    "balance",
    BalanceTransaction,
    kind_columns=("type",),
    kinds=tuple(Type.values),
    amount_sql="amount",
    is_merged=True,
)


class Change(NamedTuple):
    """Satang by part of the balance. `available` is without the debt and may be negative as a sum."""

    available: int
    reserved: int = 0
    unconfirmed: int = 0
    unsettled: int = 0


SIGNS: dict[str, Change] = {
    Type.PAYMENT: Change(1),
    Type.UNCONFIRMED_PAYMENT: Change(0, unconfirmed=1),
    Type.UNSETTLED_PAYMENT: Change(0, unsettled=1),
    Type.FEE: Change(-1),
    Type.UNSETTLED_FEE: Change(0, unsettled=-1),
    Type.FEE_ADDED: Change(-1),
    Type.FEE_RETURNED: Change(1),
    Type.SETTLED: Change(1, unsettled=-1),
    Type.UNSETTLED: Change(-1, unsettled=1),
    Type.CONFIRMED: Change(1, unconfirmed=-1),
    Type.REFUND_RESERVED: Change(-1, reserved=1),
    Type.REFUND_PAID: Change(0, reserved=-1),
    Type.REFUND_RELEASED: Change(1, reserved=-1),
    Type.REFUND_RETURNED: Change(1),
    Type.WITHDRAWAL_RESERVED: Change(-1, reserved=1),
    Type.WITHDRAWAL_PAID: Change(0, reserved=-1),
    Type.WITHDRAWAL_RELEASED: Change(1, reserved=-1),
    Type.WITHDRAWAL_RETURNED: Change(1),
    Type.REVERSAL: Change(-1),
    Type.UNCONFIRMED_REVERSAL: Change(0, unconfirmed=-1),
}
# Where the type differs from that of the journal, by the only account of the merchant if there is one. A
# repaid debt changes neither the net nor the rest.
_OTHER_TYPES: dict[tuple[JournalType, AccountType | None], Type | None] = {
    (JournalType.PAYMENT, AccountType.UNCONFIRMED): Type.UNCONFIRMED_PAYMENT,
    (JournalType.PAYMENT, AccountType.UNSETTLED): Type.UNSETTLED_PAYMENT,
    (JournalType.FEE, AccountType.UNSETTLED): Type.UNSETTLED_FEE,
    (JournalType.REVERSAL, AccountType.UNCONFIRMED): Type.UNCONFIRMED_REVERSAL,
    (JournalType.ACCEPTED, AccountType.AVAILABLE): Type.REFUND_RETURNED,
    (JournalType.DEBT_REPAID, None): None,
}


def change_of(row: BalanceTransaction) -> Change:
    """What the row changed."""
    return Change(*(sign * row.amount for sign in SIGNS[row.type]))


def balances_after(merchant_id: str, rows: Sequence[BalanceTransaction]) -> dict[str, Change]:
    """The balance after each of the rows of a merchant, by its id, from one snapshot."""
    found = running_sums.up_to(BALANCE_TRANSACTIONS, merchant_id, rows, SIGNS)
    return {row_id: Change(*sums) for row_id, sums in found.items()}


def columns(
    type: JournalType,
    lines_by_subject: Mapping[str, Mapping[str, int]],
    sources: Mapping[str, str],
    now: datetime,
) -> list[list[Any]]:
    """The new rows of these journals as columns: id, subject, merchant, type, amount, source."""
    rows: list[tuple[Any, ...]] = []
    same = Type(type.value) if type.value in Type.values else None
    for subject_id, amounts in lines_by_subject.items():
        owned = {code: amount for code, amount in amounts.items() if amount and accounts.merchant_id_of(code)}
        only = accounts.type_of(next(iter(owned))) if len(owned) == 1 else None
        shown = _OTHER_TYPES.get((type, only), same)
        if owned and shown:
            owner, changes = accounts.merchant_id_of(next(iter(owned))), owned.values()
            # Into, out of or within the merchant's accounts. The journal may move other money too.
            moved = max(sum(each for each in changes if each > 0), -sum(each for each in changes if each < 0))
            source_id = sources.get(subject_id, subject_id)
            rows.append((ids.new("bal_", now), subject_id, owner, shown, moved, source_id))
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(6)]
