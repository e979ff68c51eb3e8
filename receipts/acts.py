"""What staff decide about money that does not fit. Each act is one commit, and safe to click twice.

Lock order as everywhere: payment, then receipt. Whoever comes second finds the receipt decided and is told by
whom.
"""

from collections.abc import Callable
from datetime import datetime

from django.db import transaction

from approvals import services as approvals
from approvals.models import Approval
from payments import services as payments
from payments.errors import PaymentNotFound
from payments.models import Payment, Status
from receipts import (
    acting,
    charges,
    crediting,
    merging,
    probable_duplicates,
    returns,
    reversals,
    sentences,
    services,
    writing_off,
)
from receipts.acting import AlreadyDone, NotPossible
from receipts.confirming import by_person as confirm
from receipts.models import HELD, Act, Deed, Kind, Outcome, Receipt, Resolution, Return
from receipts.reopening import ENDED, reopen
from receipts.returns import Destination, NoDestination, NoSender
from refunds.models import Refund
from transactions import ledger
from transfers.models import Contradiction

__all__ = [
    "AlreadyDone", "Destination", "NotPossible",
    "accept", "attach", "confirm", "dismiss", "keep", "lose", "merge", "possible", "reopen", "send_back",
    "send_back_by_hand",
]  # fmt: skip

PAYABLE = (Status.PENDING, Status.EXPIRED)
LEAVING = {Deed.SENT_BACK, Deed.SENT_BACK_BY_HAND}


@transaction.atomic
def accept(receipt_id: str, *, by: str, why: str, now: datetime) -> Receipt:
    """The payment of its own code succeeds by it: paid late, or too much or too little."""
    payment_id = Receipt.objects.values_list("payment_id", flat=True).get(pk=receipt_id)
    payment = None if payment_id is None else _payable(payment_id, now)
    receipt = _open(receipt_id)
    _check_is_one_more(receipt)
    if payment is None or receipt.payment_id != payment.id or Deed.ACCEPTED not in possible(receipt):
        raise NotPossible("This money cannot be accepted: its own payment does not wait for any.")
    return _credit(receipt, payment, Deed.ACCEPTED, by, why, now)


@transaction.atomic
def attach(receipt_id: str, *, payment_id: str, by: str, why: str, now: datetime) -> Receipt:
    """Another payment of a merchant of the same bank succeeds by it, whatever amount was asked there."""
    try:
        payment = _payable(payment_id, now)
    except PaymentNotFound:
        raise NotPossible(f"There is no payment {payment_id}.") from None
    receipt = _open(receipt_id)
    _check_is_one_more(receipt)
    if Deed.ATTACHED not in possible(receipt):
        raise NotPossible("Only money can be attached to a payment.")
    if payment is None:
        raise NotPossible(f"Payment {payment_id} waits for no money by a QR code.")
    if payment.merchant.bank != receipt.bank:
        raise NotPossible(f"Payment {payment_id} is of a merchant of another bank.")
    if (payee := returns.payee_of(receipt)) not in (None, payment.merchant):
        raise NotPossible(
            f"This money was paid to {payee.name}: send it back, or attach it to a payment there."
        )
    deed = Deed.ACCEPTED if receipt.payment_id == payment.id else Deed.ATTACHED
    return _credit(receipt, payment, deed, by, why, now)


@transaction.atomic
def send_back(
    receipt_id: str, *, by: str, why: str, now: datetime, destination: Destination | None = None
) -> Return:
    """Order it back: to the payer's account as the bank told it, or to the one that the payer named."""

    def order(receipt: Receipt) -> Return:
        to = returns.entered(receipt, destination) if destination else returns.way_back(receipt)
        returns.check_sender(receipt, to)
        return returns.order(receipt, to, by=by, why=why, now=now)

    return _return(receipt_id, order, Deed.SENT_BACK, by, why, now)


@transaction.atomic
def send_back_by_hand(receipt_id: str, *, bank_reference: str, by: str, why: str, now: datetime) -> Return:
    """Note that it was sent back at the bank itself, under the bank's reference."""

    def note(receipt: Receipt) -> Return:
        return returns.note_by_hand(receipt, bank_reference=bank_reference, by=by, why=why, now=now)

    return _return(receipt_id, note, Deed.SENT_BACK_BY_HAND, by, why, now)


@transaction.atomic
def dismiss(subject_id: str, *, by: str, why: str, now: datetime) -> Act:
    """Nothing is to be done about a message, or about a reversal of money that we never had."""
    if subject_id.startswith("rcp_"):
        receipt = _open(subject_id)
        if Deed.DISMISSED not in possible(receipt):
            raise NotPossible("Money cannot be dismissed: accept it, attach it or send it back.")
        receipt.resolve(Resolution.DISMISSED, now=now)
        approvals.cancel(subject_id, now=now)
    elif (message := acting.message(subject_id)) is None:
        raise NotPossible("This message does not wait for anybody.")
    elif isinstance(message, Contradiction) and charges.is_pending(message):
        raise NotPossible("The card payment is still pending: book it as failed.")
    return acting.write_down(acting.draft(subject_id, Deed.DISMISSED, by, why, now))


@transaction.atomic
def merge(receipt_id: str, *, by: str, why: str, now: datetime) -> Act:
    """It is the same bank transaction as the one that it probably is: only that one counts."""
    seen = Receipt.objects.get(pk=receipt_id)
    if seen.payment_id is not None:
        Payment.objects.locked(seen.payment_id)
    other = probable_duplicates.of([seen]).get(receipt_id)
    # In order of their ids, so that two people cannot merge the two with each other.
    for each in sorted([receipt_id, *([other.id] if other else [])]):
        Receipt.objects.locked(each)
    receipt = _open(receipt_id)
    found = probable_duplicates.of([receipt]).get(receipt_id)
    if other is None or found != other:
        raise NotPossible("It is not probably the same transaction as another, or not any more.")
    if reversals.waiting_for(receipt) is not None:
        raise NotPossible("The bank says that it takes money of this back itself: ask it which is meant.")
    return merging.book(receipt, found, by=by, why=why, now=now)


