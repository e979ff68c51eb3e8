"""What staff decide about money that does not fit. Each act is one commit, and safe to click twice.

Lock order as everywhere: payment, then bank transaction. Whoever comes second finds the bank transaction
decided and is told by whom.
"""

from collections.abc import Callable
from datetime import datetime

from django.db import transaction

from approvals import services as approvals
from approvals.models import Approval
from ledger import services as ledger
from payments import services as payments
from payments.errors import PaymentNotFound
from payments.models import Payment, PaymentStatus
from reconciliation.exceptions import (
    card_contradictions,
    explanations,
    merges,
    probable_duplicates,
    resolution_records,
    returns,
    write_offs,
)
from reconciliation.exceptions.resolution_records import ActionNotAllowed, AlreadyResolved
from reconciliation.exceptions.returns import NoDestination, NoSender, ReturnDestination
from reconciliation.matching import (
    crediting,
    reversals,
)
from reconciliation.matching import services as matching
from reconciliation.matching.confirmation import confirm_manually as confirm
from reconciliation.models import (
    HELD_RESULTS,
    BankTransaction,
    BankTransactionKind,
    MatchResult,
    Resolution,
    ResolutionState,
    ResolutionType,
    Return,
)
from refunds.models import Refund
from transfers.models import TransferContradiction

__all__ = [
    "ActionNotAllowed",
    "AlreadyResolved",
    "ReturnDestination",
    "accept",
    "allowed_types",
    "attach",
    "confirm",
    "credit_returned_refund",
    "dismiss",
    "merge",
    "record_manual_return",
    "reopen",
    "send_back",
    "write_off",
]  # fmt: skip

PAYABLE = (PaymentStatus.PENDING, PaymentStatus.EXPIRED)
RETURN_TYPES = {ResolutionType.SENT_BACK, ResolutionType.SENT_BACK_BY_HAND}


@transaction.atomic
def accept(movement_id: str, *, actor: str, note: str, now: datetime) -> BankTransaction:
    """The payment of its own code succeeds by it: paid late, or too much or too little."""
    payment_id = BankTransaction.objects.values_list("payment_id", flat=True).get(pk=movement_id)
    payment = None if payment_id is None else _lock_payable(payment_id, now)
    movement = _lock_open(movement_id)
    _check_no_probable_duplicate(movement)
    if (
        payment is None
        or movement.payment_id != payment.id
        or ResolutionType.ACCEPTED not in allowed_types(movement)
    ):
        raise ActionNotAllowed("This money cannot be accepted: its payment is not waiting for money.")
    return _credit(movement, payment, ResolutionType.ACCEPTED, actor, note, now)


@transaction.atomic
def attach(movement_id: str, *, payment_id: str, actor: str, note: str, now: datetime) -> BankTransaction:
    """Another payment of a merchant of the same bank succeeds by it, whatever amount was asked there."""
    try:
        payment = _lock_payable(payment_id, now)
    except PaymentNotFound:
        raise ActionNotAllowed(f"There is no payment {payment_id}.") from None
    movement = _lock_open(movement_id)
    _check_no_probable_duplicate(movement)
    if ResolutionType.ATTACHED not in allowed_types(movement):
        raise ActionNotAllowed("Only a credit can be attached to a payment.")
    if payment is None:
        raise ActionNotAllowed(f"Payment {payment_id} is not waiting for a QR payment.")
    if payment.merchant.bank != movement.bank:
        raise ActionNotAllowed(f"Payment {payment_id} belongs to a merchant of another bank.")
    if (payee := returns.merchant_of_biller(movement)) not in (None, payment.merchant):
        raise ActionNotAllowed(
            f"This money was paid to {payee.name}: send it back, or attach it to one of their payments."
        )
    resolution_type = (
        ResolutionType.ACCEPTED if movement.payment_id == payment.id else ResolutionType.ATTACHED
    )
    return _credit(movement, payment, resolution_type, actor, note, now)


@transaction.atomic
def send_back(
    movement_id: str, *, actor: str, note: str, now: datetime, destination: ReturnDestination | None = None
) -> Return:
    """Order it back: to the payer's account as the bank told it, or to the one that the payer named."""

    def create(movement: BankTransaction) -> Return:
        target = (
            returns.destination_from_staff(movement, destination)
            if destination
            else returns.destination_of_payer(movement)
        )
        returns.check_bank_can_send(movement, target)
        return returns.order_return(movement, target, actor=actor, note=note, now=now)

    return _return_to_payer(movement_id, create, ResolutionType.SENT_BACK, actor, note, now)


@transaction.atomic
def record_manual_return(
    movement_id: str, *, bank_reference: str, actor: str, note: str, now: datetime
) -> Return:
    """Note that it was sent back at the bank itself, under the bank's reference."""

    def create(movement: BankTransaction) -> Return:
        return returns.record_manual_return(
            movement, bank_reference=bank_reference, actor=actor, note=note, now=now
        )

    return _return_to_payer(movement_id, create, ResolutionType.SENT_BACK_BY_HAND, actor, note, now)


