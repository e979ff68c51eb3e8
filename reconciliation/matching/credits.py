"""Apply credits and declines: find the payment of each, decide its match result, and move the money."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from core.database import rows
from core.failures import DECLINED_BY_BANK
from ledger import accounts, services as ledger
from merchants.models import LateMoneyPolicy
from payments import exceptions, expiry_sweep, services as payments
from payments.models import Payment, PaymentException, PaymentStatus
from qrcodes.models import QrCode
from reconciliation.matching import (
    crediting,
    deduplication,
    match_rules,
    probable_duplicates,
    reversals,
)
from reconciliation.models import HELD_RESULTS, BankTransaction, MatchResult, listing
from refunds import services as refunds

log = logging.getLogger("reconciliation")
LOCK_CREDITS = (
    f"SELECT {rows.columns(BankTransaction, '(found.bank_transaction)')}, has_reversal, "  # noqa: S608
    f"{rows.columns(Payment, '(found.payment)')} FROM reconciliation_lock_credits(%s::bigint[], %s) AS found"
)


@dataclass(slots=True)
class Match:
    """A bank transaction, the payment that its reference names, and the result; both rows are locked.

    has_reversal: it is a credit, and its bank has reported a reversal with one of its ids.
    """

    bank_transaction: BankTransaction
    payment: Payment | None
    has_reversal: bool
    result: MatchResult = MatchResult.PENDING


class PaymentChanged(Exception):
    """The bank transaction was attached to another payment meanwhile."""


def apply(bank_transaction: BankTransaction, now: datetime) -> BankTransaction:
    """Apply a credit or a decline. The caller opens the transaction. Raises PaymentChanged."""
    (match,) = _lock([bank_transaction])
    if match.bank_transaction.match_result == MatchResult.PENDING:
        _apply_new(match, now)
    else:
        _apply_again(match, now)
    return match.bank_transaction


def _apply_new(match: Match, now: datetime) -> None:
    """Decide the result, once, and act on it."""
    bank_transaction, payment = match.bank_transaction, match.payment
    reversal = reversals.find_due(bank_transaction, is_new=True) if match.has_reversal else None
    crediting.confirm_if_bank_reported(bank_transaction, now=now)
    expiry_sweep.store([payment] if payment else [], now)
    match.result = match_rules.decide(bank_transaction, payment)
    is_declined = match.result == MatchResult.DECLINED
    if is_declined and payment and match_rules.is_before_creation(bank_transaction, payment):
        match.payment = None  # the bank declined something else
    _act_on([match], now)
    if reversal is not None:
        reversals.apply(reversal, bank_transaction, payment, now=now)


def _apply_again(match: Match, now: datetime) -> None:
    """Act on what came later: a reversal, the credit's bank id, a confirmation, details of the payer."""
    bank_transaction, payment = match.bank_transaction, match.payment
    if bank_transaction.payment != payment:
        raise PaymentChanged()
    reversal = reversals.find_due(bank_transaction) if match.has_reversal else None
    credited_payment = payment if bank_transaction.is_credited else None
    if credited_payment is not None:
        refunds.lock_waiting(credited_payment)  # before any account is locked
    crediting.confirm_if_bank_reported(bank_transaction, now=now)
    if reversal is not None:
        reversals.apply(reversal, bank_transaction, payment, now=now)
    if credited_payment is not None:
        # Refunds may wait for details of the payer. Last, so that no return is ordered for money that the
        # bank has reversed.
        payments.add_payer_details(credited_payment, bank_transaction.payer, now=now)
        refunds.send_waiting(credited_payment, now=now)


def apply_together(bank_transactions: Sequence[BankTransaction], *, now: datetime) -> set[str]:
    """Apply credits of one bank with a fixed number of statements. The caller opens the transaction.

    Returns the ids of those that need `apply`: late, reversed, or probably reported before.
    """
    matches = [
        match
        for match in _lock(bank_transactions)
        if match.bank_transaction.match_result == MatchResult.PENDING
    ]
    pairs = [(match.bank_transaction, match.payment) for match in matches if match.payment]
    credits_per_payment = Counter(payment.id for _, payment in pairs)
    expiry_sweep.store(list({payment.id: payment for _, payment in pairs}.values()), now)
    returned = probable_duplicates.payments_with_returned_money(list(credits_per_payment))
    simple = []
    for match in matches:
        bank_transaction, payment_id = match.bank_transaction, match.payment.id if match.payment else ""
        match.result = match_rules.result_for(bank_transaction, match.payment)
        if (
            match.result != MatchResult.LATE
            and not bank_transaction.later_bank_reference
            and not match.has_reversal
            and payment_id not in returned
            and credits_per_payment[payment_id] <= 1
        ):
            simple.append(match)
    _act_on(simple, now)
    return {match.bank_transaction.id for match in matches} - {match.bank_transaction.id for match in simple}


