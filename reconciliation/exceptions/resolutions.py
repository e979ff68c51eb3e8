"""What staff decide about exceptions. Each action is one commit, and a second click changes nothing.

Lock order: payment, then bank transaction. If two people act at once, the second one gets AlreadyResolved.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from approvals import services as approvals
from approvals.models import Approval, ApprovalKind
from audit_trail.acts import ActRefused
from core import ids
from ledger import accounts, services as ledger
from payments import expiry_sweep
from payments.errors import PaymentNotFound
from payments.models import Payment, PaymentStatus
from reconciliation.exceptions import contradictions, explanations, resolution_records
from reconciliation.exceptions.resolution_records import AlreadyResolved
from reconciliation.inquiries import confirmation_inquiries
from reconciliation.matching import (
    crediting,
    intake,
    probable_duplicates,
    refusals,
    returnable,
    returns,
    reversals,
    services as matching,
    statement_fees,
)
from reconciliation.models import (
    HELD_RESULTS,
    BankTransaction,
    BankTransactionKind,
    ConfirmationInquiry,
    Excess,
    MatchResult,
    Resolution,
    ResolutionState,
    ResolutionType,
    Return,
    listing,
)
from refunds.destinations import Destination
from refunds.models import Refund
from transfers.models import TransferContradiction

PAYABLE = (PaymentStatus.PENDING, PaymentStatus.EXPIRED)
ACCEPTABLE = (MatchResult.LATE, MatchResult.AMOUNT_MISMATCH, MatchResult.TIME_MISMATCH)
REOPENABLE = (ResolutionState.DISMISSED, ResolutionState.WRITTEN_OFF, ResolutionState.MERGED)
EXCESS_TYPES = frozenset({ResolutionType.SENT_BACK, ResolutionType.SENT_BACK_BY_HAND})
RETURN_TYPES = {*EXCESS_TYPES, ResolutionType.EXCESS_SENT_BACK}


def allowed_types(bank_transaction: BankTransaction) -> frozenset[ResolutionType]:
    """Return the possible resolutions. `returns.check_bank_can_send` checks whether the bank can send."""
    found = _allowed_if_confirmed(bank_transaction)
    is_settled = bank_transaction.is_confirmed or bank_transaction.resolution_state == ResolutionState.MERGED
    return found if is_settled else found - RETURN_TYPES | {ResolutionType.CONFIRMED}


def _allowed_if_confirmed(bank_transaction: BankTransaction) -> frozenset[ResolutionType]:
    if returns.find_open_excess(bank_transaction) is not None:
        return frozenset() if probable_duplicates.find([bank_transaction]) else EXCESS_TYPES
    if bank_transaction.resolution_state in REOPENABLE:
        return frozenset({ResolutionType.REOPENED})
    if (
        bank_transaction.match_result not in HELD_RESULTS
        or bank_transaction.resolution_state != ResolutionState.OPEN
    ):
        return frozenset()
    if bank_transaction.kind == BankTransactionKind.REVERSAL:
        types = {ResolutionType.DISMISSED}
        return frozenset(
            types if approvals.is_waiting(bank_transaction.id) else types | {ResolutionType.WRITTEN_OFF}
        )
    if probable_duplicates.find([bank_transaction]):
        return frozenset({ResolutionType.MERGED})
    types = {ResolutionType.ATTACHED, ResolutionType.SENT_BACK, ResolutionType.SENT_BACK_BY_HAND}
    if bank_transaction.match_result == MatchResult.UNMATCHED:
        types |= {ResolutionType.ACQUIRER}
    is_acceptable = bank_transaction.match_result in ACCEPTABLE
    if is_acceptable and bank_transaction.payment is not None and bank_transaction.payment.status in PAYABLE:
        types |= {ResolutionType.ACCEPTED}
        is_wrong_amount = bank_transaction.match_result == MatchResult.AMOUNT_MISMATCH
        if is_wrong_amount and bank_transaction.amount > bank_transaction.payment.amount:
            types |= {ResolutionType.EXCESS_SENT_BACK}
    return frozenset(types)


@resolution_records.decision(ResolutionType.ACCEPTED)
def accept(bank_transaction_id: str, *, note: str, now: datetime) -> BankTransaction:
    """Let late money, or money of a wrong amount or time, pay the payment that it names."""
    bank_transaction, payment = _lock_with_payment(bank_transaction_id, now)
    if payment is None or ResolutionType.ACCEPTED not in allowed_types(bank_transaction):
        raise ActRefused(_("This money cannot be accepted: its payment is not waiting for money."))
    return _credit(bank_transaction, payment, ResolutionType.ACCEPTED, note, now)


@resolution_records.decision(ResolutionType.ATTACHED)
def attach(bank_transaction_id: str, *, payment_id: str, note: str, now: datetime) -> BankTransaction:
    """Let the money pay another payment at the same bank. The amounts may differ."""
    try:
        payment = _lock_payable(payment_id, now)
    except PaymentNotFound:
        raise ActRefused(_("There is no payment with this id.")) from None
    bank_transaction = lock_usable(bank_transaction_id)
    if ResolutionType.ATTACHED not in allowed_types(bank_transaction):
        raise ActRefused(_("Only a credit can be attached to a payment."))
    if payment is None:
        text = _("Payment %(payment)s is not waiting for a QR payment.")
        raise ActRefused(text % {"payment": payment_id})
    if payment.qr_code.bank != bank_transaction.bank:
        text = _("The code of payment %(payment)s is of another bank.")
        raise ActRefused(text % {"payment": payment_id})
    if (payee := returns.merchant_of_biller(bank_transaction)) not in (None, payment.merchant):
        text = _("This money was paid to %(payee)s: send it back, or attach it to one of their payments.")
        raise ActRefused(text % {"payee": payee.name})
    is_own = bank_transaction.payment_id == payment.id
    return _credit(
        bank_transaction, payment, ResolutionType.ACCEPTED if is_own else ResolutionType.ATTACHED, note, now
    )


@resolution_records.decision(ResolutionType.EXCESS_SENT_BACK)
def return_excess(
    bank_transaction_id: str, *, note: str, now: datetime, must_send: bool = False
) -> Return | Excess:
    """Let an over-payment pay its payment with the payment's amount, and order a return of the rest.

    The return goes to the payer's account as the bank reported it. If it is unknown, or if this bank cannot
    send a part, the excess waits for another decision, and is the result; with `must_send` it is NoWayBack.
    """
    bank_transaction, payment = _lock_with_payment(bank_transaction_id, now)
    returnable.check_confirmed(bank_transaction)
    if payment is None or ResolutionType.EXCESS_SENT_BACK not in allowed_types(bank_transaction):
        has_none = payment is not None and bank_transaction.amount <= payment.amount
        refused = refusals.NoExcess if has_none else ActRefused
        raise refused(_("This money has no excess, or its payment is not waiting for money."))
    returnable.check_not_reversed(bank_transaction)
    destination = returns.find_destination_of_excess(bank_transaction)
    if must_send and destination is None:
        raise refusals.NoWayBack("The excess cannot be sent to the payer's account from here.")
    resolution = resolution_records.draft(
        bank_transaction.id, ResolutionType.EXCESS_SENT_BACK, note, now, payment.id
    )
    crediting.credit_from_suspense(bank_transaction, payment, resolution, received=payment.amount)
    amount = bank_transaction.amount - payment.amount
    excess = Excess.objects.create(bank_transaction=bank_transaction, amount=amount, created_at=now)
    excess.publish_state()
    return returns.order_return(bank_transaction, destination, note=note, now=now) if destination else excess


@resolution_records.decision(ResolutionType.SENT_BACK)
def send_back(
    bank_transaction_id: str, *, note: str, now: datetime, destination: Destination | None = None
) -> Return:
    """Order a return to the payer's account as the bank reported it, or to the account that staff entered."""
    bank_transaction = _lock_returnable(bank_transaction_id, ResolutionType.SENT_BACK)
    target = destination or returns.destination_of_payer(bank_transaction)
    returns.check_bank_can_send(bank_transaction, target)
    payer_return = returns.order_return(bank_transaction, target, note=note, now=now)
    resolution_records.record(
        bank_transaction_id, ResolutionType.SENT_BACK, note, now, bank_transaction.payment_id
    )
    return payer_return