@transaction.atomic
def dismiss(subject_id: str, *, actor: str, note: str, now: datetime) -> Resolution:
    """Nothing is to be done about a message, or about a reversal of money that we never had."""
    if subject_id.startswith("rcp_"):
        movement = _lock_open(subject_id)
        if ResolutionType.DISMISSED not in allowed_types(movement):
            raise ActionNotAllowed("Money cannot be dismissed: accept it, attach it or send it back.")
        movement.resolve(ResolutionState.DISMISSED, now=now)
        approvals.cancel(subject_id, now=now)
    elif (message := resolution_records.lock_message(subject_id)) is None:
        raise ActionNotAllowed("This message is not an open exception.")
    elif isinstance(message, TransferContradiction) and card_contradictions.is_payment_pending(message):
        raise ActionNotAllowed("The card payment is still pending: mark it as failed.")
    return resolution_records.save(
        resolution_records.draft(subject_id, ResolutionType.DISMISSED, actor, note, now)
    )


@transaction.atomic
def merge(movement_id: str, *, actor: str, note: str, now: datetime) -> Resolution:
    """It is the same bank transaction as the one that it probably is: only that one counts."""
    unlocked = BankTransaction.objects.get(pk=movement_id)
    if unlocked.payment_id is not None:
        Payment.objects.locked(unlocked.payment_id)
    other = probable_duplicates.find([unlocked]).get(movement_id)
    # In order of their ids, so that two people cannot merge the two with each other.
    for each in sorted([movement_id, *([other.id] if other else [])]):
        BankTransaction.objects.locked(each)
    movement = _lock_open(movement_id)
    found = probable_duplicates.find([movement]).get(movement_id)
    if other is None or found != other:
        raise ActionNotAllowed("This is not, or no longer, a probable duplicate of another bank transaction.")
    if reversals.find_unapplied(movement) is not None:
        raise ActionNotAllowed(
            "The bank is reversing money of this transaction: ask the bank which one it means."
        )
    return merges.merge(movement, found, actor=actor, note=note, now=now)


def write_off(movement_id: str, *, actor: str, note: str, now: datetime) -> Resolution | Approval:
    """What a bank took back had left already, as it says when asked: the operator's loss.

    What can be taken back by now is taken, and is no loss. A loss ends when that comes later.
    """
    matching.apply(movement_id=movement_id, now=now)
    return _write_off(movement_id, actor, note, now)


@transaction.atomic
def credit_returned_refund(refund_id: str, *, actor: str, note: str, now: datetime) -> Resolution:
    """A refund's money came back to us: the merchant has it again."""
    Payment.objects.locked(Refund.objects.values_list("payment_id", flat=True).get(pk=refund_id))
    refund = Refund.objects.locked(refund_id)
    if refund.returned_at is None:
        raise ActionNotAllowed("The bank has not returned the money of this refund.")
    resolution = resolution_records.save(
        resolution_records.draft(refund_id, ResolutionType.KEPT, actor, note, now, refund.payment_id)
    )
    ledger.accept(
        merchant_id=refund.merchant_id,
        subject_id=refund_id,
        amount=refund.amount,
        held_from=refund.route,
        now=now,
    )
    return resolution


def allowed_types(movement: BankTransaction) -> frozenset[ResolutionType]:
    """What can be decided about it now. Whether its bank can send, `returns.check_bank_can_send` knows."""
    found = _allowed_if_confirmed(movement)
    is_settled = movement.is_confirmed or movement.resolution_state == ResolutionState.MERGED
    return found if is_settled else found - RETURN_TYPES | {ResolutionType.CONFIRMED}


def _allowed_if_confirmed(movement: BankTransaction) -> frozenset[ResolutionType]:
    if movement.resolution_state in REOPENABLE:
        return frozenset({ResolutionType.REOPENED})
    if movement.match_result not in HELD_RESULTS or movement.resolution_state != ResolutionState.OPEN:
        return frozenset()
    if movement.kind == BankTransactionKind.REVERSAL:
        return frozenset(
            {ResolutionType.DISMISSED}
            if approvals.is_waiting(movement.id)
            else {ResolutionType.DISMISSED, ResolutionType.WRITTEN_OFF}
        )
    if probable_duplicates.find([movement]):
        return frozenset({ResolutionType.MERGED})
    types = {ResolutionType.ATTACHED, ResolutionType.SENT_BACK, ResolutionType.SENT_BACK_BY_HAND}
    if (
        movement.match_result in (MatchResult.LATE, MatchResult.AMOUNT_MISMATCH)
        and movement.payment is not None
    ):
        types |= {ResolutionType.ACCEPTED} if movement.payment.status in PAYABLE else set()
    return frozenset(types)


@transaction.atomic
def _write_off(movement_id: str, actor: str, note: str, now: datetime) -> Resolution | Approval:
    reversal = _lock_open(movement_id)
    if ResolutionType.WRITTEN_OFF not in allowed_types(reversal):
        raise ActionNotAllowed("Only a reversal that could not be covered can be written off, and only once.")
    return write_offs.request(reversal, actor=actor, note=note, now=now)


