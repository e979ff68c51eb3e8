"""A bank takes back what it had reported: the one way in which money leaves that nobody here asked for."""

import logging
from datetime import datetime

from django.db.models import Q

from approvals import services as approvals
from payments.models import Payment
from receipts import joining, merging, returns
from receipts.models import Act, Deed, Kind, Outcome, Receipt, Resolution
from refunds import reversals as refunds
from transactions import accounts, ledger
from transactions.models import Fact
from transfers import services as transfers

log = logging.getLogger("receipts")
NOT_DONE = [Outcome.WAITING, Outcome.UNMATCHED]


def credit_of(reversal: Receipt) -> Receipt | None:
    """The credit of the same transaction, by any name of either; of one that was merged, the other."""
    found = (joining.named(reversal.bank, name, Kind.CREDIT) for name in reversal.names)
    credit = next((credit for credit in found if credit is not None), None)
    return None if credit is None else merging.counted(credit)


def orders_of(credit: Receipt) -> list[str]:
    """Our own orders to take all of it back, which the bank answers by telling of the reversal."""
    return transfers.taking_back(credit.names, route=accounts.bank(credit.bank), amount=credit.amount)


def is_due(reversal: Receipt) -> bool:
    """Whether nothing was taken yet, and nobody has decided that nothing will be."""
    return reversal.outcome in NOT_DONE and reversal.resolution != Resolution.DISMISSED


def waiting_for(credit: Receipt, *decided: Resolution) -> Receipt | None:
    """The reversal of a credit that came before the credit, or could not be carried out, under its lock.

    decided: also one about which staff have decided so.
    """
    # The empty name is left out for the planner, see `joining.named`.
    second = Q(also_known_as__in=credit.names) & ~Q(also_known_as="")
    waiting = Receipt.objects.filter(
        Q(bank_transaction_id__in=credit.names) | second,
        bank=credit.bank,
        kind=Kind.REVERSAL,
        outcome__in=NOT_DONE,
        resolution__in=[Resolution.OPEN, *decided],
    )
    found: Receipt | None = waiting.select_for_update(no_key=True).first()
    return found


def carry_out(reversal: Receipt, credit: Receipt | None, payment: Payment | None, *, now: datetime) -> None:
    """Judge a reversal and move its money. The caller holds the locks: payment, credit, reversal.

    It waits for staff where there is nothing to take back, or not as much, or where the money is already on
    its way to the payer: then it has left twice, and only people can ask the bank.
    """
    outcome = Outcome.UNMATCHED
    if credit is not None and reversal.amount <= credit.amount:
        outcome = _judge(reversal, credit, payment, now)
    if outcome == reversal.outcome:
        return
    if reversal.resolution != Resolution.OPEN:
        reopen(reversal, now=now)
    reversal.outcome, reversal.judged_at = outcome, now
    if credit is not None and outcome != Outcome.UNMATCHED:
        reversal.payment, reversal.merchant = credit.payment, credit.merchant
    reversal.save(update_fields=["outcome", "judged_at", "payment", "merchant"])
    approvals.cancel(reversal.id, now=now)  # of a write-off
    log.warning("reversal %s of %s: %s", reversal.id, reversal.bank, reversal.outcome)


def due_with(credit: Receipt, *, is_news: bool = False) -> Receipt | None:
    """The reversal that waited for this credit, or for what has become of it, under its lock.

    is_news: nobody knew of the credit until now, so that staff could but dismiss its reversal. The caller
    holds the credit's lock, and has posted nothing yet: locks of accounts come last.
    """
    return waiting_for(credit, Resolution.LOST, *([Resolution.DISMISSED] if is_news else []))


def catch_up(reversal: Receipt | None, credit: Receipt, payment: Payment | None, *, now: datetime) -> None:
    """Carry out what `due_with` found. The caller holds the locks: payment, credit.

    payment: None where the credit is nobody's, or still in suspense.
    """
    if reversal is not None:
        carry_out(reversal, credit, payment, now=now)


def reopen(reversal: Receipt, *, now: datetime) -> None:
    """What staff decided about it is so no more: we have what they had not, or they were wrong.

    The caller holds the reversal's lock.
    """
    if reversal.resolution == Resolution.LOST:
        booked = Act.objects.filter(subject_id=reversal.id, deed=Deed.LOST).latest("id")
        route = accounts.bank(reversal.bank)
        ledger.recover(subject_id=booked.posting, amount=reversal.amount, to=route, at=now)
    reversal.resolve(Resolution.OPEN, now=now)


def _judge(reversal: Receipt, credit: Receipt, payment: Payment | None, now: datetime) -> Outcome:
    if reversal.amount == credit.amount and orders_of(credit):
        return Outcome.ORDERED
    return Outcome.REVERSED if _take(reversal, credit, payment, now) else Outcome.UNMATCHED


def _take(reversal: Receipt, credit: Receipt, payment: Payment | None, now: datetime) -> bool:
    """False where nothing can be taken. Of a payment only once: who tells of it again has to be asked."""
    if credit.is_credited and payment is not None:
        if refunds.is_recorded(payment):
            return False
        _from_merchant(reversal, credit, payment, now)
        return True
    return (
        credit.outcome != Outcome.WAITING
        and reversal.amount == credit.amount
        and _held(reversal, credit, now)
    )


def _from_merchant(reversal: Receipt, credit: Receipt, payment: Payment, now: datetime) -> None:
    """Money that nobody has confirmed is still where it came in: the balance is not touched for it."""
    route = accounts.bank(reversal.bank)
    refunds.record(payment, reversal_id=reversal.id, route=route, amount=reversal.amount, now=now)
    take_back = ledger.take_back if credit.is_confirmed else ledger.take_back_unconfirmed
    take_back(
        merchant_id=payment.merchant_id,
        fact=Fact.REVERSAL,
        subject_id=reversal.id,
        amount=reversal.amount,
        to=route,
        at=now,
    )


def _held(reversal: Receipt, credit: Receipt, now: datetime) -> bool:
    """Out of suspense, where it still is."""
    if credit.resolution == Resolution.SENDING_BACK and not returns.stop(credit, now=now):
        return False
    if credit.resolution not in (Resolution.OPEN, Resolution.SENDING_BACK):
        return False
    credit.resolve(Resolution.TAKEN_BACK, now=now)
    route = accounts.bank(reversal.bank)
    ledger.send_back(subject_id=reversal.id, amount=reversal.amount, to=route, at=now, fact=Fact.REVERSAL)
    return True