@resolution_records.decision(ResolutionType.SENT_BACK_BY_HAND)
def record_manual_return(
    bank_transaction_id: str, *, bank_reference: str, note: str, now: datetime
) -> Return:
    """Record a return that staff made at the bank, with the bank's reference."""
    bank_transaction = _lock_returnable(bank_transaction_id, ResolutionType.SENT_BACK_BY_HAND)
    payer_return = returns.record_manual_return(
        bank_transaction, bank_reference=bank_reference, note=note, now=now
    )
    resolution_records.record(
        bank_transaction_id, ResolutionType.SENT_BACK_BY_HAND, note, now, bank_transaction.payment_id
    )
    return payer_return


@resolution_records.decision(ResolutionType.DISMISSED)
def dismiss(subject_id: str, *, note: str, now: datetime) -> Resolution:
    """Close a message, a contradiction, or a reversal of money that we never had."""
    if subject_id.startswith("btx_"):
        bank_transaction = _lock_open(subject_id)
        if ResolutionType.DISMISSED not in allowed_types(bank_transaction):
            raise ActRefused(_("Money cannot be dismissed: accept it, attach it or send it back."))
        bank_transaction.resolve(ResolutionState.DISMISSED, now=now)
        approvals.cancel(subject_id, now=now)
    elif (message := resolution_records.lock_message(subject_id)) is None:
        raise ActRefused(_("This message is not an open exception."))
    elif isinstance(message, TransferContradiction) and contradictions.is_card_payment_pending(message):
        raise ActRefused(_("The card payment is still pending: mark it as failed."))
    return resolution_records.record(subject_id, ResolutionType.DISMISSED, note, now)


