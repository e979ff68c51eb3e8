"""Double-entry postings in satang. The caller opens the transaction.

Money in only adds rows, so credits of a busy merchant do not wait for each other. Money out locks the account
that it leaves, rolls up as many pending entries as it needs, and debits the rolled-up balance.
`accounts.LOCK_ORDER` is the order of the locks.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction
from django.db.models import Model

from core import ids
from core.database import rows
from core.deadlines import Deadline
from core.errors import ServiceUnavailable
from ledger import accounts, queries
from ledger.errors import InsufficientFunds
from ledger.journal_types import JournalType
from ledger.models import AccountType
from ledger.queries import LockedBalance, post

ROLL_UP_BATCH = 5_000  # a roll-up commits 5,000 entries at a time: it locks a busy merchant for about 50 ms
ROLL_UP_SECONDS = 4.0  # a roll-up ends after 4 s, before the next one starts
# Money out rolls up at most 50 times 1,000 entries: the largest withdrawal from payments of 40 THB.
ROLL_UP_STEP, MAX_ROLL_UP_STEPS = 1_000, 50
# If that is not enough, the caller tries again after 5 s: by then the periodic roll-up has run.
RETRY_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Balance:
    """Satang, never negative."""

    available: int
    reserved: int
    debt: int  # what a bank took back beyond the balance; credits repay it first
    unconfirmed: int = 0  # only an uploaded statement reports it: it cannot leave
    unsettled: int = 0  # an acquirer has not paid it: only a refund of its payment can use it


@dataclass(frozen=True, slots=True)
class Fee:
    """Satang that a bank or acquirer keeps of a payment, or charges for it."""

    amount: int
    vat: int = 0
    # The name of the bank, if the money comes from another account, such as that of held money.
    owner: str = field(default="", compare=False)

    @property
    def total(self) -> int:
        return self.amount + self.vat

    def lines(self, source: str) -> dict[str, int]:
        """The lines of a journal, for the account `source` of the bank or acquirer."""
        owner = self.owner or source.partition(":")[2]
        return {accounts.fees(owner): self.amount, accounts.fee_vat(owner): self.vat}


NO_FEE = Fee(0)


@dataclass(frozen=True, slots=True)
class Credit:
    """Satang that came in for a merchant, who gets it less the fee, and a subject, such as a payment."""

    merchant_id: str
    subject_id: str
    amount: int
    into: AccountType = AccountType.AVAILABLE  # of another one `confirm` or `settle` makes it available
    fee: Fee = NO_FEE


def balance(merchant_id: str, *, before: datetime | None = None) -> Balance:
    """Return the balance now, or just before an instant, from one snapshot."""
    return balances([merchant_id], before=before)[merchant_id]


def balances(merchant_ids: Collection[str], *, before: datetime | None = None) -> dict[str, Balance]:
    """Return the balances of several merchants with one statement."""
    codes = [code for merchant_id in merchant_ids for code in accounts.of_merchant(merchant_id)]
    held = queries.read_balances(codes, before)
    found = {}
    for each in merchant_ids:
        net = held.get(accounts.available(each), 0) + held.get(accounts.debt(each), 0)
        others = [accounts.reserved(each), accounts.unconfirmed(each), accounts.unsettled(each)]
        reserved, unconfirmed, unsettled = (held.get(code, 0) for code in others)
        found[each] = Balance(max(net, 0), reserved, max(-net, 0), unconfirmed, unsettled)
    return found


def credit(
    credits: Sequence[Credit], *, type: JournalType, source: str, now: datetime, also: Sequence[Model] = ()
) -> None:
    """Post money for merchants, from the account `source`, such as `bank:sandbox`. also: see `post`."""
    if accounts.type_of(source) == AccountType.SUSPENSE:
        _lock_funds(source, sum(each.amount for each in credits))
    lines = {
        each.subject_id: {
            source: -each.amount,
            f"{each.into}:{each.merchant_id}": each.amount - each.fee.total,
            **each.fee.lines(source),
        }
        for each in credits
    }
    post(type, lines, now, also=also)


def charge_fee(
    *, merchant_id: str, subject_id: str, fee: Fee, source: str, is_unsettled: bool, now: datetime
) -> None:
    """Take a fee that is known after its payment, the subject, from the merchant.

    is_unsettled: whether to take it from money that the acquirer has not paid. Otherwise what the balance
    does not cover becomes debt.
    """
    if is_unsettled:
        code = accounts.unsettled(merchant_id)
        _lock_funds(code, fee.total)
        post(JournalType.FEE, {subject_id: {code: -fee.total, **fee.lines(source)}}, now)
        return
    lines = _take(merchant_id, fee.total, now) | fee.lines(source)
    post(JournalType.FEE, {subject_id: lines}, now)


def correct_fee(
    *, merchant_id: str, subject_id: str, before: Fee, fee: Fee, source: str, now: datetime
) -> None:
    """Give back the fee `before` of a payment, the subject, and take this one; either may be zero.

    What the balance does not cover becomes debt.
    """
    if before.total:
        lines = {code: -amount for code, amount in before.lines(source).items()}
        lines[accounts.available(merchant_id)] = before.total
        post(JournalType.FEE_RETURNED, {subject_id: lines}, now)
    if fee.total:
        lines = _take(merchant_id, fee.total, now) | fee.lines(source)
        post(JournalType.FEE_ADDED, {subject_id: lines}, now)


def settle(*, merchant_id: str, amounts: Mapping[str, int], now: datetime) -> None:
    """Make unsettled money available, satang by subject: a payment, or a refund that needs it."""
    code = accounts.unsettled(merchant_id)
    _lock_funds(code, sum(amounts.values()))
    to = accounts.available(merchant_id)
    post(JournalType.SETTLED, {each: {code: -amount, to: amount} for each, amount in amounts.items()}, now)


def unsettle(*, merchant_id: str, amounts: Mapping[str, int], now: datetime) -> None:
    """Undo `settle` for refunds that did not happen, in the transaction that released their money."""
    code = accounts.available(merchant_id)
    _lock_funds(code, sum(amounts.values()))
    to = accounts.unsettled(merchant_id)
    post(JournalType.UNSETTLED, {each: {code: -amount, to: amount} for each, amount in amounts.items()}, now)


def confirm(*, merchant_id: str, subject_id: str, source_id: str, amount: int, now: datetime) -> None:
    """Make unconfirmed money available. The subject is its bank transaction, the source its payment."""
    unconfirmed = accounts.unconfirmed(merchant_id)
    _lock_funds(unconfirmed, amount)
    lines = {unconfirmed: -amount, accounts.available(merchant_id): amount}
    post(JournalType.CONFIRMED, {subject_id: lines}, now, sources={subject_id: source_id})


def receive_transfer(
    *, subject_id: str, acquirer: str, received: int, cost: int, fee: Fee, now: datetime
) -> None:
    """Post that an acquirer transferred `received` satang to us, or (0) settled payments by what it had.

    cost: the price of the transfer, which the operator bears. fee: what the acquirer keeps of the payments.
    """
    write_offs = accounts.write_offs_for(accounts.acquirer(acquirer))
    if cost:
        _lock_account(write_offs)
    lines = {
        accounts.acquirer(acquirer): received + cost + fee.total,
        **{code: -amount for code, amount in fee.lines(accounts.acquirer(acquirer)).items()},
        accounts.bank(acquirer): -received,
        write_offs: -cost,
    }
    post(JournalType.TRANSFER_RECEIVED, {subject_id: lines}, now)


def return_fee(*, merchant_id: str, subject_id: str, fee: Fee, acquirer: str, now: datetime) -> None:
    """Post that a transfer gave the fee of a voided charge back. The subject is the refund."""
    taken = {code: -amount for code, amount in fee.lines(accounts.acquirer(acquirer)).items()}
    lines = {accounts.available(merchant_id): fee.total, **taken}
    post(JournalType.FEE_RETURNED, {subject_id: lines}, now)
    back = Fee(-fee.amount, -fee.vat)
    receive_transfer(subject_id=subject_id, acquirer=acquirer, received=0, cost=0, fee=back, now=now)


def book_difference(*, subject_id: str, account: str, difference: int, now: datetime) -> None:
    """Book what came less than expected as the operator's loss, or more (positive) as a loss taken back."""
    write_offs = accounts.write_offs_for(account)
    _lock_account(write_offs)
    lines = {account: -difference, write_offs: difference}
    post(JournalType.DIFFERENCE_BOOKED, {subject_id: lines}, now)


