"""How a card payment answers the request that made it: 200, or the refusal that its failure stands for."""

from collections.abc import Callable
from datetime import datetime

from banks import Said
from core.errors import ApiError, Invalid
from core.http import Answer, error_answer
from idempotency.errors import IdempotencyKeyInProgress
from idempotency.services import TwoPhases
from payments import cards
from payments.cards import Purchase
from payments.errors import CardDeclined, ExpiredCard, InvalidTokenId, ProcessingError, TokenAlreadyUsed
from payments.models import Payment, Status
from payments.shapes import card_shape
from transactions.errors import InsufficientFunds

DECLINES: dict[str, Callable[[], ApiError]] = {
    "insufficient_funds": lambda: InsufficientFunds("The card has insufficient funds."),
    "card_declined": CardDeclined,
    "expired_card": ExpiredCard,
    "processing_error": ProcessingError,
}


def job(purchase: Purchase, now: Callable[[], datetime]) -> TwoPhases[Said]:
    """The request as its two commits and the call in between."""
    payment_id = purchase.payment.id

    def finish(said: Said) -> Answer:
        at = now()
        payment = cards.settle(payment_id, said, now=at)
        return error_answer(_refusal(said)) if payment is None else answer(payment, at)

    return TwoPhases(
        subject_id=payment_id,
        seconds=purchase.acquirer.seconds,
        admit=lambda held: held.enter_context(cards.slot(purchase)),
        prepare=lambda: cards.store(purchase),
        perform=lambda: cards.ask(purchase),
        finish=finish,
        resume=lambda found_id: _as_it_stands(found_id, now()),
    )


def answer(payment: Payment, now: datetime) -> Answer:
    """The payment as it stands. One that failed is a 402 that names it."""
    if payment.status != Status.FAILED:
        return Answer.of(card_shape(payment, now))
    declined = DECLINES[str(payment.failure_code)]()
    declined.extra["payment_id"] = payment.id
    return error_answer(declined)


def _as_it_stands(payment_id: str, now: datetime) -> Answer:
    payment = Payment.objects.filter(pk=payment_id).first()
    if payment is None:  # its token has just been refused, later than anybody would wait
        raise IdempotencyKeyInProgress(retry_after=1)
    return answer(payment, now)


def _refusal(said: Said) -> Invalid:
    used = said.failure_code == "token_already_used"
    return TokenAlreadyUsed(param="token_id") if used else InvalidTokenId(param="token_id")
