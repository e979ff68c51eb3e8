"""Where all money is: double entry, in satang. Each function posts one journal; the caller opens the commit.

Money in only appends, so that credits of a busy merchant never queue. Money out locks the account it leaves,
rolls up as many pending entries as it needs, and takes from there. The order of the locks:
`accounts.LOCK_ORDER`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from core import ids
from core.deadlines import Deadline
from core.errors import ServiceUnavailable
from ledger import accounts, postings
from ledger.accounts import WRITE_OFFS
from ledger.errors import InsufficientFunds
from ledger.models import AccountType, JournalType
from ledger.postings import (
    LockedBalance,
    lock_accounts,
    next_pending,
    open_accounts,
    post,
    read_balances,
    roll_up_entries,
    roll_up_newest,
)

# Entries of one commit of a roll-up: the lock of a busy merchant is held for some 50 ms.
ROLL_UP_BATCH = 5_000
# A roll-up stops after so many seconds. The next one goes on.
ROLL_UP_SECONDS = 4.0
# Entries that money out rolls up by one statement, and how many such statements it runs at most: enough for a
# withdrawal of the largest amount that is made up of payments of 40 THB.
ROLL_UP_STEP, MAX_ROLL_UP_STEPS = 1_000, 50
# When the caller may try again where even that was too little. The roll-up runs every five seconds.
RETRY_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Balance:
    """Satang, none negative. `debt` is what a bank took back beyond the balance; credits fill it first.

    `unconfirmed` is money that only an uploaded statement reports. It cannot leave.
    """

    available: int
    reserved: int
    debt: int
    unconfirmed: int = 0


def balance(merchant_id: str, *, before: datetime | None = None) -> Balance:
    """What the merchant has, or had just before that instant; all of it in one snapshot."""
    return _to_balance(merchant_id, read_balances(accounts.of_merchant(merchant_id), before))


def balances(merchant_ids: Collection[str]) -> dict[str, Balance]:
    """What each of these merchants has now, by one statement."""
    found = read_balances(
        [code for merchant_id in merchant_ids for code in accounts.of_merchant(merchant_id)], None
    )
    return {merchant_id: _to_balance(merchant_id, found) for merchant_id in merchant_ids}


def credit(
    *,
    merchant_id: str,
    type: JournalType,
    subject_id: str,
    amount: int,
    source: str,
    now: datetime,
    is_confirmed: bool = True,
) -> None:
    """Money for the merchant, from the account `source`, such as `bank:sandbox`.

    is_confirmed: False for money that only an uploaded statement reports; `confirm` makes it available.
    """
    if accounts.type_of(source) == AccountType.SUSPENSE:
        _lock_funds(source, amount)
    target = accounts.credit_account(merchant_id, is_confirmed=is_confirmed)
    post(type, subject_id, {source: -amount, target: amount}, now)


def confirm(*, merchant_id: str, subject_id: str, amount: int, now: datetime) -> None:
    """Money that only a statement reported becomes available. The subject is its bank transaction."""
    unconfirmed = accounts.unconfirmed(merchant_id)
    _lock_funds(unconfirmed, amount)
    post(
        JournalType.CONFIRMED,
        subject_id,
        {unconfirmed: -amount, accounts.available(merchant_id): amount},
        now,
    )


def reserve(*, merchant_id: str, type: JournalType, subject_id: str, amount: int, now: datetime) -> None:
    """Set money aside for a refund or withdrawal. Raises InsufficientFunds, and then nothing is posted.

    Raises ServiceUnavailable where so many small credits are pending that it would take too long.
    """
    held = _lock_and_roll_up(accounts.available(merchant_id), amount)
    if held.rolled_up - _repay_debt(merchant_id, held, now) < amount:
        if held.is_complete or balance(merchant_id).available < amount:
            raise InsufficientFunds()
        raise ServiceUnavailable(retry_after=RETRY_SECONDS)
    lines = {accounts.available(merchant_id): -amount, accounts.reserved(merchant_id): amount}
    post(type, subject_id, lines, now)


def release(*, merchant_id: str, type: JournalType, subject_id: str, amount: int, now: datetime) -> None:
    """What was reserved is the merchant's again."""
    lines = {accounts.reserved(merchant_id): -amount, accounts.available(merchant_id): amount}
    post(type, subject_id, lines, now)