def foresee(bank_transactions: Sequence[BankTransaction], *, paid: set[str]) -> None:
    """Give credits that are not stored the payment and the result that they would get now, without a lock.

    paid: the payments of which earlier ones got `applied`; these are added. The import decides again.
    """
    codes = QrCode.objects.filter(
        reference1__in={each.reference1 for each in bank_transactions},
        bank__in={each.bank for each in bank_transactions},
    ).select_related("payment__merchant")
    payments = {(code.reference1, code.biller_id): code.payment for code in codes}
    for each in bank_transactions:
        payment = payments.get((each.reference1, each.biller_id))
        each.payment, result = payment, match_rules.result_for(each, payment)
        accepts = payment is not None and payment.merchant.late_money == LateMoneyPolicy.ACCEPT
        if result == MatchResult.LATE and accepts:
            result = MatchResult.APPLIED
        if payment is not None and result == MatchResult.APPLIED:
            result = MatchResult.DUPLICATE if payment.id in paid else result
            paid.add(payment.id)
        each.match_result = result


def _lock(bank_transactions: Sequence[BankTransaction]) -> list[Match]:
    """Lock bank transactions and their payments, each by id: see `sql/locks.sql`."""
    keys = deduplication.lock_keys(map(deduplication.pair_name, bank_transactions))
    found = rows.run(LOCK_CREDITS, [keys, sorted(each.id for each in bank_transactions)]).fetchall()
    matches: list[Match] = []
    payments: dict[str, Payment] = {}
    place = len(BankTransaction._meta.concrete_fields)
    for values in found:
        payment = rows.instance(Payment, values[place + 1 :])
        found_payment = payments.setdefault(payment.id, payment) if payment.id else None
        matches.append(Match(rows.instance(BankTransaction, values[:place]), found_payment, values[place]))
    return matches


def _act_on(matches: Sequence[Match], now: datetime) -> None:
    """Store the match results of one bank's transactions and move their money."""
    if not matches:
        return
    for match in matches:
        bank_transaction, payment = match.bank_transaction, match.payment
        bank_transaction.match_result, bank_transaction.matched_at = match.result, now
        bank_transaction.payment = payment
        bank_transaction.merchant_id = payment.merchant_id if payment else None
    names = ["match_result", "matched_at", "payment", "merchant"]
    rows.update_rows([match.bank_transaction for match in matches], names)
    source = accounts.bank(matches[0].bank_transaction.bank)
    held = [match for match in matches if match.result in HELD_RESULTS]
    waiting = _hold_in_suspense(held, source, now) if held else []
    pairs = [(match.bank_transaction, match.payment) for match in matches if match.payment]
    if paid := [pair for pair in pairs if pair[0].match_result == MatchResult.APPLIED]:
        crediting.credit(paid, source=source, now=now)
    for bank_transaction, payment in pairs:
        if bank_transaction.match_result == MatchResult.DECLINED and payment.status == PaymentStatus.PENDING:
            payments.fail(payment, failure_code=DECLINED_BY_BANK, now=now)
    if exception_ids := [match.bank_transaction.id for match in waiting if match.payment]:
        exceptions.publish(exception_ids, now=now)


def _hold_in_suspense(held: Sequence[Match], source: str, now: datetime) -> list[Match]:
    """Hold the money. Returns what waits for a decision: not late money that its merchant accepts."""
    new = [
        PaymentException(
            id=match.bank_transaction.id,
            payment=match.payment,
            reason=match.result,
            amount=match.bank_transaction.amount,
            reported_at=match.bank_transaction.received_at,
        )
        for match in held
        if match.payment
    ]
    exceptions.report(new)
    amounts = {match.bank_transaction.id: match.bank_transaction.amount for match in held}
    ledger.hold(amounts, source=source, now=now)
    waiting = [match for match in held if not _accept_late_money(match, now)]
    listing.show([match.bank_transaction.listed() for match in waiting])
    if waiting:
        found = ", ".join(f"{match.bank_transaction.id} ({match.result})" for match in waiting)
        log.warning("bank transactions from %s wait for staff: %s", source, found)
    return waiting


def _accept_late_money(match: Match, now: datetime) -> bool:
    """Credit late money if the merchant accepts it and no other report is probably the same money."""
    payment = match.payment
    if match.result != MatchResult.LATE or payment is None:
        return False
    accepts = payment.merchant.late_money == LateMoneyPolicy.ACCEPT
    if not accepts or probable_duplicates.find([match.bank_transaction]):
        return False
    crediting.accept_by_policy(match.bank_transaction, payment, now=now)
    return True
