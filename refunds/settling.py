"""How refunds end, by the bank's word: ledger, counters, history and event in the commit of the word."""

import logging
from datetime import datetime
from typing import Any

from approvals import services as approvals
from banks import Word
from payments import services as payments
from payments.models import Payment
from refunds import takebacks
from refunds.models import Refund, Status
from refunds.telling import publish
from transactions import ledger
from transactions import services as transactions
from transactions.models import Fact
from transactions.models import Status as HistoryStatus
from transfers.services import Owner

log = logging.getLogger("refunds")


class RefundOwner:
    """What `transfers` tells of its orders that are refunds (see `transfers.services.Owner`)."""

    def lock(self, order_id: str) -> None:
        locked(order_id)

    def is_held(self, order_id: str, *, now: datetime) -> bool:
        """Never: it is the payer's money, set aside while the balance covered it."""
        return False

    def begin(self, order_id: str, *, now: datetime) -> None:
        """To the merchant it was processing already, from the moment that it had a destination."""

    def settle(self, order_id: str, word: Word, *, now: datetime) -> None:
        payment, refund = locked(order_id)
        approvals.cancel(order_id, now=now)  # of a request to end it as never arrived
        if word.fate == "succeeded":
            _complete(refund, payment, now)
        elif word.fate == "failed":
            fail(refund, payment, word.failure_code, now)
        else:
            _hold(refund, now)


OWNER: Owner = RefundOwner()


def posting(refund: Refund, now: datetime) -> dict[str, Any]:
    """What each posting of a refund says."""
    return {"merchant_id": refund.merchant_id, "subject_id": refund.id, "amount": refund.amount, "at": now}


def locked(refund_id: str) -> tuple[Payment, Refund]:
    """Both under their locks."""
    payment_id = Refund.objects.values_list("payment_id", flat=True).get(pk=refund_id)
    return Payment.objects.locked(payment_id), Refund.objects.locked(refund_id)


def fail(refund: Refund, payment: Payment, failure_code: str, now: datetime) -> None:
    """It did not go. The caller holds both locks."""
    refund.become(Status.FAILED, failure_code=failure_code, updated_at=now)
    publish("refund.failed", refund, now)
    give_back(refund, payment, now)


def give_back(refund: Refund, payment: Payment, now: datetime) -> None:
    """It will never go: the money is the merchant's again. The caller holds both locks."""
    payments.release_refund(payment, refund.amount)
    transactions.settle_refund(refund_id=refund.id, status=HistoryStatus.FAILED)
    takebacks.show(payment, now)
    ledger.release(fact=Fact.REFUND_RELEASED, **posting(refund, now))


def _complete(refund: Refund, payment: Payment, now: datetime) -> None:
    refund.become(Status.COMPLETED, completed_at=now, updated_at=now)
    payments.complete_refund(payment, refund.amount, now=now)
    transactions.settle_refund(refund_id=refund.id, status=HistoryStatus.SUCCEEDED)
    publish("refund.completed", refund, now)
    ledger.pay_out(fact=Fact.REFUND_PAID, to=refund.route, **posting(refund, now))


def _hold(refund: Refund, now: datetime) -> None:
    """It went back and then came back to us: the refund stays completed, its money waits for staff."""
    refund.note_down(returned_at=now)
    ledger.hold(subject_id=refund.id, amount=refund.amount, source=refund.route, at=now)
    log.warning("the money of refund %s came back and waits for staff", refund.id)
