"""Payments by card token: commit, ask the acquirer with no transaction open, commit what it says.

Our payment id is the acquirer's key to charge once. Nobody charges again for it: what is not known is
inquired (`payments.card_inquiries`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q

import banks
from banks import Acquirer, ChargeRequest, ChargeResult, parallel
from core import clock, due_work, request_context, rows
from core.bulkhead import Bulkhead, BulkheadFull
from ledger import accounts
from merchants.errors import BankNotConfigured
from merchants.models import Merchant, Mode
from payments import services as payments
from payments.errors import AcquirerUnavailable, TooManyCardPayments
from payments.models import CardCharge, ChargeState, Payment, PaymentStatus
from payments.services import Payer
from transfers import circuit_breakers, history
from transfers.circuit_breakers import Counterparty

ACQUIRERS = {Mode.TEST: "sandbox", Mode.LIVE: "omise"}
# Before the first inquiry about a charge whose call was not answered, before the second and so on.
INQUIRY_DELAYS = [timedelta(seconds=seconds) for seconds in (2, 5, 10, 30, 60, 300, 3600)]
# While the payer may be at the page of 3-D Secure, the waits are no longer than this. Acquirers give up a
# charge that nobody authorised within the half hour.
MAX_AUTHORISATION_DELAY, AUTHORISATION_PERIOD = timedelta(minutes=1), timedelta(minutes=30)
# Each visit to our return page asks the acquirer, but only so often.
RETURN_INQUIRY_INTERVAL = timedelta(seconds=5)
# A charge that its acquirer does not know by then was never asked for.
MISSING_AFTER = timedelta(minutes=10)
# Nobody begins a charge later than this after writing it down: long before others take it for lost.
CHARGE_WITHIN = timedelta(seconds=30)
# Most calls end within this: a payment that found no slot is worth another try then.
RETRY_AFTER_SECONDS = 2
_calls = Bulkhead()


class ChargeAlreadyCompleted(Exception):
    """The card payment is not pending any more."""


@dataclass(frozen=True, slots=True)
class Purchase:
    """A card payment that passed every check of ours: the pending payment, and whom to ask for what."""

    payment: Payment
    charge: CardCharge
    acquirer: Acquirer = field(repr=False)
    token: str = field(repr=False)


def draft(*, merchant: Merchant, token_id: str, amount: int, now: datetime, **fields: Any) -> Purchase:
    """Nothing is stored yet; amount in satang. Raises BankNotConfigured."""
    name, acquirer = _acquirer_of(merchant)
    payment = payments.draft(Payment.new_id(now), merchant=merchant, amount=amount, created_at=now, **fields)
    cause = request_context.current()
    charge = rows.new(
        CardCharge,
        payment=payment,
        acquirer=name,
        due_at=now + timedelta(seconds=acquirer.seconds),
        actor=cause.actor,
        request_id=cause.request_id,
        created_at=now,
    )
    return Purchase(payment, charge, acquirer, token_id)


def _acquirer_of(merchant: Merchant) -> tuple[str, Acquirer]:
    name = ACQUIRERS[Mode(merchant.mode)]
    try:
        return name, banks.acquirer(name)
    except banks.UnknownBank:
        raise BankNotConfigured("This merchant has no acquirer for cards configured yet.") from None


@contextmanager
def slot(purchase: Purchase) -> Iterator[None]:
    """One of the CARD_CONCURRENCY slots of this process, half of which one merchant may hold.

    Raises TooManyCardPayments, AcquirerUnavailable. Nobody waits for a slot: a waiting request would hold a
    thread as well.
    """
    _check_circuit(purchase.charge.acquirer, clock.now())
    total = settings.CARD_CONCURRENCY
    try:
        with _calls.hold(purchase.payment.merchant_id, total=total, share=(total + 1) // 2):
            yield
    except BulkheadFull:
        raise TooManyCardPayments(retry_after=RETRY_AFTER_SECONDS) from None


def _check_circuit(acquirer: str, now: datetime) -> None:
    """Inquiries open the circuit, not charges: a merchant can make a charge silent, by a test token."""
    open_until = circuit_breakers.open_until(counterparty(acquirer), now)
    if open_until is not None:
        raise AcquirerUnavailable(retry_after=ceil((open_until - now).total_seconds()))


def counterparty(acquirer: str) -> Counterparty:
    """The acquirer as its circuit breaker knows it, and as the route of refunds to cards."""
    return Counterparty(f"acquirer:{acquirer}")


def store(purchase: Purchase) -> None:
    """Before the acquirer hears of it."""
    rows.insert_together([purchase.payment, purchase.charge])


def request_charge(purchase: Purchase) -> ChargeResult:
    """Charge the card. Not in a transaction: it takes as long as the acquirer does, within a deadline."""
    payment = purchase.payment
    if clock.now() - payment.created_at > CHARGE_WITHIN:  # a process that stood still meanwhile
        return ChargeResult("unknown")
    charge = ChargeRequest(payment.id, purchase.token, payment.amount, return_uri(payment.id))
    (said,) = parallel.run_all([lambda: purchase.acquirer.charge(charge)], default=ChargeResult("unknown"))
    return said


def return_uri(payment_id: str) -> str:
    """Our page to which the acquirer sends the payer's browser back."""
    return f"{settings.BASE_URL}/pay/cards/{payment_id}"


def inquire_soon(payment_id: str, *, now: datetime) -> None:
    """The payer's browser came back, which proves nothing: have the acquirer asked now, but not too often."""
    waiting = CardCharge.objects.filter(pk=payment_id, state=ChargeState.PENDING)
    not_lately = Q(returned_at=None) | Q(returned_at__lte=now - RETURN_INQUIRY_INTERVAL)
    waiting.filter(not_lately).update(returned_at=now, due_at=now)


