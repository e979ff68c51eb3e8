"""Where all money is: double entry, in satang. Each function posts one fact; the caller opens the commit.

Money in only appends, so that credits of a busy merchant never queue. Money out locks the account it leaves,
folds into `settled` as much of what was appended as it needs, and takes from there. The order of the locks:
`accounts.LOCK_ORDER`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from core import ids
from core.deadlines import Deadline
from core.errors import ServiceUnavailable
from transactions import accounts, postings
from transactions.accounts import LOSSES
from transactions.errors import InsufficientFunds
from transactions.ledger_models import Fact, Kind
from transactions.postings import (
    Held,
    fold_entries,
    fold_newest,
    lock,
    open_accounts,
    post,
    read,
    waiting,
)

# Entries that a sweep folds in one commit: the lock of a busy merchant is held for some 50 ms.
SWEEP_BATCH = 5_000
# A sweep stops after so many seconds. The next one goes on.
SWEEP_SECONDS = 4.0
# Entries that money out folds by one statement, and how many such statements it runs at most: enough for a
# withdrawal of the largest amount that is made up of payments of 40 THB.
STEP, MOST_STEPS = 1_000, 50
# When the caller may try again where even that was too little. The sweep runs every five seconds.
RETRY_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Balance:
    """Satang, none negative. `owed` is what a bank took back beyond the balance; credits fill it first.

    `unconfirmed` is money that only an uploaded statement reports. It cannot leave.
    """

    available: int
    reserved: int
    owed: int
    unconfirmed: int = 0


def balance(merchant_id: str, *, before: datetime | None = None) -> Balance:
    """What the merchant has, or had just before that instant; all of it in one snapshot."""
    return _balance(merchant_id, read(accounts.of(merchant_id), before))


def balances(merchant_ids: Collection[str]) -> dict[str, Balance]:
    """What each of these merchants has now, by one statement."""
    found = read([code for merchant_id in merchant_ids for code in accounts.of(merchant_id)], None)
    return {merchant_id: _balance(merchant_id, found) for merchant_id in merchant_ids}


def credit(
    *,
    merchant_id: str,
    fact: Fact,
    subject_id: str,
    amount: int,
    source: str,
    at: datetime,
    is_confirmed: bool = True,
) -> None:
    """Money for the merchant, from the account `source`, such as `bank:sandbox`.

    is_confirmed: False for money that only an uploaded statement reports; `confirm` makes it available.
    """
    if accounts.kind_of(source) == Kind.SUSPENSE:
        _take_from(source, amount)
    target = accounts.credited(merchant_id, is_confirmed=is_confirmed)
    post(fact, subject_id, {source: -amount, target: amount}, at)


def confirm(*, merchant_id: str, subject_id: str, amount: int, at: datetime) -> None:
    """Money that only a statement reported becomes available. The subject is its bank transaction."""
    unconfirmed = accounts.unconfirmed(merchant_id)
    _take_from(unconfirmed, amount)
    post(Fact.CONFIRMED, subject_id, {unconfirmed: -amount, accounts.available(merchant_id): amount}, at)


def reserve(*, merchant_id: str, fact: Fact, subject_id: str, amount: int, at: datetime) -> None:
    """Set money aside for a refund or withdrawal. Raises InsufficientFunds, and then nothing is posted.

    Raises ServiceUnavailable where so many small credits wait to be folded that it would take too long.
    """
    held = _folded(accounts.available(merchant_id), amount)
    if held.settled - _fill_owed(merchant_id, held, at) < amount:
        if held.is_whole or balance(merchant_id).available < amount:
            raise InsufficientFunds()
        raise ServiceUnavailable(retry_after=RETRY_SECONDS)
    lines = {accounts.available(merchant_id): -amount, accounts.reserved(merchant_id): amount}
    post(fact, subject_id, lines, at)


def release(*, merchant_id: str, fact: Fact, subject_id: str, amount: int, at: datetime) -> None:
    """What was reserved is the merchant's again."""
    lines = {accounts.reserved(merchant_id): -amount, accounts.available(merchant_id): amount}
    post(fact, subject_id, lines, at)


def pay_out(*, merchant_id: str, fact: Fact, subject_id: str, amount: int, to: str, at: datetime) -> None:
    """What was reserved has left, to the account `to`, such as `bank:sandbox`."""
    post(fact, subject_id, {accounts.reserved(merchant_id): -amount, to: amount}, at)


def take_back(*, merchant_id: str, fact: Fact, subject_id: str, amount: int, to: str, at: datetime) -> int:
    """A bank takes back what it had paid in. Returns how much of it the merchant now owes.

    What waits to be folded beyond `MOST_STEPS` fills the debt when it is folded; `balance` shows the net.
    """
    held = _folded(accounts.available(merchant_id), amount)
    from_balance = min(amount, held.settled - _fill_owed(merchant_id, held, at))
    lines = {
        accounts.available(merchant_id): -from_balance,
        accounts.owed(merchant_id): from_balance - amount,
        to: amount,
    }
    post(fact, subject_id, lines, at)
    return amount - from_balance


def take_back_unconfirmed(
    *, merchant_id: str, fact: Fact, subject_id: str, amount: int, to: str, at: datetime
) -> None:
    """A bank takes back money that nobody has confirmed. Nothing else of the merchant is touched."""
    unconfirmed = accounts.unconfirmed(merchant_id)
    _take_from(unconfirmed, amount)
    post(fact, subject_id, {unconfirmed: -amount, to: amount}, at)


