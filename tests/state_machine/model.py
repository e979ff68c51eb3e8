"""The model of the expected money. `test_state_machine` compares the service with it."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from banks import TransferPurpose
from tests.state_machine.expected import ApprovalItem, BankMoney, Order, Payment
from transfers.schedule import HOLD_SECONDS, INQUIRY_DELAYS, delay, resend_delay

RETURNS_AFTER = timedelta(seconds=3)  # the sandbox bank's account ...0004
# Transfers to accounts with these endings fail or are returned at the sandbox bank.
FAILING_ACCOUNTS = {"refund": "0001", "return": "0001", "withdrawal": "0002"}
RETURNED_ACCOUNT = "0004"
PURPOSES: list[TransferPurpose] = ["refund", "withdrawal", "return"]
# Limits in satang of one item and of 24 hours; a run is shorter. Above them a second person approves.
ITEM_LIMIT, DAILY_LIMIT = 400, 3_000
# A row of the transaction history.
Row = tuple[str, str, str, int]
ROW = ("payment_id", "type", "status", "amount")


class MoneyModel:
    """One merchant's money, and money in suspense. `net_available` is the available money minus the debt."""

    def __init__(self) -> None:
        self.net_available = 0
        self.unconfirmed = 0
        self.reserved = 0
        self.suspense = 0
        self.written_off = 0
        self.takes_late_money = False
        self.payments: dict[str, Payment] = {}
        self.orders: dict[str, Order] = {}
        self.money: list[BankMoney] = []
        self.bank_reversals: list[
            tuple[BankMoney, Order]
        ] = []  # refunds by bank reversals that are not yet in `orders`
        self.approval_items: list[ApprovalItem] = []

    @property
    def balance(self) -> dict[str, Any]:
        """Return the balance in the form of the API."""
        shown = {"available": max(self.net_available, 0), "reserved": self.reserved, "currency": "THB"}
        shown |= {"unconfirmed": self.unconfirmed} if self.unconfirmed else {}
        return shown | ({"owed": -self.net_available} if self.net_available < 0 else {})

    def with_purpose(self, purpose: TransferPurpose) -> list[Order]:
        return [order for order in self.orders.values() if order.purpose == purpose]

    def expire(self, now: datetime) -> None:
        for payment in self.payments.values():
            if payment.charge is None and payment.status == "pending" and payment.expires_at <= now:
                payment.status = "expired"

    def held(self) -> list[BankMoney]:
        """Return the held money, about which staff can decide."""
        return [money for money in self.money if money.place == "held"]

    def amount_received(self, payment: Payment) -> int | None:
        """Return `amount_received` as the API shows it: before a payment is paid, what is held for it."""
        if payment.received:
            return payment.amount_received
        named = [money for money in self.money if money.named_payment is payment]
        return sum(money.amount for money in named if money.place in ("held", "sending")) or None

    def waiting(self) -> list[ApprovalItem]:
        """Return the items that wait for approval by a second person."""
        return [item for item in self.approval_items if item.state == "waiting"]

    def check_limits(self, item: ApprovalItem) -> bool:
        """Record the item. Return whether it needs the approval of a second person."""
        counted = sum(other.amount for other in self.approval_items if other.state != "ended")
        if item.amount > ITEM_LIMIT or counted + item.amount > DAILY_LIMIT:
            item.state = "waiting"
        self.approval_items.append(item)
        return item.state == "waiting"

    def check_order_limits(self, order: Order) -> None:
        if self.check_limits(ApprovalItem(order.id, order.amount, order=order)):
            order.state = "held"

    def approve(self, item: ApprovalItem, now: datetime) -> None:
        item.state = "free"
        if item.order:
            item.order.state, item.order.due_at = "queued", now
        elif item.money:
            self.leave_suspense(item.money)
        elif item.written_off:
            self.write_off(item.written_off)

    def reject(self, item: ApprovalItem) -> None:
        item.state = "ended"
        if item.order:
            self.release(item.order, "canceled" if item.order.money else "failed")
        elif item.money:
            self.hold_again(item.money)

    def end(self, subject_id: str) -> None:
        """Cancel the waiting approvals of this subject."""
        for item in self.waiting():
            if item.subject_id == subject_id:
                item.state = "ended"

    def open_reversals(self) -> list[BankMoney]:
        """Return the money whose reversal is still an exception."""
        return [money for money in self.money if money.reversal == "waits"]

    def reversible(self) -> list[BankMoney]:
        """Return the money that is credited to the merchant and not reversed."""
        return [money for money in self.money if money.place == "credited" and not money.reversal]

    def receive(self, money: BankMoney, paid_at: datetime) -> None:
        """Apply a credit that the bank reports: a payment succeeds, or the money is held."""
        self.money.append(money)
        self.suspense += money.amount
        named_payment = money.named_payment
        if named_payment is not None and named_payment.is_payable:
            fits, is_late = money.amount == named_payment.amount, paid_at > named_payment.expires_at
            money.is_acceptable = is_late or not fits
            if fits and (self.takes_late_money or not is_late):
                self.credit(money, named_payment)
        self.apply_reversal(money)

    def credit(self, money: BankMoney, payment: Payment) -> None:
        self.suspense -= money.amount
        if money.is_confirmed:
            self.net_available += money.amount
        else:
            self.unconfirmed += money.amount
        payment.status, payment.received = "succeeded", money.amount
        money.place, money.payment = "credited", payment
        self.apply_reversal(money)

    def confirm(self, money: BankMoney) -> None:
        """Confirm money that only a statement reported."""
        money.is_confirmed = True
        if money.place == "credited" and money.reversal != "done":
            self.unconfirmed -= money.amount
            self.net_available += money.amount

    def apply_charge_outcome(self, payment: Payment, outcome: str) -> None:
        if outcome == "succeeded":
            self.net_available += payment.amount
            payment.status, payment.received = "succeeded", payment.amount
        elif outcome == "declined":
            payment.status = "failed"

    def inquire_charges(self, now: datetime) -> None:
        """Apply the acquirer's answer about each charge whose payment is pending."""
        for payment in self.payments.values():
            if payment.charge and payment.status == "pending":
                self.apply_charge_outcome(payment, payment.charge.outcome_at(now))

    def send_back(self, money: BankMoney, order: Order) -> None:
        self.orders[order.id] = money.order = order
        money.place = "sending"

    def leave_suspense(self, money: BankMoney) -> None:
        self.suspense -= money.amount
        money.place = "gone"

    def hold_again(self, money: BankMoney) -> None:
        money.place = "held"
        self.apply_reversal(money)

    def reverse(self, money: BankMoney) -> None:
        """Apply a reversal that the bank reports for the first time or again."""
        money.reversal = money.reversal or "waits"
        self.apply_reversal(money)

    def apply_reversal(self, money: BankMoney) -> None:
        """Take reversed money as soon as it is available."""
        if money.reversal not in ("waits", "written_off"):
            return
        if money.payment is not None:
            self._take_from_merchant(money, money.payment)
        elif money.place == "held":
            self.leave_suspense(money)
        elif money.place == "sending" and money.order and money.order.is_cancelable:
            money.order.state = "canceled"
            self.end(money.order.id)
            self.leave_suspense(money)
        else:
            return
        self.written_off -= money.amount if money.reversal == "written_off" else 0
        money.reversal = "done"
        self.end(money.reversal_id)

    def write_off(self, money: BankMoney) -> None:
        self.written_off += money.amount
        money.reversal = "written_off"

    def _take_from_merchant(self, money: BankMoney, payment: Payment) -> None:
        """Deduct reversed money. A missing amount becomes debt. What is not refunded becomes a refund."""
        if money.is_confirmed:
            self.net_available -= money.amount
        else:
            self.unconfirmed -= money.amount
        for order in self.with_purpose("refund"):
            if order.payment is payment and order.is_cancelable:
                self.release(order, "canceled")
        payment.taken_back, money.unrefunded = money, money.amount
        self._show(money, payment)

    def _show(self, money: BankMoney, payment: Payment) -> None:
        part = min(money.unrefunded, payment.left)
        if part:
            money.unrefunded -= part
            payment.refund(part)
            refund = Order("", "refund", part, "", payment.expires_at, payment, state="succeeded")
            self.bank_reversals.append((money, refund))

    def refusal_of_refund(self, payment: Payment, amount: int) -> tuple[int, str] | None:
        if payment.status != "succeeded":
            return 400, "payment_not_refundable"
        if not 0 < amount <= payment.left:
            return 400, "refund_amount_exceeded"
        return self.refusal_of_spending(amount)

    def refusal_of_spending(self, amount: int) -> tuple[int, str] | None:
        return (402, "insufficient_funds") if amount > max(self.net_available, 0) else None

    def reserve(self, order: Order) -> None:
        self.orders[order.id] = order
        self.net_available -= order.amount
        self.reserved += order.amount
        if order.payment:
            order.payment.refunding += order.amount

    def release(self, order: Order, state: str) -> None:
        order.state = state
        self.end(order.id)
        if order.money is not None:
            self.hold_again(order.money)
            return
        self.reserved -= order.amount
        self.net_available += order.amount
        if payment := order.payment:
            payment.refunding -= order.amount
            if payment.taken_back:
                self._show(payment.taken_back, payment)

    def pay_out(self, order: Order) -> None:
        order.state = "succeeded"
        if order.money is not None:
            self.leave_suspense(order.money)
            return
        self.reserved -= order.amount
        if payment := order.payment:
            payment.refunding -= order.amount
            payment.refund(order.amount)

    def return_money(self, order: Order) -> None:
        order.state = "returned"
        if order.money is not None:
            self.suspense += order.amount
            self.hold_again(order.money)
        else:
            self.net_available += order.amount

    def carry_out(self, now: datetime, *, is_bank_up: bool) -> None:
        """Process due orders as the workers do: refunds first, then withdrawals, then returns."""
        for purpose in PURPOSES:
            is_in_debt = self.net_available < 0  # the service checks the debt before it sends any withdrawal
            for order in self.with_purpose(purpose):
                if order.state not in ("queued", "submitted") or order.due_at > now:
                    continue
                if is_in_debt and purpose == "withdrawal" and order.state == "queued":
                    order.due_at = now + delay(HOLD_SECONDS)
                elif is_bank_up:
                    self._reach_bank(order, now)
                else:
                    self._miss_bank(order, now)

    def apply_returns(self) -> None:
        """Apply the callbacks by which the bank returns withdrawals."""
        for order in self.orders.values():
            if order.purpose == "withdrawal" and order.ending == RETURNED_ACCOUNT and order.sent_at:
                if order.state == "submitted":
                    self.pay_out(order)
                if order.state == "succeeded":
                    self.return_money(order)

    def _reach_bank(self, order: Order, now: datetime) -> None:
        order.has_begun = True
        if order.is_to_card:  # the acquirer answers at once
            order.sent_at = now
            self.pay_out(order)
        elif order.state == "queued":
            order.state, order.sent_at = "submitted", now
            order.due_at = now + timedelta(seconds=INQUIRY_DELAYS[0])
        elif order.ending == FAILING_ACCOUNTS[order.purpose]:
            self.release(order, "failed")
        else:
            self.pay_out(order)
            is_back = order.sent_at is not None and now >= order.sent_at + RETURNS_AFTER
            if order.purpose == "withdrawal" and order.ending == RETURNED_ACCOUNT and is_back:
                self.return_money(order)

    def _miss_bank(self, order: Order, now: datetime) -> None:
        """Reschedule an order while the bank is unreachable: its sending or its next inquiry."""
        order.has_begun = True
        if order.state == "queued":
            order.due_at = now + resend_delay(now - order.ordered_at)
        else:
            order.inquiries += 1
            order.due_at = now + timedelta(
                seconds=INQUIRY_DELAYS[min(order.inquiries, len(INQUIRY_DELAYS) - 1)]
            )

    def history(self) -> Counter[Row]:
        return Counter([*self._rows_of_payments(), *self._rows_of_refunds()])

    def _rows_of_payments(self) -> Iterator[Row]:
        for payment in self.payments.values():
            if payment.status in ("succeeded", "refunded"):
                yield payment.id, "payment", payment.status, payment.received
            if payment.status == "failed":
                yield payment.id, "failed", "failed", payment.amount

    def _rows_of_refunds(self) -> Iterator[Row]:
        output = {"completed": "succeeded", "canceled": "failed"}
        for order in self.orders.values():
            if order.payment:
                yield order.payment.id, "refund", output.get(order.status, order.status), -order.amount