def pay_out(
    *, merchant_id: str, type: JournalType, subject_id: str, amount: int, to: str, now: datetime
) -> None:
    """What was reserved has left, to the account `to`, such as `bank:sandbox`."""
    post(type, subject_id, {accounts.reserved(merchant_id): -amount, to: amount}, now)


def reverse(
    *, merchant_id: str, type: JournalType, subject_id: str, amount: int, to: str, now: datetime
) -> int:
    """A bank takes back what it had paid in. Returns how much of it the merchant now owes.

    What is pending beyond `MAX_ROLL_UP_STEPS` fills the debt when it is rolled up; `balance` shows the net.
    """
    held = _lock_and_roll_up(accounts.available(merchant_id), amount)
    from_balance = min(amount, held.rolled_up - _repay_debt(merchant_id, held, now))
    lines = {
        accounts.available(merchant_id): -from_balance,
        accounts.debt(merchant_id): from_balance - amount,
        to: amount,
    }
    post(type, subject_id, lines, now)
    return amount - from_balance


def reverse_unconfirmed(
    *, merchant_id: str, type: JournalType, subject_id: str, amount: int, to: str, now: datetime
) -> None:
    """A bank takes back money that nobody has confirmed. Nothing else of the merchant is touched."""
    unconfirmed = accounts.unconfirmed(merchant_id)
    _lock_funds(unconfirmed, amount)
    post(type, subject_id, {unconfirmed: -amount, to: amount}, now)


def lock_debt(*, merchant_id: str, now: datetime) -> int:
    """What the merchant owes, once all that came in has paid for it; satang.

    The balance stays locked until the commit, so that no reversal comes in between.
    """
    held = _lock_and_roll_up(accounts.available(merchant_id), 0)
    return -held.debt - _repay_debt(merchant_id, held, now)


def debts() -> dict[str, int]:
    """Satang by merchant of all whose balance is negative."""
    return postings.read_debts()


def hold(*, subject_id: str, amount: int, source: str, now: datetime) -> None:
    """Money that is nobody's yet waits for staff."""
    post(JournalType.HELD, subject_id, {source: -amount, accounts.suspense_for(source): amount}, now)


def accept(*, merchant_id: str, subject_id: str, amount: int, held_from: str, now: datetime) -> None:
    """What was held becomes the merchant's, for no payment: money of a refund that `held_from` sent back."""
    credit(
        merchant_id=merchant_id,
        type=JournalType.ACCEPTED,
        subject_id=subject_id,
        amount=amount,
        source=accounts.suspense_for(held_from),
        now=now,
    )


def send_back(
    *, subject_id: str, amount: int, to: str, now: datetime, type: JournalType = JournalType.SENT_BACK
) -> None:
    """What was held leaves; `Fact.REVERSAL` where its bank took it by itself."""
    suspense = accounts.suspense_for(to)
    _lock_funds(suspense, amount)
    post(type, subject_id, {suspense: -amount, to: amount}, now)


def merge(*, subject_id: str, amount: int, bank: str, now: datetime) -> None:
    """What was held never came in: the account `bank` reported one transaction twice."""
    send_back(subject_id=subject_id, amount=amount, to=bank, now=now, type=JournalType.MERGED)


def unmerge(*, subject_id: str, amount: int, bank: str, now: datetime) -> None:
    """What `merge` posted about the subject was a mistake: the money waits for staff again."""
    post(JournalType.UNMERGED, subject_id, {bank: -amount, accounts.suspense_for(bank): amount}, now)