@resolution_records.decision(ResolutionType.MERGED)
def merge(bank_transaction_id: str, *, note: str, now: datetime) -> Resolution:
    """Merge the bank transaction into its probable duplicate: only that one counts.

    Both stay as the bank made them, so that their ids and lines are recognised later.
    """
    unlocked = BankTransaction.objects.get(pk=bank_transaction_id)
    if unlocked.payment_id is not None:
        Payment.objects.locked(unlocked.payment_id)
    other = probable_duplicates.find([unlocked]).get(bank_transaction_id)
    # In order of their ids, so that two people cannot merge the two with each other.
    for each in sorted([bank_transaction_id, *([other.id] if other else [])]):
        BankTransaction.objects.locked(each)
    bank_transaction = _lock_open(bank_transaction_id)
    found = probable_duplicates.find([bank_transaction]).get(bank_transaction_id)
    if other is None or found != other:
        raise ActRefused(_("This is not, or no longer, a probable duplicate of another bank transaction."))
    if reversals.find_unapplied(bank_transaction) is not None:
        raise ActRefused(
            _("The bank is reversing money of this transaction: ask the bank which one it means.")
        )
    bank_transaction.resolve(ResolutionState.MERGED, now=now)
    resolution = resolution_records.draft(
        bank_transaction_id, ResolutionType.MERGED, note, now, bank_transaction.payment_id
    )
    resolution.merged_into_id = found.id
    # The ledger accepts one journal of a type for each subject.
    resolution.ledger_subject_id = ids.new("mrg_", now) if resolution.reopen_count else bank_transaction_id
    bank, amount = accounts.bank(bank_transaction.bank), bank_transaction.amount
    ledger.merge(subject_id=resolution.ledger_subject_id, amount=amount, bank=bank, now=now)
    statement_fees.ask_about_merged(bank_transaction, found, now)
    return resolution_records.save(resolution)


