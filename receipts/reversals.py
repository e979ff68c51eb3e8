"""A bank takes back what it had reported: the one way in which money leaves that nobody here asked for."""

import logging
from datetime import datetime

from payments.models import Payment
from receipts import joining, returns
from receipts.models import Kind, Outcome, Receipt, Resolution
from refunds import reversals as refunds
from transactions import accounts, ledger
from transactions.models import Fact

log = logging.getLogger("receipts")


def credit_of(reversal: Receipt) -> Receipt | None:
    """The credit of the same transaction, by either of its names."""
    return joining.named(reversal.bank, reversal.bank_transaction_id, Kind.CREDIT)


def waiting_for(credit: Receipt) -> Receipt | None:
    """The reversal of a credit that came before the credit, or could not be carried out, under its lock."""
    names = {credit.bank_transaction_id, credit.also_known_as}
    waiting = Receipt.objects.filter(
        bank=credit.bank,
        bank_transaction_id__in=names,
        kind=Kind.REVERSAL,
        outcome__in=[Outcome.WAITING, Outcome.UNMATCHED],
        resolution=Resolution.OPEN,
    )
    found: Receipt | None = waiting.select_for_update(no_key=True).first()
    return found


def carry_out(reversal: Receipt, credit: Receipt | None, payment: Payment | None, *, now: datetime) -> None:
    """Judge a reversal and move its money. The caller holds the locks: payment, credit, reversal.

    It waits for staff where there is nothing to take back, or not as much, or where the money is already on
    its way to the payer: then it has left twice, and only people can ask the bank.
    """
    done = credit is not None and reversal.amount <= credit.amount and _take(reversal, credit, payment, now)
    reversal.outcome = Outcome.REVERSED if done else Outcome.UNMATCHED
    reversal.judged_at = now
    if credit is not None and done:
        reversal.payment, reversal.merchant = credit.payment, credit.merchant
    reversal.save(update_fields=["outcome", "judged_at", "payment", "merchant"])
    log.warning("reversal %s of %s: %s", reversal.id, reversal.bank, reversal.outcome)


def catch_up(credit: Receipt, payment: Payment | None, *, now: datetime) -> None:
    """Carry out a reversal that waited for this credit. The caller holds the locks: payment, credit."""
    reversal = waiting_for(credit)
    if reversal is not None:
        carry_out(reversal, credit, payment, now=now)


def _take(reversal: Receipt, credit: Receipt, payment: Payment | None, now: datetime) -> bool:
    """False where nothing can be taken."""
    if credit.is_credited and payment is not None:
        _from_merchant(reversal, payment, now)
        return True
    return (
        credit.outcome != Outcome.WAITING
        and reversal.amount == credit.amount
        and _held(reversal, credit, now)
    )


def _from_merchant(reversal: Receipt, payment: Payment, now: datetime) -> None:
    route = accounts.bank(reversal.bank)
    refunds.record(payment, reversal_id=reversal.id, route=route, amount=reversal.amount, now=now)
    ledger.take_back(
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
