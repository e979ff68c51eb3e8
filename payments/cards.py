"""Payments by card token: commit, ask the acquirer with no transaction open, commit what it says.

Our payment id is the acquirer's key to charge once. Nobody charges again for it: what is not known is
inquired (`payments.inquiries`).
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
from banks import Acquirer, Charge, Said, calling
from core import clock, origin, rows
from core.slots import NoFreeSlot, Slots
from merchants.errors import BankNotConfigured
from merchants.models import Merchant, Mode
from payments import services as payments
from payments.errors import AcquirerUnavailable, TooManyCardPayments
from payments.models import CardCharge, ChargeState, Payment, Status
from payments.services import Payer
from transactions import accounts
from transfers import breakers, contradictions
from transfers.breakers import Party

ACQUIRERS = {Mode.TEST: "sandbox", Mode.LIVE: "omise"}
# The first inquiry after a call that was not answered, the second and so on; then hourly.
WAITS = [timedelta(seconds=seconds) for seconds in (2, 5, 10, 30, 60, 300)]
LAST_WAIT = timedelta(hours=1)
# While the payer may be at the page of 3-D Secure, the waits are no longer than this. Acquirers give up a
# charge that nobody authorised within the half hour.
AUTHORISATION_WAIT, AUTHORISED_WITHIN = timedelta(minutes=1), timedelta(minutes=30)
# Each visit to our return page asks the acquirer, but only so often.
RETURN_EVERY = timedelta(seconds=5)
# A charge that its acquirer does not know by then was never asked for.
LOST_AFTER = timedelta(minutes=10)
# Nobody begins a charge later than this after writing it down: long before others take it for lost.
BEGIN_WITHIN = timedelta(seconds=30)
# Most calls end within this: a payment that found no slot is worth another try then.
RETRY_AFTER_SECONDS = 2
_calls = Slots()


class ChargeHasEnded(Exception):
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
    asked = origin.current()
    charge = rows.new(
        CardCharge,
        payment=payment,
        acquirer=name,
        due_at=now + timedelta(seconds=acquirer.seconds),
        asked_by=asked.actor,
        asked_request_id=asked.request_id,
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
    """One of the CARD_CALLS slots of this process, half of which one merchant may hold.

    Raises TooManyCardPayments, AcquirerUnavailable. Nobody waits for a slot: a waiting request would hold a
    thread as well.
    """
    _check_circuit(purchase.charge.acquirer, clock.now())
    total = settings.CARD_CALLS
    try:
        with _calls.held(purchase.payment.merchant_id, total=total, share=(total + 1) // 2):
            yield
    except NoFreeSlot:
        raise TooManyCardPayments(retry_after=RETRY_AFTER_SECONDS) from None


def _check_circuit(acquirer: str, now: datetime) -> None:
    """Inquiries open the circuit, not charges: a merchant can make a charge silent, by a test token."""
    open_until = breakers.open_until(party(acquirer), now)
    if open_until is not None:
        raise AcquirerUnavailable(retry_after=ceil((open_until - now).total_seconds()))


def party(acquirer: str) -> Party:
    """The acquirer as its circuit breaker knows it, and as the route of refunds to cards."""
    return Party(f"acquirer:{acquirer}")


def store(purchase: Purchase) -> None:
    """Before the acquirer hears of it."""
    rows.insert_together([purchase.payment, purchase.charge])


def ask(purchase: Purchase) -> Said:
    """Charge the card. Not in a transaction: it takes as long as the acquirer does, within a deadline."""
    payment = purchase.payment
    if clock.now() - payment.created_at > BEGIN_WITHIN:  # a process that stood still meanwhile
        return Said("unknown")
    charge = Charge(payment.id, purchase.token, payment.amount, return_uri(payment.id))
    (said,) = calling.all_at_once([lambda: purchase.acquirer.charge(charge)], silence=Said("unknown"))
    return said


def return_uri(payment_id: str) -> str:
    """Our page to which the acquirer sends the payer's browser back."""
    return f"{settings.BASE_URL}/pay/cards/{payment_id}"


def hasten(payment_id: str, *, now: datetime) -> None:
    """The payer's browser came back, which proves nothing: have the acquirer asked now, but not too often."""
    waiting = CardCharge.objects.filter(pk=payment_id, state=ChargeState.WAITING)
    not_lately = Q(returned_at=None) | Q(returned_at__lte=now - RETURN_EVERY)
    waiting.filter(not_lately).update(returned_at=now, due_at=now)


