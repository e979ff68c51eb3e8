"""Payments by card token: store the payment, call the acquirer outside of a transaction, store the result.

The acquirer charges once for one payment id. A charge is never requested again: after a call without an
answer, the acquirer is only asked (`payments.card_inquiries`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

import banks
from banks import Acquirer, ChargeRequest, ChargeResult, parallel
from core import clock, request_context
from core.database import rows
from core.failures import PROCESSING_ERROR
from core.work import due_work
from core.work.bulkhead import Bulkhead, BulkheadFull
from ledger import accounts
from ledger.models import AccountType
from ledger.services import Fee
from merchants.models import Merchant, Mode
from payments import services as payments
from payments.errors import AcquirerNotConfigured, AcquirerUnavailable, SafeModeOn, TooManyCardPayments
from payments.models import CardCharge, ChargeState, Payment, PaymentStatus
from payments.payers import Payer
from transfers import circuit_breakers, history, safe_mode
from transfers.circuit_breakers import Counterparty

ACQUIRERS = {Mode.TEST: "sandbox", Mode.LIVE: "omise"}
# Before the first inquiry about a charge whose call was not answered, before the second and so on.
INQUIRY_DELAYS = [timedelta(seconds=seconds) for seconds in (2, 5, 10, 30, 60, 300, 3600)]
# A fee that is unknown for this long is asked for no more: staff get a question. Until then the delay grows.
FEE_WITHIN, FEE_DELAY_OF_AGE, NEVER = timedelta(days=14), 4, timedelta(days=36_500)
# Longest delay while the payer may be on the page of 3-D Secure. Acquirers fail a charge that is not
# authorised within 30 minutes.
MAX_AUTHORISATION_DELAY, AUTHORISATION_PERIOD = timedelta(minutes=1), timedelta(minutes=30)
# A visit to the return page causes an inquiry, but at most one in 5 s.
RETURN_INQUIRY_INTERVAL = timedelta(seconds=5)
# If the acquirer does not know a charge after 10 minutes, the request never arrived.
MISSING_AFTER = timedelta(minutes=10)
# A charge is requested within 30 s after it was stored, long before MISSING_AFTER.
CHARGE_WITHIN = timedelta(seconds=30)
# Most calls end within 2 s, and then a slot is free.
RETRY_AFTER_SECONDS = 2
SAFE_MODE_RETRY_SECONDS = 60  # staff end safe mode, which takes minutes or longer
_calls = Bulkhead()


class ChargeAlreadyCompleted(Exception):
    """The card payment is not pending any more."""


@dataclass(frozen=True, slots=True)
class Purchase:
    """A valid request for a card payment: the payment, its charge, the acquirer and the token."""

    payment: Payment
    charge: CardCharge
    acquirer: Acquirer = field(repr=False)
    token: str = field(repr=False)


def draft(*, merchant: Merchant, token_id: str, amount: int, now: datetime, **fields: Any) -> Purchase:
    """Build a card payment over `amount` satang without storing it. Raises AcquirerNotConfigured."""
    name = ACQUIRERS[Mode(merchant.mode)]
    try:
        acquirer = banks.acquirer(name)
    except banks.UnknownBank:
        raise AcquirerNotConfigured() from None
    payment = payments.draft(Payment.new_id(now), merchant=merchant, amount=amount, created_at=now, **fields)
    charge = CardCharge(
        payment=payment,
        acquirer=name,
        due_at=now + timedelta(seconds=acquirer.seconds),
        created_at=now,
        **request_context.columns(),
    )
    return Purchase(payment, charge, acquirer, token_id)


@contextmanager
def slot(purchase: Purchase) -> Iterator[None]:
    """Hold one of the CARD_CONCURRENCY slots of this process. One merchant may hold half of them.

    Raises AcquirerUnavailable while the circuit is open. Inquiries open it, but not charges, because a
    merchant can make a charge slow with a test token. Raises TooManyCardPayments at once if no slot is free,
    because a waiting request would hold a thread. Raises SafeModeOn after a restore: the payer may have paid
    before it.
    """
    now = clock.now()
    if safe_mode.is_on():
        raise SafeModeOn(retry_after=SAFE_MODE_RETRY_SECONDS)
    open_until = circuit_breakers.open_until(counterparty(purchase.charge.acquirer), now)
    if open_until is not None:
        raise AcquirerUnavailable(retry_after=ceil((open_until - now).total_seconds()))
    total = settings.CARD_CONCURRENCY
    try:
        with _calls.hold(purchase.payment.merchant_id, total=total, share=(total + 1) // 2):
            yield
    except BulkheadFull:
        raise TooManyCardPayments(retry_after=RETRY_AFTER_SECONDS) from None


def counterparty(acquirer: str) -> Counterparty:
    """Return the counterparty of charges, which is also that of refunds to cards."""
    return Counterparty(f"acquirer:{acquirer}")


def store(purchase: Purchase) -> None:
    """Store the payment and its charge, before the acquirer is called."""
    rows.insert_together([purchase.payment, purchase.charge])


def request_charge(purchase: Purchase) -> ChargeResult:
    """Charge the card, outside of a transaction: the call may take several seconds."""
    payment = purchase.payment
    if clock.now() - payment.created_at > CHARGE_WITHIN:  # the process stood still
        return ChargeResult("unknown")
    return_uri = f"{settings.BASE_URL}/pay/cards/{payment.id}"  # our page, after 3-D Secure
    charge = ChargeRequest(payment.id, purchase.token, payment.amount, return_uri)
    (result,) = parallel.run_all([lambda: purchase.acquirer.charge(charge)], default=ChargeResult("unknown"))
    return result


def inquire_soon(payment_id: str, *, now: datetime) -> None:
    """Make the next inquiry due now: the payer's browser came back. The visit itself proves nothing."""
    pending = CardCharge.objects.filter(pk=payment_id, state=ChargeState.PENDING)
    not_recent = Q(returned_at=None) | Q(returned_at__lte=now - RETURN_INQUIRY_INTERVAL)
    pending.filter(not_recent).update(returned_at=now, due_at=now)