def reserve(
    *, merchant_id: str, type: JournalType, subject_id: str, amount: int, now: datetime, may_owe: bool = False
) -> None:
    """Set money aside for a refund or withdrawal. Posts nothing if it raises InsufficientFunds.

    may_owe: what the balance lacks becomes debt, if unsettled money will repay it.

    Raises ServiceUnavailable if too many small credits are pending to roll them up now.
    """
    held = _lock_and_roll_up(accounts.available(merchant_id), amount)
    repaid = _repay_debt(merchant_id, held, now)
    missing = max(0, amount - held.rolled_up + repaid)
    if missing:
        found = balance(merchant_id)
        is_covered = may_owe and missing - held.debt - repaid <= found.unsettled
        if not is_covered and (held.is_complete or found.available < amount):
            raise InsufficientFunds(detail=f"{amount} satang are more than the available {found.available}")
        if not held.is_complete:
            raise ServiceUnavailable(retry_after=RETRY_SECONDS)
    lines = {
        accounts.available(merchant_id): missing - amount,
        accounts.debt(merchant_id): -missing,
        accounts.reserved(merchant_id): amount,
    }
    post(type, {subject_id: lines}, now)


def release(*, merchant_id: str, type: JournalType, amounts: Mapping[str, int], now: datetime) -> None:
    """Make reserved money available again, satang by subject."""
    reserved, available = accounts.reserved(merchant_id), accounts.available(merchant_id)
    queries.lock_accounts([available])
    lines = {subject_id: {reserved: -amount, available: amount} for subject_id, amount in amounts.items()}
    post(type, lines, now)


