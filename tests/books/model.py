"""Money as it should be, in the fewest words: what the machine in `test_state_machine` compares with."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from banks import Purpose
from transfers.schedule import RESEND_SECONDS, WAITS

RETURNS_AFTER = timedelta(seconds=3)  # the sandbox bank's account ...0004
# What the sandbox bank does with an account that ends like this.
FAILING = {"refund": "0001", "withdrawal": "0002"}
RETURNED = "0004"
# A row of the history.
Row = tuple[str, str, str, int]
ROW = ("payment_id", "type", "status", "amount")


@dataclass(eq=False)
class Payment:
    """Amounts are satang, here and below."""

    code: dict[str, Any]
    amount: int
    status: str = "pending"
    refunded: int = 0
    refunding: int = 0
    notices: list[bytes] = field(default_factory=list)

    @property
    def id(self) -> str:
        return str(self.code["payment_id"])

    @property
    def expires_at(self) -> datetime:
        return datetime.fromisoformat(self.code["expires_at"])

    @property
    def left(self) -> int:
        return self.amount - self.refunded - self.refunding


@dataclass(eq=False)
class Order:
    """A refund or a withdrawal, and how far its bank is."""

    id: str
    purpose: Purpose
    amount: int
    ending: str
    due_at: datetime
    payment: Payment | None = None
    state: str = "queued"  # told succeeded failed returned canceled
    has_begun: bool = False
    inquiries: int = 0
    sent_at: datetime | None = None

    @property
    def status(self) -> str:
        if self.purpose == "refund":
            return {"queued": "pending", "told": "pending", "succeeded": "completed"}.get(
                self.state, self.state
            )
        if self.state in ("queued", "told"):
            return "processing" if self.has_begun else "pending"
        return "failed" if self.state == "returned" else self.state

    @property
    def is_cancelable(self) -> bool:
        return self.state == "queued" and (self.purpose == "refund" or not self.has_begun)


class Books:
    """One merchant's money."""

    def __init__(self) -> None:
        self.available = 0
        self.reserved = 0
        self.payments: dict[str, Payment] = {}
        self.orders: dict[str, Order] = {}

    def of(self, purpose: Purpose) -> list[Order]:
        return [order for order in self.orders.values() if order.purpose == purpose]

    def expire(self, now: datetime) -> None:
        for payment in self.payments.values():
            if payment.status == "pending" and payment.expires_at <= now:
                payment.status = "expired"

    def succeed(self, payment: Payment) -> None:
        payment.status = "succeeded"
        self.available += payment.amount

    def refusal_of_refund(self, payment: Payment, amount: int) -> tuple[int, str] | None:
        if payment.status != "succeeded":
            return 400, "payment_not_refundable"
        if not 0 < amount <= payment.left:
            return 400, "refund_amount_exceeded"
        return self.refusal_of_spending(amount)

    def refusal_of_spending(self, amount: int) -> tuple[int, str] | None:
        return (402, "insufficient_funds") if amount > self.available else None

    def reserve(self, order: Order) -> None:
        self.orders[order.id] = order
        self.available -= order.amount
        self.reserved += order.amount
        if order.payment:
            order.payment.refunding += order.amount

    def release(self, order: Order, state: str) -> None:
        order.state = state
        self.reserved -= order.amount
        self.available += order.amount
        if order.payment:
            order.payment.refunding -= order.amount

    def pay_out(self, order: Order) -> None:
        order.state = "succeeded"
        self.reserved -= order.amount
        if payment := order.payment:
            payment.refunding -= order.amount
            payment.refunded += order.amount
            if payment.refunded == payment.amount:
                payment.status = "refunded"

    def come_back(self, order: Order) -> None:
        order.state = "returned"
        self.available += order.amount

    def carry_out(self, now: datetime, *, is_bank_up: bool) -> None:
        """What a round of the workers does."""
        for order in self.orders.values():
            if order.state in ("queued", "told") and order.due_at <= now:
                if is_bank_up:
                    self._reach_bank(order, now)
                else:
                    self._miss_bank(order, now)

    def hear_of_returns(self) -> None:
        """The bank calls about what came back, as soon as it has the order."""
        for order in self.orders.values():
            if order.purpose == "withdrawal" and order.ending == RETURNED and order.sent_at:
                if order.state == "told":
                    self.pay_out(order)
                if order.state == "succeeded":
                    self.come_back(order)

    def _reach_bank(self, order: Order, now: datetime) -> None:
        order.has_begun = True
        if order.state == "queued":
            order.state, order.sent_at = "told", now
            order.due_at = now + timedelta(seconds=WAITS[0])
        elif order.ending == FAILING[order.purpose]:
            self.release(order, "failed")
        else:
            self.pay_out(order)
            is_back = order.sent_at is not None and now >= order.sent_at + RETURNS_AFTER
            if order.purpose == "withdrawal" and order.ending == RETURNED and is_back:
                self.come_back(order)

    def _miss_bank(self, order: Order, now: datetime) -> None:
        """An order that was not sent is sent later; one that was is asked about later."""
        order.has_begun = True
        if order.state == "queued":
            order.due_at = now + timedelta(seconds=RESEND_SECONDS)
        else:
            order.inquiries += 1
            order.due_at = now + timedelta(seconds=WAITS[min(order.inquiries, len(WAITS) - 1)])

    def history(self) -> Counter[Row]:
        return Counter([*self._rows_of_payments(), *self._rows_of_refunds()])

    def _rows_of_payments(self) -> Iterator[Row]:
        for payment in self.payments.values():
            if payment.status in ("succeeded", "refunded"):
                yield payment.id, "payment", payment.status, payment.amount
            if payment.status == "failed":
                yield payment.id, "failed", "failed", payment.amount

    def _rows_of_refunds(self) -> Iterator[Row]:
        said = {"completed": "succeeded", "canceled": "failed"}
        for order in self.orders.values():
            if order.payment:
                yield order.payment.id, "refund", said.get(order.status, order.status), -order.amount