def settle(payment_id: str, said: Said, *, now: datetime) -> Payment | None:
    """What the acquirer says becomes the payment's fate, once, in the caller's transaction.

    None when the acquirer refused to try, and so there is no payment any more.
    """
    payment: Payment = Payment.objects.locked(payment_id)
    charge = CardCharge.objects.select_for_update().get(pk=payment_id)
    if charge.is_open and _is_another_charge(payment, said):
        _contradict(payment, charge, said, now)
        _wait(payment, charge, said, now)
    elif charge.is_open:
        _SETTLING[said.outcome](payment, charge, said, now)
    elif said.outcome == "succeeded" and payment.status == Status.FAILED:
        _contradict(payment, charge, said, now)
    return payment if payment.pk else None


@transaction.atomic
def end_as_failed(payment_id: str, *, now: datetime) -> None:
    """The acquirer charged something else, and staff refunded that there. Raises ChargeHasEnded."""
    payment: Payment = Payment.objects.locked(payment_id)
    charge = CardCharge.objects.select_for_update().get(pk=payment_id)
    if not charge.is_open:
        raise ChargeHasEnded(payment_id)
    _fail(payment, charge, Said("not_sent"), now)


def _contradict(payment: Payment, charge: CardCharge, said: Said, now: datetime) -> None:
    """Staff have to look at the acquirer: it took money for what is not paid here."""
    is_other = _is_another_charge(payment, said)
    contradictions.record(
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


def _is_another_charge(payment: Payment, said: Said) -> bool:
    """Whether the acquirer took something else than what was asked for: that is never booked as a success."""
    if said.outcome != "succeeded" or said.amount is None:
        return False
    return (said.amount, said.currency) != (payment.amount, payment.currency)


def _succeed(payment: Payment, charge: CardCharge, said: Said, now: datetime) -> None:
    _note(payment, charge, said)
    source = accounts.acquirer(charge.acquirer)
    paid_at = clock.to_millisecond(said.paid_at or now)
    payments.succeed(payment, paid_at=paid_at, payer=Payer(), source=source, now=now)
    charge.end(ChargeState.ENDED, now)


def _fail(payment: Payment, charge: CardCharge, said: Said, now: datetime) -> None:
    _note(payment, charge, said)
    payments.fail(payment, failure_code=said.failure_code or "processing_error", now=now)
    charge.end(ChargeState.ENDED, now)


def _take_back(payment: Payment, charge: CardCharge, said: Said, now: datetime) -> None:
    """The token is not good, so nothing was tried: there was no payment, and the merchant's retry is new."""
    if charge.state != ChargeState.ASKED:  # the call was so slow that an inquiry has told of a payment
        return _fail(payment, charge, Said("not_sent"), now)
    charge.end(ChargeState.REFUSED, now)
    payment.delete()
    return None


def _wait(payment: Payment, charge: CardCharge, said: Said, now: datetime) -> None:
    _note(payment, charge, said)
    if charge.state == ChargeState.ASKED:
        payments.tell_pending(payment, now=now)
    charge.set_state(ChargeState.WAITING, due_at=now + _wait_of(payment, charge, now))


def _wait_of(payment: Payment, charge: CardCharge, now: datetime) -> timedelta:
    wait = WAITS[charge.inquiries] if charge.inquiries < len(WAITS) else LAST_WAIT
    may_be_authorised = payment.authorize_uri and now - charge.created_at < AUTHORISED_WITHIN
    return min(wait, AUTHORISATION_WAIT) if may_be_authorised else wait


def _give_up(payment: Payment, charge: CardCharge, said: Said, now: datetime) -> None:
    """The acquirer knows nothing of it: perhaps not yet, and after a while surely never."""
    is_lost = now - charge.created_at > LOST_AFTER
    (_fail if is_lost else _wait)(payment, charge, said, now)


def _note(payment: Payment, charge: CardCharge, said: Said) -> None:
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


_SETTLING: dict[str, Callable[[Payment, CardCharge, Said, datetime], None]] = {
    "succeeded": _succeed,
    "declined": _fail,
    "refused": _take_back,
    "not_sent": _fail,
    "pending": _wait,
    "unknown": _wait,
    "missing": _give_up,
}