def lose(receipt_id: str, *, by: str, why: str, now: datetime) -> Act | Approval:
    """What a bank took back had left already, as it says when asked: the operator's loss.

    What can be taken back by now is taken, and is no loss. A loss ends when that comes later.
    """
    services.apply(receipt_id=receipt_id, now=now)
    return _lose(receipt_id, by, why, now)


@transaction.atomic
def keep(refund_id: str, *, by: str, why: str, now: datetime) -> Act:
    """A refund's money came back to us: the merchant has it again."""
    Payment.objects.locked(Refund.objects.values_list("payment_id", flat=True).get(pk=refund_id))
    refund = Refund.objects.locked(refund_id)
    if refund.returned_at is None:
        raise NotPossible("The money of this refund has not come back.")
    act = acting.write_down(acting.draft(refund_id, Deed.KEPT, by, why, now, refund.payment_id))
    ledger.accept(
        merchant_id=refund.merchant_id,
        subject_id=refund_id,
        amount=refund.amount,
        held_from=refund.route,
        at=now,
    )
    return act


def possible(receipt: Receipt) -> frozenset[Deed]:
    """What can be decided about it now. Whether its bank can send, `returns.check_sender` knows."""
    found = _decidable(receipt)
    is_settled = receipt.is_confirmed or receipt.resolution == Resolution.MERGED
    return found if is_settled else found - LEAVING | {Deed.CONFIRMED}


def _decidable(receipt: Receipt) -> frozenset[Deed]:
    if receipt.resolution in ENDED:
        return frozenset({Deed.REOPENED})
    if receipt.outcome not in HELD or receipt.resolution != Resolution.OPEN:
        return frozenset()
    if receipt.kind == Kind.REVERSAL:
        return frozenset({Deed.DISMISSED} if approvals.waits(receipt.id) else {Deed.DISMISSED, Deed.LOST})
    if probable_duplicates.of([receipt]):
        return frozenset({Deed.MERGED})
    deeds = {Deed.ATTACHED, Deed.SENT_BACK, Deed.SENT_BACK_BY_HAND}
    if receipt.outcome in (Outcome.LATE, Outcome.AMOUNT_MISMATCH) and receipt.payment is not None:
        deeds |= {Deed.ACCEPTED} if receipt.payment.status in PAYABLE else set()
    return frozenset(deeds)


@transaction.atomic
def _lose(receipt_id: str, by: str, why: str, now: datetime) -> Act | Approval:
    reversal = _open(receipt_id)
    if Deed.LOST not in possible(reversal):
        raise NotPossible(
            "Only what a bank took back, and nobody here could give, is a loss; and nobody asks twice."
        )
    return writing_off.request(reversal, by=by, why=why, now=now)


def _payable(payment_id: str, now: datetime) -> Payment | None:
    """A QR payment that still waits for money, under its lock. Raises PaymentNotFound."""
    payment: Payment = Payment.objects.locked(payment_id)
    payments.materialise_expiry(payment, now)
    is_payable = payment.qr_code_id is not None and payment.status in PAYABLE
    return payment if is_payable else None


def _open(receipt_id: str) -> Receipt:
    """Under its lock, and not decided yet. Raises AlreadyDone."""
    receipt: Receipt = Receipt.objects.locked(receipt_id)
    if receipt.resolution == Resolution.TAKEN_BACK:
        raise AlreadyDone("The bank has taken this money back: there is nothing to decide.")
    if receipt.resolution != Resolution.OPEN:
        raise acting.already(receipt_id)
    return receipt


def _check_is_one_more(receipt: Receipt) -> None:
    """Raises NotPossible for money that is probably counted already."""
    for other in probable_duplicates.of([receipt]).values():
        raise NotPossible(sentences.of_probably_same(receipt, other))


def _credit(receipt: Receipt, payment: Payment, deed: Deed, by: str, why: str, now: datetime) -> Receipt:
    reversal = reversals.due_with(receipt)
    crediting.resolve(receipt, payment, acting.draft(receipt.id, deed, by, why, now, payment.id))
    # What the bank took back of it while it waited is the merchant's loss from now on.
    reversals.catch_up(reversal, receipt, payment, now=now)
    return receipt


def _return(
    receipt_id: str, make: Callable[[Receipt], Return], deed: Deed, by: str, why: str, now: datetime
) -> Return:
    # Under the payment's lock: another report of this money can be credited to the payment meanwhile.
    payment_id = Receipt.objects.values_list("payment_id", flat=True).get(pk=receipt_id)
    if payment_id is not None:
        Payment.objects.locked(payment_id)
    receipt = _open(receipt_id)
    _check_is_one_more(receipt)
    if not receipt.is_confirmed:
        raise NotPossible(
            "Only an uploaded statement reports this money: its bank or a second person confirms it before "
            "it can leave."
        )
    if deed not in possible(receipt):
        raise NotPossible("There is no money of this receipt that could go back.")
    if reversals.waiting_for(receipt) is not None:
        raise NotPossible("The bank says that it takes money of this back itself: ask it how much is left.")
    try:
        made = make(receipt)
    except NoDestination:
        raise NotPossible("The bank did not tell the payer's account: name one.") from None
    except NoSender:
        raise NotPossible(
            "Money cannot be sent by this bank from here: send it at the bank, and note that it was."
        ) from None
    acting.write_down(acting.draft(receipt_id, deed, by, why, now, receipt.payment_id))
    return made
