"""A payment succeeds by a receipt: at once, or after somebody decided so. The caller holds both locks."""

from datetime import datetime

from payments import services as payments
from payments.models import Payment
from payments.services import Payer
from receipts.models import Act, Deed, Receipt, Resolution
from refunds import services as refunds
from transactions import accounts

BY_POLICY = "policy:late_money"


def apply(receipt: Receipt, payment: Payment, *, now: datetime) -> None:
    """What was asked for came in time."""
    _succeed(receipt, payment, source=accounts.bank(receipt.bank), now=now)


def resolve(receipt: Receipt, payment: Payment, act: Act) -> None:
    """What waited becomes this payment's, by a person's act or a merchant's policy."""
    _succeed(receipt, payment, source=accounts.suspense_of(accounts.bank(receipt.bank)), now=act.at)
    resolution = Resolution.ATTACHED if act.deed == Deed.ATTACHED else Resolution.ACCEPTED
    receipt.resolve(resolution, now=act.at, payment=payment, merchant=payment.merchant)
    act.save(force_insert=True)


def by_policy(receipt: Receipt, payment: Payment, *, now: datetime) -> None:
    """The merchant takes late money without being asked."""
    act = Act(
        subject_id=receipt.id,
        deed=Deed.ACCEPTED,
        by=BY_POLICY,
        why="The merchant accepts money that comes after the code has expired.",
        payment_id=payment.id,
        at=now,
    )
    resolve(receipt, payment, act)


def learn_payer(receipt: Receipt, payment: Payment, *, now: datetime) -> None:
    """What a later message told of the payer: a refund of the payment may wait for it, or need it one day."""
    payments.learn_payer(payment, payer_of(receipt))
    refunds.address_waiting(payment, now=now)


def _succeed(receipt: Receipt, payment: Payment, *, source: str, now: datetime) -> None:
    payments.succeed(
        payment,
        paid_at=receipt.paid_at,
        payer=payer_of(receipt),
        source=source,
        now=now,
        received=receipt.amount,
        is_confirmed=receipt.is_confirmed,
    )


def payer_of(receipt: Receipt) -> Payer:
    return Payer(receipt.payer_name, receipt.payer_bank_code, receipt.payer_account, receipt.told_id)