def complete(payment_id: str, result: ChargeResult, *, now: datetime) -> Payment | None:
    """Apply the acquirer's result to the payment, once, in the caller's transaction.

    Returns None if the acquirer refused the token: then the payment is deleted.
    """
    payment, charge = _lock(payment_id)
    if charge.is_open and _differs_from_request(payment, result):
        _record_contradiction(payment, charge, result, now)
        _keep_pending(payment, charge, result, now)
    elif charge.is_open:
        _OUTCOME_HANDLERS[result.outcome](payment, charge, result, now)
    elif result.outcome == "succeeded" and payment.status == PaymentStatus.FAILED:
        _record_contradiction(payment, charge, result, now)
    elif charge.awaits_fee and (fee := _fee(result)) is not None:
        record_fee(payment, charge, fee, now=now)
    elif charge.awaits_fee:
        charge.set_fields(due_at=now + _fee_delay(charge, now))
    return payment if payment.pk else None


@transaction.atomic
def fail_manually(payment_id: str, *, now: datetime) -> None:
    """Fail a payment whose wrong amount staff refunded at the acquirer. Raises ChargeAlreadyCompleted."""
    payment, charge = _lock(payment_id)
    if not charge.is_open:
        raise ChargeAlreadyCompleted(payment_id)
    _fail(payment, charge, ChargeResult("not_sent"), now)


def _lock(payment_id: str) -> tuple[Payment, CardCharge]:
    """Lock the payment, then its charge."""
    return Payment.objects.locked(payment_id), CardCharge.objects.select_for_update().get(pk=payment_id)


def _record_contradiction(payment: Payment, charge: CardCharge, result: ChargeResult, now: datetime) -> None:
    """Record that the acquirer took money for a payment that did not succeed here. Staff must look at it."""
    is_other = _differs_from_request(payment, result)
    history.record_contradiction(
        payment.id,
        merchant_id=payment.merchant_id,
        route=accounts.acquirer(charge.acquirer),
        amount=payment.amount,
        state=payment.status,
        answer=result.outcome,
        answer_amount=result.amount if is_other else None,
        answer_currency=(result.currency or "")[:3] if is_other else "",
        bank_reference=result.charge_id or charge.charge_id,
        now=now,
    )


def _differs_from_request(payment: Payment, result: ChargeResult) -> bool:
    """Return whether the acquirer charged another amount or currency. Such a charge is never a success."""
    if result.outcome != "succeeded" or result.amount is None:
        return False
    return (result.amount, result.currency) != (payment.amount, payment.currency)


def _succeed(payment: Payment, charge: CardCharge, result: ChargeResult, now: datetime) -> None:
    _store_details(payment, charge, result)
    source = accounts.acquirer(charge.acquirer)
    paid_at = clock.to_millisecond(result.paid_at or now)
    may_leave = payment.merchant.may_withdraw_unsettled
    into = AccountType.AVAILABLE if may_leave else AccountType.UNSETTLED
    fee = _fee(result)
    paid = payments.PaidPayment(payment, paid_at, Payer(), into=into, fee=fee)
    payments.succeed([paid], source=source, now=now)
    charge.transition(
        ChargeState.COMPLETED,
        completed_at=now,
        paid_at=paid_at,
        awaits_fee=fee is None,
        due_at=now + INQUIRY_DELAYS[0],
        unsettled=None if may_leave else payment.received - (fee.total if fee else 0),
    )