def write_off(*, subject_id: str, amount: int, to: str, now: datetime) -> None:
    """Money that was nobody's here has left to the account `to`: the operator's loss."""
    _lock_account(WRITE_OFFS)
    post(JournalType.WRITTEN_OFF, subject_id, {WRITE_OFFS: -amount, to: amount}, now)


def recover_write_off(*, subject_id: str, amount: int, to: str, now: datetime) -> None:
    """What `write_off` posted about the subject is no loss: it is taken from somebody after all."""
    _lock_account(WRITE_OFFS)
    post(JournalType.RECOVERED, subject_id, {to: -amount, WRITE_OFFS: amount}, now)


def roll_up_due(*, now: datetime, batch: int = ROLL_UP_BATCH) -> int:
    """Roll up pending entries for some seconds, `batch` entries a commit. Returns how many.

    Runs may overlap.
    """
    count, after, deadline = 0, ("", 0), Deadline.after(ROLL_UP_SECONDS)
    while not deadline.is_past and (chunk := next_pending(after, batch)):
        count += _roll_up_chunk(chunk, now)
        after = chunk[-1]
    return count


@transaction.atomic
def _roll_up_chunk(chunk: list[tuple[str, int]], now: datetime) -> int:
    """Locked accounts are left to the next roll-up."""
    codes = {code for code, _ in chunk}
    free = set(lock_accounts([*codes, *map(accounts.lock_account_of, codes)], skip_locked=True))
    ours = {code for code in codes if {code, accounts.lock_account_of(code)} <= free}
    held = roll_up_entries([entry_id for code, entry_id in chunk if code in ours], sorted(ours))
    for code, found in held.items():
        merchant_id = accounts.merchant_id_of(code)
        if found.debt and merchant_id and accounts.type_of(code) == AccountType.AVAILABLE:
            _repay_debt(merchant_id, found, now)
    return sum(found.count for found in held.values())


def _lock_funds(code: str, needed: int) -> None:
    """Lock an account and roll up what is needed. Raises ServiceUnavailable where too many entries wait."""
    held = _lock_and_roll_up(code, needed)
    if held.rolled_up < needed and not held.is_complete:
        raise ServiceUnavailable(retry_after=RETRY_SECONDS)


def _lock_and_roll_up(code: str, needed: int) -> LockedBalance:
    """Lock an account until the commit, and roll it up until it holds `needed` beyond what its merchant owes.

    It holds less where all of it is rolled up, and perhaps after `MAX_ROLL_UP_STEPS`. Satang.
    """
    _lock_account(code)
    held = roll_up_newest(code, ROLL_UP_STEP)
    for _ in range(1, MAX_ROLL_UP_STEPS):
        if held.is_complete or held.rolled_up + held.debt >= needed:
            break
        held = roll_up_newest(code, ROLL_UP_STEP)
    return held


def _lock_account(code: str) -> None:
    codes = accounts.in_lock_order([accounts.lock_account_of(code), code])
    if len(lock_accounts(codes)) < len(codes):
        open_accounts(codes)
        lock_accounts(codes)


def _repay_debt(merchant_id: str, held: LockedBalance, now: datetime) -> int:
    """Pay from the balance, under its lock, what is owed. Returns how much that was."""
    amount = min(held.rolled_up, -held.debt)
    if amount:
        lines = {accounts.available(merchant_id): -amount, accounts.debt(merchant_id): amount}
        post(JournalType.DEBT_REPAID, ids.new("own_", now), lines, now)
    return amount


def _to_balance(merchant_id: str, found: Mapping[str, int]) -> Balance:
    net = found.get(accounts.available(merchant_id), 0) + found.get(accounts.debt(merchant_id), 0)
    reserved, unconfirmed = accounts.reserved(merchant_id), accounts.unconfirmed(merchant_id)
    return Balance(max(net, 0), found.get(reserved, 0), max(-net, 0), found.get(unconfirmed, 0))