def pay_out(
    *, merchant_id: str, type: JournalType, subject_id: str, amount: int, to: str, now: datetime
) -> None:
    """Post that reserved money left to the account `to`, such as `bank:sandbox`."""
    queries.lock_accounts([accounts.available(merchant_id)])
    post(type, {subject_id: {accounts.reserved(merchant_id): -amount, to: amount}}, now)


def reverse(
    *,
    merchant_id: str,
    subject_id: str,
    source_id: str,
    amount: int,
    to: str,
    now: datetime,
    from_suspense: int = 0,
    is_confirmed: bool = True,
) -> int:
    """Post that a bank took money back. Returns the part that becomes the merchant's debt.

    The subject is the bank transaction, the source the payment that it took back.
    from_suspense: satang that it took besides `amount`, and that nobody had been credited with.
    is_confirmed: False for unconfirmed money. The merchant's other accounts do not change then.

    Entries that are pending beyond `MAX_ROLL_UP_STEPS` repay the debt when they are rolled up. `balance`
    shows the net at once.
    """
    suspense = accounts.suspense_for(to)
    if from_suspense:
        _lock_funds(suspense, from_suspense)
    if is_confirmed:
        lines = _take(merchant_id, amount, now)
    else:
        lines = {accounts.unconfirmed(merchant_id): -amount}
        _lock_funds(accounts.unconfirmed(merchant_id), amount)
    moved = {suspense: -from_suspense, to: amount + from_suspense}
    post(JournalType.REVERSAL, {subject_id: lines | moved}, now, sources={subject_id: source_id})
    return -lines.get(accounts.debt(merchant_id), 0)


def lock_debt(*, merchant_id: str, now: datetime) -> int:
    """Return the merchant's debt in satang, after pending credits repaid as much of it as possible.

    The balance stays locked until the commit, so no reversal can add to the debt before that.
    """
    held = _lock_and_roll_up(accounts.available(merchant_id), 0)
    return -held.debt - _repay_debt(merchant_id, held, now)


def debts() -> dict[str, int]:
    """Return what merchants owe beyond their pending credits; satang by merchant."""
    found = rows.run(queries.READ_DEBTS, []).fetchall()
    return {merchant_id: int(debt) for merchant_id, debt in found}


def hold(amounts: Mapping[str, int], *, source: str, now: datetime) -> None:
    """Post money without an owner, satang by subject, to suspense. It waits there for staff."""
    suspense = accounts.suspense_for(source)
    lines = {subject_id: {source: -amount, suspense: amount} for subject_id, amount in amounts.items()}
    post(JournalType.HELD, lines, now)


def accept(*, merchant_id: str, subject_id: str, amount: int, held_from: str, now: datetime) -> None:
    """Credit a merchant with held money of a refund that `held_from` returned."""
    accepted = Credit(merchant_id, subject_id, amount)
    credit([accepted], type=JournalType.ACCEPTED, source=accounts.suspense_for(held_from), now=now)


def send_back(
    *, subject_id: str, amount: int, to: str, now: datetime, type: JournalType = JournalType.SENT_BACK
) -> None:
    """Post that held money left. The type is `REVERSAL` if its bank took it back by itself."""
    suspense = accounts.suspense_for(to)
    _lock_funds(suspense, amount)
    post(type, {subject_id: {suspense: -amount, to: amount}}, now)


def merge(*, subject_id: str, amount: int, bank: str, now: datetime) -> None:
    """Take held money out of suspense, because the account `bank` reported one transaction twice."""
    send_back(subject_id=subject_id, amount=amount, to=bank, now=now, type=JournalType.MERGED)


