"""Where all money is: double entry, in satang. Each function posts one fact; the caller opens the commit.

Money in only appends, so that credits of a busy merchant never queue. Money out locks the account it leaves,
folds into `settled` what was appended, and takes from there. Lock order: available, then the others, losses
last.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from core import ids
from transactions import accounts
from transactions.accounts import LOSSES, SUSPENSE
from transactions.errors import InsufficientFunds
from transactions.ledger_models import Fact, Kind, Unfolded
from transactions.postings import Held, fold, lock, open_accounts, post, read

SWEEP_BATCH = 100


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
    if source == SUSPENSE:
        _hold_still(SUSPENSE)
    target = accounts.credited(merchant_id, is_confirmed=is_confirmed)
    post(fact, subject_id, {source: -amount, target: amount}, at)


def confirm(*, merchant_id: str, subject_id: str, amount: int, at: datetime) -> None:
    """Money that only a statement reported becomes available. The subject is its bank transaction."""
    unconfirmed = accounts.unconfirmed(merchant_id)
    _hold_still(unconfirmed)
    post(Fact.CONFIRMED, subject_id, {unconfirmed: -amount, accounts.available(merchant_id): amount}, at)


def reserve(*, merchant_id: str, fact: Fact, subject_id: str, amount: int, at: datetime) -> None:
    """Set money aside for a refund or withdrawal. Raises InsufficientFunds, and then nothing is posted."""
    if _spendable(merchant_id, at) < amount:
        raise InsufficientFunds()
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
    """A bank takes back what it had paid in. Returns how much of it the merchant now owes."""
    from_balance = min(amount, _spendable(merchant_id, at))
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
    _hold_still(unconfirmed)
    post(fact, subject_id, {unconfirmed: -amount, to: amount}, at)


def hold(*, subject_id: str, amount: int, source: str, at: datetime) -> None:
    """Money that is nobody's yet waits for staff."""
    post(Fact.HELD, subject_id, {source: -amount, SUSPENSE: amount}, at)


def accept(*, merchant_id: str, subject_id: str, amount: int, at: datetime) -> None:
    """What was held becomes the merchant's, for no payment: a refund's money that came back."""
    credit(
        merchant_id=merchant_id,
        fact=Fact.ACCEPTED,
        subject_id=subject_id,
        amount=amount,
        source=SUSPENSE,
        at=at,
    )


def send_back(*, subject_id: str, amount: int, to: str, at: datetime, fact: Fact = Fact.SENT_BACK) -> None:
    """What was held leaves; `Fact.REVERSAL` where its bank took it by itself."""
    _hold_still(SUSPENSE)
    post(fact, subject_id, {SUSPENSE: -amount, to: amount}, at)


def lose(*, subject_id: str, amount: int, to: str, at: datetime) -> None:
    """Money that was nobody's here has left to the account `to`: the operator's loss."""
    _hold_still(LOSSES)
    post(Fact.LOST, subject_id, {LOSSES: -amount, to: amount}, at)


def recover(*, subject_id: str, amount: int, to: str, at: datetime) -> None:
    """What `lose` posted about the subject is no loss: it is taken from somebody after all."""
    _hold_still(LOSSES)
    post(Fact.RECOVERED, subject_id, {to: -amount, LOSSES: amount}, at)


def fold_due(*, now: datetime, batch: int = SWEEP_BATCH) -> int:
    """Fold what waits, `batch` accounts a commit; sweeps may run at once. Returns how many accounts."""
    waiting = sorted(Unfolded.objects.values_list("account_id", flat=True).distinct())
    return sum(_fold_batch(waiting[start : start + batch], now) for start in range(0, len(waiting), batch))


@transaction.atomic
def _fold_batch(codes: list[str], now: datetime) -> int:
    held = fold(lock(codes, skip_locked=True))
    for code, found in held.items():
        merchant_id = accounts.owner_of(code)
        if found.owed and merchant_id and accounts.kind_of(code) == Kind.AVAILABLE:
            _fill_owed(merchant_id, found, now)
    return len(held)


def _spendable(merchant_id: str, at: datetime) -> int:
    """What may leave the merchant's balance, which stays locked until the commit."""
    held = _hold_still(accounts.available(merchant_id))
    return held.settled - _fill_owed(merchant_id, held, at)


def _hold_still(code: str) -> Held:
    """Lock an account and fold it."""
    if not lock([code]):
        open_accounts([code])
        lock([code])
    return fold([code])[code]


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
