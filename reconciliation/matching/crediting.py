"""A payment succeeds by a bank transaction: at once, or after somebody decided so.

The caller holds both locks.
"""

from datetime import datetime

from ledger import accounts
from payments import services as payments
from payments.models import Payment
from payments.services import Payer
from reconciliation.models import BankTransaction, Resolution, ResolutionState, ResolutionType
from refunds import services as refunds

POLICY_ACTOR = "policy:late_money"


def credit(movement: BankTransaction, payment: Payment, *, now: datetime) -> None:
    """What was asked for came in time."""
    _succeed(movement, payment, source=accounts.bank(movement.bank), now=now)


def credit_from_suspense(movement: BankTransaction, payment: Payment, act: Resolution) -> None:
    """What waited becomes this payment's, by a person's act or a merchant's policy."""
    _succeed(
        movement, payment, source=accounts.suspense_for(accounts.bank(movement.bank)), now=act.created_at
    )
    resolution_state = (
        ResolutionState.ATTACHED if act.type == ResolutionType.ATTACHED else ResolutionState.ACCEPTED
    )
    movement.resolve(resolution_state, now=act.created_at, payment=payment, merchant=payment.merchant)
    act.save(force_insert=True)


def accept_by_policy(movement: BankTransaction, payment: Payment, *, now: datetime) -> None:
    """The merchant takes late money without being asked."""
    act = Resolution(
        subject_id=movement.id,
        type=ResolutionType.ACCEPTED,
        actor=POLICY_ACTOR,
        note="The merchant accepts money that comes after the code has expired.",
        payment_id=payment.id,
        created_at=now,
    )
    credit_from_suspense(movement, payment, act)


def update_payer(movement: BankTransaction, payment: Payment, *, now: datetime) -> None:
    """What a later message told of the payer: a refund of the payment may wait for it, or need it one day."""
    payments.add_payer_details(payment, payer_of(movement))
    refunds.send_waiting(payment, now=now)


def _succeed(movement: BankTransaction, payment: Payment, *, source: str, now: datetime) -> None:
    payments.succeed(
        payment,
        paid_at=movement.paid_at,
        payer=payer_of(movement),
        source=source,
        now=now,
        received=movement.amount,
        is_confirmed=movement.is_confirmed,
    )


def payer_of(movement: BankTransaction) -> Payer:
    return Payer(movement.payer_name, movement.payer_bank_code, movement.payer_account, movement.id_at_bank)