def _lock_payable(payment_id: str, now: datetime) -> Payment | None:
    """A QR payment that still waits for money, under its lock. Raises PaymentNotFound."""
    payment: Payment = Payment.objects.locked(payment_id)
    payments.store_expiry(payment, now)
    is_payable = payment.qr_code_id is not None and payment.status in PAYABLE
    return payment if is_payable else None


def _lock_open(movement_id: str) -> BankTransaction:
    """Under its lock, and not decided yet. Raises AlreadyResolved."""
    movement: BankTransaction = BankTransaction.objects.locked(movement_id)
    if movement.resolution_state == ResolutionState.TAKEN_BACK:
        raise AlreadyResolved("The bank has reversed this money: there is nothing to decide.")
    if movement.resolution_state != ResolutionState.OPEN:
        raise resolution_records.already_resolved(movement_id)
    return movement


def _check_no_probable_duplicate(movement: BankTransaction) -> None:
    """Raises ActionNotAllowed for money that is probably counted already."""
    for other in probable_duplicates.find([movement]).values():
        raise ActionNotAllowed(explanations.of_probable_duplicate(movement, other))


def _credit(
    movement: BankTransaction,
    payment: Payment,
    resolution_type: ResolutionType,
    actor: str,
    note: str,
    now: datetime,
) -> BankTransaction:
    reversal = reversals.find_due(movement)
    crediting.credit_from_suspense(
        movement,
        payment,
        resolution_records.draft(movement.id, resolution_type, actor, note, now, payment.id),
    )
    # What the bank took back of it while it waited is the merchant's loss from now on.
    reversals.apply_if_due(reversal, movement, payment, now=now)
    return movement


def _return_to_payer(
    movement_id: str,
    create: Callable[[BankTransaction], Return],
    resolution_type: ResolutionType,
    actor: str,
    note: str,
    now: datetime,
) -> Return:
    # Under the payment's lock: another report of this money can be credited to the payment meanwhile.
    payment_id = BankTransaction.objects.values_list("payment_id", flat=True).get(pk=movement_id)
    if payment_id is not None:
        Payment.objects.locked(payment_id)
    movement = _lock_open(movement_id)
    _check_no_probable_duplicate(movement)
    if not movement.is_confirmed:
        raise ActionNotAllowed(
            "Only an uploaded statement reports this money. The bank or a second person must confirm it "
            "before "
            "it can be sent."
        )
    if resolution_type not in allowed_types(movement):
        raise ActionNotAllowed("There is no money of this bank transaction that could go back.")
    if reversals.find_unapplied(movement) is not None:
        raise ActionNotAllowed(
            "The bank is reversing money of this transaction: ask the bank how much is left."
        )
    try:
        payer_return = create(movement)
    except NoDestination:
        raise ActionNotAllowed("The bank did not report the payer's account: enter one.") from None
    except NoSender:
        raise ActionNotAllowed(
            "Money cannot be sent by this bank from here: send it at the bank, then record a manual return."
        ) from None
    resolution_records.save(
        resolution_records.draft(movement_id, resolution_type, actor, note, now, movement.payment_id)
    )
    return payer_return


REOPENABLE = (ResolutionState.DISMISSED, ResolutionState.WRITTEN_OFF, ResolutionState.MERGED)


def reopen(subject_id: str, *, actor: str, note: str, now: datetime) -> Resolution:
    """Open it again; what a bank took back and can be taken by now is taken in the next commit."""
    if not subject_id.startswith("rcp_"):
        return _reopen_message(subject_id, actor, note, now)
    resolution = _reopen_transaction(subject_id, actor, note, now)
    matching.apply(movement_id=subject_id, now=now)
    return resolution


@transaction.atomic
def _reopen_message(notification_id: str, actor: str, note: str, now: datetime) -> Resolution:
    found = resolution_records.lock_message(notification_id)
    latest = resolution_records.latest(notification_id)
    if found is None or latest is None or latest.type != ResolutionType.DISMISSED:
        raise _cannot_reopen(latest)
    return resolution_records.save(
        resolution_records.draft(notification_id, ResolutionType.REOPENED, actor, note, now)
    )


@transaction.atomic
def _reopen_transaction(movement_id: str, actor: str, note: str, now: datetime) -> Resolution:
    movement = BankTransaction.objects.locked(movement_id)
    if movement.resolution_state not in REOPENABLE:
        raise _cannot_reopen(resolution_records.latest(movement_id))
    undo = merges.undo if movement.resolution_state == ResolutionState.MERGED else reversals.reopen
    undo(movement, now=now)
    return resolution_records.save(
        resolution_records.draft(movement_id, ResolutionType.REOPENED, actor, note, now)
    )


def _cannot_reopen(latest: Resolution | None) -> ActionNotAllowed:
    if latest is not None and latest.type == ResolutionType.REOPENED:
        return resolution_records.already_resolved(latest.subject_id)
    return ActionNotAllowed("Only what was dismissed, merged or written off can be reopened.")