def complete(payment_id: str, said: ChargeResult, *, now: datetime) -> Payment | None:
    """What the acquirer says becomes the payment's fate, once, in the caller's transaction.

    None when the acquirer refused to try, and so there is no payment any more.
    """
    payment: Payment = Payment.objects.locked(payment_id)
    charge = CardCharge.objects.select_for_update().get(pk=payment_id)
    if charge.is_open and _differs_from_request(payment, said):
        _record_contradiction(payment, charge, said, now)
        _keep_pending(payment, charge, said, now)
    elif charge.is_open:
        _OUTCOME_HANDLERS[said.outcome](payment, charge, said, now)
    elif said.outcome == "succeeded" and payment.status == PaymentStatus.FAILED:
        _record_contradiction(payment, charge, said, now)
    return payment if payment.pk else None


@transaction.atomic
def fail_manually(payment_id: str, *, now: datetime) -> None:
    """The acquirer charged something else, and staff refunded that there. Raises ChargeHasEnded."""
    payment: Payment = Payment.objects.locked(payment_id)
    charge = CardCharge.objects.select_for_update().get(pk=payment_id)
    if not charge.is_open:
        raise ChargeAlreadyCompleted(payment_id)
    _fail(payment, charge, ChargeResult("not_sent"), now)


def _record_contradiction(payment: Payment, charge: CardCharge, said: ChargeResult, now: datetime) -> None:
    """Staff have to look at the acquirer: it took money for what is not paid here."""
    is_other = _differs_from_request(payment, said)
    history.record_contradiction(
        payment.id,
        merchant_id=payment.merchant_id,
        route=accounts.acquirer(charge.acquirer),
        amount=payment.amount,
        state=payment.status,
        answer=said.outcome,
        answer_amount=said.amount if is_other else None,
        answer_currency=(said.currency or "")[:3] if is_other else "",
        bank_reference=said.charge_id or charge.charge_id,
        now=now,
    )


def _differs_from_request(payment: Payment, said: ChargeResult) -> bool:
    """Whether the acquirer took something else than what was asked for: that is never booked as a success."""
    if said.outcome != "succeeded" or said.amount is None:
        return False
    return (said.amount, said.currency) != (payment.amount, payment.currency)


def _succeed(payment: Payment, charge: CardCharge, said: ChargeResult, now: datetime) -> None:
    _store_details(payment, charge, said)
    source = accounts.acquirer(charge.acquirer)
    paid_at = clock.to_millisecond(said.paid_at or now)
    payments.succeed(payment, paid_at=paid_at, payer=Payer(), source=source, now=now)
    charge.transition(ChargeState.COMPLETED, completed_at=now)


def _fail(payment: Payment, charge: CardCharge, said: ChargeResult, now: datetime) -> None:
    _store_details(payment, charge, said)
    payments.fail(payment, failure_code=said.failure_code or "processing_error", now=now)
    charge.transition(ChargeState.COMPLETED, completed_at=now)


def _discard(payment: Payment, charge: CardCharge, said: ChargeResult, now: datetime) -> None:
    """The token is not good, so nothing was tried: there was no payment, and the merchant's retry is new."""
    if charge.state != ChargeState.SUBMITTED:  # the call was so slow that an inquiry has told of a payment
        return _fail(payment, charge, ChargeResult("not_sent"), now)
    charge.transition(ChargeState.REFUSED, completed_at=now)
    payment.delete()
    return None


def _keep_pending(payment: Payment, charge: CardCharge, said: ChargeResult, now: datetime) -> None:
    _store_details(payment, charge, said)
    due_at = now + _inquiry_delay(payment, charge, now)
    if charge.state == ChargeState.SUBMITTED:
        payments.publish_pending(payment, now=now)
        charge.transition(ChargeState.PENDING, due_at=due_at)
    else:
        charge.set_fields(due_at=due_at)


def _inquiry_delay(payment: Payment, charge: CardCharge, now: datetime) -> timedelta:
    wait = due_work.interval(INQUIRY_DELAYS, charge.inquiries)
    may_be_authorised = payment.authorize_uri and now - charge.created_at < AUTHORISATION_PERIOD
    return min(wait, MAX_AUTHORISATION_DELAY) if may_be_authorised else wait


def _handle_missing(payment: Payment, charge: CardCharge, said: ChargeResult, now: datetime) -> None:
    """The acquirer knows nothing of it: perhaps not yet, and after a while surely never."""
    is_lost = now - charge.created_at > MISSING_AFTER
    (_fail if is_lost else _keep_pending)(payment, charge, said, now)


def _store_details(payment: Payment, charge: CardCharge, said: ChargeResult) -> None:
    """What is known of the card and the charge by now."""
    if said.last4:
        payment.card_last4, payment.card_brand = said.last4, said.brand
        payment.save(update_fields=["card_last4", "card_brand"])
    if said.authorize_uri:
        payment.authorize_uri = said.authorize_uri
        payment.save(update_fields=["authorize_uri"])
    if said.charge_id:
        charge.charge_id = said.charge_id
        charge.save(update_fields=["charge_id"])


_OUTCOME_HANDLERS: dict[str, Callable[[Payment, CardCharge, ChargeResult, datetime], None]] = {
    "succeeded": _succeed,
    "declined": _fail,
    "refused": _discard,
    "not_sent": _fail,
    "pending": _keep_pending,
    "unknown": _keep_pending,
    "missing": _handle_missing,
}