def unmerge(*, subject_id: str, amount: int, bank: str, now: datetime) -> None:
    """Undo `merge`: the money waits for staff again."""
    post(JournalType.UNMERGED, {subject_id: {bank: -amount, accounts.suspense_for(bank): amount}}, now)


def unhold(amounts: Mapping[str, int], *, source: str, now: datetime) -> None:
    """Undo `hold`, because nobody reports this money any more."""
    suspense = accounts.suspense_for(source)
    _lock_funds(suspense, sum(amounts.values()))
    lines = {subject_id: {suspense: -amount, source: amount} for subject_id, amount in amounts.items()}
    post(JournalType.UNDONE, lines, now)


def write_off(*, subject_id: str, amount: int, to: str, now: datetime) -> None:
    """Book money without an owner that left to the account `to` as the operator's loss."""
    write_offs = accounts.write_offs_for(to)
    _lock_account(write_offs)
    post(JournalType.WRITTEN_OFF, {subject_id: {write_offs: -amount, to: amount}}, now)


def recover_write_off(*, subject_id: str, amount: int, to: str, now: datetime) -> None:
    """Undo `write_off`, because the money can be taken now."""
    write_offs = accounts.write_offs_for(to)
    _lock_account(write_offs)
    post(JournalType.RECOVERED, {subject_id: {to: -amount, write_offs: amount}}, now)


def roll_up_due(*, now: datetime, batch: int = ROLL_UP_BATCH) -> int:
    """Roll up pending entries until a deadline, `batch` a commit. Returns how many. Runs may overlap."""
    count, after, deadline = 0, ("", 0), Deadline.after(ROLL_UP_SECONDS)
    while not deadline.is_past and (chunk := queries.next_pending(after, batch)):
        count += _roll_up_chunk(chunk, now)
        after = chunk[-1]
    return count


@transaction.atomic
def _roll_up_chunk(chunk: list[tuple[str, int]], now: datetime) -> int:
    """Roll up entries of accounts that no other transaction has locked. The next run handles the others."""
    codes = {code for code, _ in chunk}
    free = set(queries.lock_accounts([*codes, *map(accounts.lock_account_of, codes)], skip_locked=True))
    ours = {code for code in codes if {code, accounts.lock_account_of(code)} <= free}
    held = queries.roll_up_entries([each for each in chunk if each[0] in ours], sorted(ours))
    for code, found in held.items():
        merchant_id = accounts.merchant_id_of(code)
        if found.debt and merchant_id and accounts.type_of(code) == AccountType.AVAILABLE:
            _repay_debt(merchant_id, found, now)
    return sum(found.count for found in held.values())


def _lock_funds(code: str, needed: int) -> None:
    """Lock an account and roll up what is needed. Raises ServiceUnavailable if too much is pending."""
    held = _lock_and_roll_up(code, needed)
    if held.rolled_up < needed and not held.is_complete:
        raise ServiceUnavailable(retry_after=RETRY_SECONDS)


def _lock_and_roll_up(code: str, needed: int) -> LockedBalance:
    """Lock an account and roll it up until its balance covers `needed` and the merchant's debt; satang.

    The result can be less when nothing is pending any more, or after `MAX_ROLL_UP_STEPS`.
    """
    _lock_account(code)
    held = queries.roll_up_newest(code, ROLL_UP_STEP)
    for _ in range(1, MAX_ROLL_UP_STEPS):
        if held.is_complete or held.rolled_up + held.debt >= needed:
            break
        held = queries.roll_up_newest(code, ROLL_UP_STEP)
    return held


def _lock_account(code: str) -> None:
    codes = accounts.in_lock_order([accounts.lock_account_of(code), code])
    if len(queries.lock_accounts(codes)) < len(codes):
        queries.open_accounts(codes)
        queries.lock_accounts(codes)


def _take(merchant_id: str, amount: int, now: datetime) -> dict[str, int]:
    """Lines that take `amount` from the balance of a merchant. What it does not cover becomes debt."""
    held = _lock_and_roll_up(accounts.available(merchant_id), amount)
    covered = min(amount, held.rolled_up - _repay_debt(merchant_id, held, now))
    return {accounts.available(merchant_id): -covered, accounts.debt(merchant_id): covered - amount}


def _repay_debt(merchant_id: str, held: LockedBalance, now: datetime) -> int:
    """Repay the debt from the balance, whose lock the caller holds. Returns how much was repaid."""
    amount = min(held.rolled_up, -held.debt)
    if amount:
        lines = {accounts.available(merchant_id): -amount, accounts.debt(merchant_id): amount}
        post(JournalType.DEBT_REPAID, {ids.new("own_", now): lines}, now)
    return amount