def debt(*, merchant_id: str, at: datetime) -> int:
    """What the merchant owes, once all that came in has paid for it; satang.

    The balance stays locked until the commit, so that no reversal comes in between.
    """
    held = _folded(accounts.available(merchant_id), 0)
    return -held.owed - _fill_owed(merchant_id, held, at)


def debts() -> dict[str, int]:
    """Satang by merchant of all whose balance is negative."""
    return postings.debts()


def hold(*, subject_id: str, amount: int, source: str, at: datetime) -> None:
    """Money that is nobody's yet waits for staff."""
    post(Fact.HELD, subject_id, {source: -amount, accounts.suspense_of(source): amount}, at)


def accept(*, merchant_id: str, subject_id: str, amount: int, held_from: str, at: datetime) -> None:
    """What was held becomes the merchant's, for no payment: money of a refund that `held_from` sent back."""
    credit(
        merchant_id=merchant_id,
        fact=Fact.ACCEPTED,
        subject_id=subject_id,
        amount=amount,
        source=accounts.suspense_of(held_from),
        at=at,
    )


def send_back(*, subject_id: str, amount: int, to: str, at: datetime, fact: Fact = Fact.SENT_BACK) -> None:
    """What was held leaves; `Fact.REVERSAL` where its bank took it by itself."""
    suspense = accounts.suspense_of(to)
    _take_from(suspense, amount)
    post(fact, subject_id, {suspense: -amount, to: amount}, at)


def merge(*, subject_id: str, amount: int, bank: str, at: datetime) -> None:
    """What was held never came in: the account `bank` reported one transaction twice."""
    send_back(subject_id=subject_id, amount=amount, to=bank, at=at, fact=Fact.MERGED)


def unmerge(*, subject_id: str, amount: int, bank: str, at: datetime) -> None:
    """What `merge` posted about the subject was a mistake: the money waits for staff again."""
    post(Fact.UNMERGED, subject_id, {bank: -amount, accounts.suspense_of(bank): amount}, at)


def lose(*, subject_id: str, amount: int, to: str, at: datetime) -> None:
    """Money that was nobody's here has left to the account `to`: the operator's loss."""
    _lock(LOSSES)
    post(Fact.LOST, subject_id, {LOSSES: -amount, to: amount}, at)


def recover(*, subject_id: str, amount: int, to: str, at: datetime) -> None:
    """What `lose` posted about the subject is no loss: it is taken from somebody after all."""
    _lock(LOSSES)
    post(Fact.RECOVERED, subject_id, {to: -amount, LOSSES: amount}, at)


def fold_due(*, now: datetime, batch: int = SWEEP_BATCH) -> int:
    """Fold what waits, for some seconds, `batch` entries a commit; sweeps may run at once. How many."""
    folded, after, deadline = 0, ("", 0), Deadline.after(SWEEP_SECONDS)
    while not deadline.is_past and (chunk := waiting(after, batch)):
        folded += _fold_chunk(chunk, now)
        after = chunk[-1]
    return folded


@transaction.atomic
def _fold_chunk(chunk: list[tuple[str, int]], now: datetime) -> int:
    """Entries of accounts that somebody else has locked are left to the next sweep."""
    codes = {code for code, _ in chunk}
    free = set(lock([*codes, *map(accounts.lock_of, codes)], skip_locked=True))
    ours = {code for code in codes if {code, accounts.lock_of(code)} <= free}
    held = fold_entries([entry_id for code, entry_id in chunk if code in ours], sorted(ours))
    for code, found in held.items():
        merchant_id = accounts.owner_of(code)
        if found.owed and merchant_id and accounts.kind_of(code) == Kind.AVAILABLE:
            _fill_owed(merchant_id, found, now)
    return sum(found.folded for found in held.values())


def _take_from(code: str, needed: int) -> None:
    """Lock an account and fold what is needed. Raises ServiceUnavailable where too many entries wait."""
    held = _folded(code, needed)
    if held.settled < needed and not held.is_whole:
        raise ServiceUnavailable(retry_after=RETRY_SECONDS)


def _folded(code: str, needed: int) -> Held:
    """Lock an account until the commit, and fold it until it holds `needed` beyond what its merchant owes.

    It holds less where all of it is folded, and perhaps after `MOST_STEPS`. Satang.
    """
    _lock(code)
    held = fold_newest(code, STEP)
    for _ in range(1, MOST_STEPS):
        if held.is_whole or held.settled + held.owed >= needed:
            break
        held = fold_newest(code, STEP)
    return held


def _lock(code: str) -> None:
    codes = accounts.in_lock_order([accounts.lock_of(code), code])
    if len(lock(codes)) < len(codes):
        open_accounts(codes)
        lock(codes)


def _fill_owed(merchant_id: str, held: Held, at: datetime) -> int:
    """Pay from the balance, under its lock, what is owed. Returns how much that was."""
    amount = min(held.settled, -held.owed)
    if amount:
        lines = {accounts.available(merchant_id): -amount, accounts.owed(merchant_id): amount}
        post(Fact.OWED_FILLED, ids.new("own_", at), lines, at)
    return amount


def _balance(merchant_id: str, found: Mapping[str, int]) -> Balance:
    net = found.get(accounts.available(merchant_id), 0) + found.get(accounts.owed(merchant_id), 0)
    reserved, unconfirmed = accounts.reserved(merchant_id), accounts.unconfirmed(merchant_id)
    return Balance(max(net, 0), found.get(reserved, 0), max(-net, 0), found.get(unconfirmed, 0))