@resolution_records.decision(ResolutionType.KEPT)
def credit_returned_refund(refund_id: str, *, note: str, now: datetime) -> Resolution:
    """Credit the merchant with the money of a refund that the bank returned."""
    Payment.objects.locked(Refund.objects.values_list("payment_id", flat=True).get(pk=refund_id))
    refund = Refund.objects.locked(refund_id)
    if refund.returned_at is None:
        raise ActRefused(_("The bank has not returned the money of this refund."))
    resolution = resolution_records.record(refund_id, ResolutionType.KEPT, note, now, refund.payment_id)
    merchant_id, amount, route = refund.merchant_id, refund.amount, refund.route
    ledger.accept(merchant_id=merchant_id, subject_id=refund_id, amount=amount, held_from=route, now=now)
    return resolution


def write_off(bank_transaction_id: str, *, note: str, now: datetime) -> Resolution | Approval:
    """Book an uncovered reversal as the operator's loss.

    First, take the money that is available now. If the rest becomes available later, the write-off ends.
    """
    matching.apply(bank_transaction_id=bank_transaction_id, now=now)
    return _write_off(bank_transaction_id, note=note, now=now)


@resolution_records.decision(ResolutionType.WRITTEN_OFF)
def _write_off(bank_transaction_id: str, *, note: str, now: datetime) -> Resolution | Approval:
    """Book it now, or wait for a second person."""
    reversal = _lock_open(bank_transaction_id)
    if ResolutionType.WRITTEN_OFF not in allowed_types(reversal):
        raise ActRefused(_("Only a reversal that could not be covered can be written off, and only once."))
    merchant = returns.merchant_of_biller(reversal)
    payee = merchant.id if merchant else None
    outgoing = approvals.OutgoingMoney(ApprovalKind.WRITE_OFF, reversal.id, payee, reversal.amount, note=note)
    approval = approvals.request(outgoing, now=now)
    return approval if approval.is_waiting else book_write_off(approval, now=now)


def book_write_off(approval: Approval, *, now: datetime) -> Resolution:
    """Raises approvals.NotDecidable if there is nothing to write off any more."""
    reversal: BankTransaction = BankTransaction.objects.locked(approval.subject_id)
    if reversal.resolution_state != ResolutionState.OPEN:
        raise approvals.NotDecidable(_("There is nothing left to write off."))
    reversal.resolve(ResolutionState.WRITTEN_OFF, now=now)
    resolution = resolution_records.draft(reversal.id, ResolutionType.WRITTEN_OFF, approval.note, now)
    resolution.actor = approval.requested_by  # who wrote the note; the approval names the second person
    # The ledger accepts one journal of a type for each subject.
    resolution.ledger_subject_id = ids.new("wof_", now) if resolution.reopen_count else reversal.id
    route = accounts.bank(reversal.bank)
    ledger.write_off(subject_id=resolution.ledger_subject_id, amount=reversal.amount, to=route, now=now)
    return resolution_records.save(resolution)


def reopen(subject_id: str, *, note: str, now: datetime) -> Resolution:
    """Open an exception again. For a reversal, the next commit takes the money that is available now."""
    resolution = _reopen(subject_id, note=note, now=now)
    if subject_id.startswith("btx_"):
        matching.apply(bank_transaction_id=subject_id, now=now)
    return resolution