def _fee(result: ChargeResult) -> Fee | None:
    return None if result.fee is None or result.fee_vat is None else Fee(result.fee, result.fee_vat)


def _fee_delay(charge: CardCharge, now: datetime) -> timedelta:
    assert charge.completed_at is not None
    age = now - charge.completed_at
    delay = max(due_work.interval(INQUIRY_DELAYS, charge.inquiries), age / FEE_DELAY_OF_AGE)
    return delay if age < FEE_WITHIN else NEVER


def record_fee(payment: Payment, charge: CardCharge, fee: Fee, *, now: datetime) -> None:
    """Take a fee that the acquirer names after the payment succeeded. The caller holds both locks."""
    # If a refund uses most of the money, the balance pays the whole fee: the refund may still give it back.
    is_unsettled = (charge.unsettled or 0) >= fee.total
    source = accounts.acquirer(charge.acquirer)
    payments.charge_fee(payment, fee, source=source, is_unsettled=is_unsettled, now=now)
    charge.set_fields(awaits_fee=False, unsettled=F("unsettled") - (fee.total if is_unsettled else 0))


def use_unsettled(payment: Payment, amount: int) -> int:
    """Take up to `amount` satang that the acquirer has not paid, for a refund. Returns how many.

    The caller holds the lock of the payment, and makes them available.
    """
    charge = CardCharge.objects.select_for_update().get(pk=payment.pk)
    used = min(charge.unsettled or 0, amount)
    if used:
        charge.set_fields(unsettled=F("unsettled") - used)
    return used


def return_unsettled(payment: Payment, amount: int) -> bool:
    """Undo `use_unsettled`. False if the acquirer has paid since: then the money stays available."""
    charge = CardCharge.objects.select_for_update().filter(pk=payment.pk, unsettled__isnull=False)
    return charge.update(unsettled=F("unsettled") + amount) == 1


def _fail(payment: Payment, charge: CardCharge, result: ChargeResult, now: datetime) -> None:
    _store_details(payment, charge, result)
    payments.fail(payment, failure_code=result.failure_code or PROCESSING_ERROR, now=now)
    charge.transition(ChargeState.COMPLETED, completed_at=now)


def _discard(payment: Payment, charge: CardCharge, result: ChargeResult, now: datetime) -> None:
    """Delete the payment: the token is invalid and nothing was charged, so that a retry is a new payment."""
    if charge.state != ChargeState.SUBMITTED:  # an inquiry was first, and the merchant has the payment
        _fail(payment, charge, ChargeResult("not_sent"), now)
        return
    charge.transition(ChargeState.REFUSED, completed_at=now)
    payment.delete()


def _keep_pending(payment: Payment, charge: CardCharge, result: ChargeResult, now: datetime) -> None:
    _store_details(payment, charge, result)
    due_at = now + _inquiry_delay(payment, charge, now)
    if charge.state == ChargeState.SUBMITTED:
        payments.publish("payment.pending", [payment], now)
        charge.transition(ChargeState.PENDING, due_at=due_at)
    else:
        charge.set_fields(due_at=due_at)


def _inquiry_delay(payment: Payment, charge: CardCharge, now: datetime) -> timedelta:
    wait = due_work.interval(INQUIRY_DELAYS, charge.inquiries)
    may_be_authorised = payment.authorize_uri and now - charge.created_at < AUTHORISATION_PERIOD
    return min(wait, MAX_AUTHORISATION_DELAY) if may_be_authorised else wait


def _handle_missing(payment: Payment, charge: CardCharge, result: ChargeResult, now: datetime) -> None:
    """Wait for a charge that the acquirer does not know yet, and fail it after MISSING_AFTER."""
    is_lost = now - charge.created_at > MISSING_AFTER
    (_fail if is_lost else _keep_pending)(payment, charge, result, now)


def _store_details(payment: Payment, charge: CardCharge, result: ChargeResult) -> None:
    """Store the details of the card and the charge from the result."""
    if result.last4:
        payment.set_fields(card_last4=result.last4, card_brand=result.brand)
    if result.authorize_uri:
        payment.set_fields(authorize_uri=result.authorize_uri)
    if result.charge_id:
        charge.set_fields(charge_id=result.charge_id)


_OUTCOME_HANDLERS: dict[str, Callable[[Payment, CardCharge, ChargeResult, datetime], None]] = {
    "succeeded": _succeed,
    "declined": _fail,
    "refused": _discard,
    "not_sent": _fail,
    "pending": _keep_pending,
    "unknown": _keep_pending,
    "missing": _handle_missing,
}
