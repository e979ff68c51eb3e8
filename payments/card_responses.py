"""How a card payment answers the request that made it: 200, or the refusal that its failure stands for."""

from collections.abc import Callable
from datetime import datetime

from banks import ChargeResult
from core.errors import ApiError, Invalid
from core.http import ApiResponse, error_response
from idempotency.errors import IdempotencyKeyInProgress
from idempotency.services import TwoPhaseJob
from ledger.errors import InsufficientFunds
from payments import cards
from payments.cards import Purchase
from payments.errors import CardDeclined, ExpiredCard, InvalidTokenId, ProcessingError, TokenAlreadyUsed
from payments.models import Payment, PaymentStatus
from payments.shapes import card_payment_object

DECLINES: dict[str, Callable[[], ApiError]] = {
    "insufficient_funds": lambda: InsufficientFunds("The card has insufficient funds."),
    "card_declined": CardDeclined,
    "expired_card": ExpiredCard,
    "processing_error": ProcessingError,
}


def job(purchase: Purchase, now: Callable[[], datetime]) -> TwoPhaseJob[ChargeResult]:
    """The request as its two commits and the call in between."""
    payment_id = purchase.payment.id

    def finish(said: ChargeResult) -> ApiResponse:
        at = now()
        payment = cards.complete(payment_id, said, now=at)
        return error_response(_refusal(said)) if payment is None else answer(payment, at)

    return TwoPhaseJob(
        subject_id=payment_id,
        seconds=purchase.acquirer.seconds,
        admit=lambda held: held.enter_context(cards.slot(purchase)),
        prepare=lambda: cards.store(purchase),
        perform=lambda: cards.request_charge(purchase),
        finish=finish,
        resume=lambda found_id: _current_answer(found_id, now()),
    )


def answer(payment: Payment, now: datetime) -> ApiResponse:
    """The payment as it stands. One that failed is a 402 that names it."""
    if payment.status != PaymentStatus.FAILED:
        return ApiResponse.of(card_payment_object(payment, now))
    declined = DECLINES[str(payment.failure_code)]()
    declined.extra["payment_id"] = payment.id
    return error_response(declined)


def _current_answer(payment_id: str, now: datetime) -> ApiResponse:
    payment = Payment.objects.filter(pk=payment_id).first()
    if payment is None:  # its token has just been refused, later than anybody would wait
        raise IdempotencyKeyInProgress(retry_after=1)
    return answer(payment, now)


def _refusal(said: ChargeResult) -> Invalid:
    used = said.failure_code == "token_already_used"
    return TokenAlreadyUsed(param="token_id") if used else InvalidTokenId(param="token_id")