@resolution_records.decision(ResolutionType.REOPENED)
def _reopen(subject_id: str, *, note: str, now: datetime) -> Resolution:
    is_transaction = subject_id.startswith("btx_")
    lock: Callable[[str], Any] = resolution_records.lock_message
    if is_transaction:
        lock = BankTransaction.objects.locked
    found, latest = lock(subject_id), Resolution.latest(subject_id)
    is_dismissed = latest is not None and latest.type == ResolutionType.DISMISSED
    if found is None or not (found.resolution_state in REOPENABLE if is_transaction else is_dismissed):
        if latest is not None and latest.type == ResolutionType.REOPENED:
            raise resolution_records.already_resolved(subject_id)
        raise ActRefused(_("Only what was dismissed, merged or written off can be reopened."))
    if is_transaction:
        if found.resolution_state == ResolutionState.MERGED:
            merged = probable_duplicates.merge_resolution(found).ledger_subject_id
            ledger.unmerge(subject_id=merged, amount=found.amount, bank=accounts.bank(found.bank), now=now)
        reversals.reopen(found, now=now)
    elif isinstance(found, TransferContradiction):
        listing.show_order(found)
    else:
        intake.show([found])
    resolution = resolution_records.record(subject_id, ResolutionType.REOPENED, note, now)
    for inquiry in ConfirmationInquiry.objects.filter(notification=subject_id):
        confirmation_inquiries.show(inquiry)
    return resolution


def _lock_with_payment(bank_transaction_id: str, now: datetime) -> tuple[BankTransaction, Payment | None]:
    """An open bank transaction, and its payment if that still waits for money, both locked."""
    payment_id = BankTransaction.objects.values_list("payment_id", flat=True).get(pk=bank_transaction_id)
    payment = None if payment_id is None else _lock_payable(payment_id, now)
    return lock_usable(bank_transaction_id), payment


def _lock_payable(payment_id: str, now: datetime) -> Payment | None:
    """A QR payment that still waits for money, under its lock. Raises PaymentNotFound."""
    payment: Payment = Payment.objects.locked(payment_id)
    expiry_sweep.store([payment], now)
    is_payable = payment.qr_code_id is not None and payment.status in PAYABLE
    return payment if is_payable else None


def _lock_open(bank_transaction_id: str) -> BankTransaction:
    """An unresolved bank transaction, or one with an open excess, under its lock. Raises AlreadyResolved."""
    bank_transaction: BankTransaction = BankTransaction.objects.locked(bank_transaction_id)
    if bank_transaction.resolution_state == ResolutionState.TAKEN_BACK:
        raise AlreadyResolved(_("The bank has reversed this money: there is nothing to decide."))
    if (
        bank_transaction.resolution_state != ResolutionState.OPEN
        and returns.find_open_excess(bank_transaction) is None
    ):
        raise resolution_records.already_resolved(bank_transaction_id)
    return bank_transaction


def lock_usable(bank_transaction_id: str) -> BankTransaction:
    """Do what `_lock_open` does. Raises ProbableDuplicate for money that probably counts already."""
    bank_transaction = _lock_open(bank_transaction_id)
    for other in probable_duplicates.find([bank_transaction]).values():
        raise refusals.ProbableDuplicate(explanations.of_probable_duplicate(bank_transaction, other))
    return bank_transaction


def _lock_returnable(bank_transaction_id: str, type: ResolutionType) -> BankTransaction:
    """A bank transaction whose money can be returned in this way. Raises ActRefused."""
    BankTransaction.objects.locked_with_payment(bank_transaction_id)
    bank_transaction = lock_usable(bank_transaction_id)
    returnable.check_confirmed(bank_transaction)
    if type not in allowed_types(bank_transaction):
        raise ActRefused(_("This bank transaction has no money that can be returned."))
    returnable.check_not_reversed(bank_transaction)
    return bank_transaction


def _credit(
    bank_transaction: BankTransaction, payment: Payment, type: ResolutionType, note: str, now: datetime
) -> BankTransaction:
    reversal = reversals.find_due(bank_transaction)
    resolution = resolution_records.draft(bank_transaction.id, type, note, now, payment.id)
    crediting.credit_from_suspense(bank_transaction, payment, resolution)
    # From now on, a reversal that came while the money was held concerns the merchant.
    if reversal is not None:
        reversals.apply(reversal, bank_transaction, payment, now=now)
    return bank_transaction
