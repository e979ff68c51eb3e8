"""Whatever a shop, its customers and its bank do to each other, and what must be so after each step."""

import json
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

import time_machine
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, precondition, rule

import receipts.tasks
import refunds.tasks
import withdrawals.tasks
from banks import Purpose
from core import clock
from payments import tasks as payments
from receipts.models import Kind, Receipt
from refunds.models import Refund
from sandbox import sending
from sandbox.models import SandboxOrder
from tests.books.cast import Answer, Asked, Shown, Wire, account, open_town, reaching_nobody, refusal
from tests.books.model import Books
from tests.books.things import Money, Order, Payment
from transactions import tasks as transactions

# Long ago: the sandbox bank looks at the clock of the database, by which all that it promised is due.
BEGINNING = datetime(2025, 1, 6, 3, tzinfo=UTC)
AMOUNTS = st.integers(100, 1_000)
ENDINGS = st.sampled_from(["4567", "0001", "0002", "0003", "0004"])


class Town(RuleBasedStateMachine):
    """One life of one shop; the clock stands still between the steps that move it."""

    payments, orders = Bundle("payments"), Bundle("orders")

    def __init__(self, wire: Wire) -> None:
        super().__init__()
        self.clock = time_machine.travel(BEGINNING, tick=False)
        self.time = self.clock.start()
        self.shop, self.bank = open_town(wire)
        self.shown = Shown(self.shop)
        self.books = Books()
        self.keys = 0
        self.kept: list[tuple[Asked, Answer]] = []

    def teardown(self) -> None:
        try:
            self.tend()
            self.shown.forget()
            self.check()
            by_bank = [
                order for order in self.books.orders.values() if order.sent_at and not order.is_to_card
            ]
            orders = {order.id: order.amount for order in by_bank}
            assert dict(SandboxOrder.objects.values_list("reference", "amount")) == orders
        finally:
            self.clock.stop()

    def ask(self, path: str, body: dict[str, Any] | None = None, *, kept: Collection[int] = (200,)) -> Answer:
        """Post under a new key. kept: the statuses of answers that the service stores with the key."""
        self.keys += 1
        asked = Asked(path, body, f"key {self.keys}")
        answer = self.post(asked)
        if answer.status_code in kept:
            self.kept.append((asked, answer))
        return answer

    def post(self, asked: Asked) -> Answer:
        answer: Answer = self.shop.post(asked.path, asked.body, key=asked.key)
        return answer

    @rule(target=payments, amount=AMOUNTS, minutes=st.integers(1, 60))
    def offer(self, amount: int, minutes: int) -> Payment:
        return self.create(amount, minutes)

    def create(self, amount: int, minutes: int) -> Payment:
        told = {"amount": amount, "currency": "THB", "expiry_minutes": minutes}
        answer = self.ask("/v1/qr-codes", told)
        assert answer.status_code == 200, answer.content
        payment = Payment(answer.json(), amount)
        self.books.payments[payment.id] = payment
        return payment

    def tell(self, payment: Payment, **changes: Any) -> dict[str, Any]:
        """The bank's message, which may come again."""
        notice = self.bank.notice(payment.code, **changes)
        payment.notices.append(json.dumps(notice).encode())
        assert self.bank.post(payment.notices[-1]).status_code == 200
        return notice

    def pay(self, payment: Payment, satang: int, *, own: Payment | None, **changes: Any) -> None:
        """Tell of a credit. own: the payment that is found by its reference."""
        paid_at = changes.get("paid_at", clock.now())
        money = Money(self.tell(payment, satang=satang, **changes), satang, own)
        money.receipt_id = self.receipt_of(money, Kind.CREDIT)
        self.books.take_in(money, paid_at)

    def receipt_of(self, money: Money, kind: Kind) -> str:
        told = Receipt.objects.get(bank_transaction_id=money.notice["transaction_id"], kind=kind)
        return str(told.id)

    @rule(payment=payments)
    def confirm(self, payment: Payment) -> None:
        """Late or a second time it waits for staff; the last instant is in time."""
        self.pay(payment, payment.amount, own=payment)

    @rule(target=payments, amount=AMOUNTS)
    def sell(self, amount: int) -> Payment:
        payment = self.create(amount, 15)
        self.confirm(payment)
        return payment

    @rule(payment=payments)
    def confirm_what_was_paid_in_time(self, payment: Payment) -> None:
        in_time = payment.expires_at - timedelta(seconds=1)
        self.pay(payment, payment.amount, own=payment, paid_at=in_time)

    @rule(payment=payments)
    def decline(self, payment: Payment) -> None:
        self.tell(payment, type="decline")
        if payment.status == "pending":
            payment.status = "failed"

    @rule(payment=payments, which=st.integers(0, 9))
    def say_it_again(self, payment: Payment, which: int) -> None:
        if payment.notices:
            assert self.bank.post(payment.notices[which % len(payment.notices)]).status_code == 200

    @rule(payment=payments)
    def end_code(self, payment: Payment) -> None:
        answer = self.ask(f"/v1/qr-codes/{payment.code['qr_code_id']}/expire")
        if payment.status == "pending":
            assert answer.status_code == 200
            payment.code = payment.code | {"expires_at": answer.json()["expires_at"]}
            payment.status = "expired"
        else:
            assert refusal(answer) == (400, "qr_code_not_expirable")

    @rule(seconds=st.sampled_from([1, 1, 5, 5, 60, 1_000]))
    def wait(self, seconds: int) -> None:
        self.time.shift(seconds)
        self.books.expire(clock.now())

    @rule()
    def tend(self) -> None:
        """What the workers do that nobody sees."""
        payments.expire_due()
        transactions.fold_due()
        transactions.count_due()

    @rule(target=orders, payment=payments, ending=ENDINGS)
    def refund_what_is_left(self, payment: Payment, ending: str) -> Any:
        return self.refund(payment, payment.left, ending)

    @rule(target=orders, payment=payments, amount=st.integers(1, 1_000), ending=ENDINGS)
    def refund_a_part(self, payment: Payment, amount: int, ending: str) -> Any:
        return self.refund(payment, amount, ending, amount=amount)

    def refund(self, payment: Payment, wanted: int, ending: str, **told: int) -> Any:
        answer = self.ask("/v1/refunds", {"payment_id": payment.id, "destination": account(ending)} | told)
        refused = self.books.refusal_of_refund(payment, wanted)
        return self.begun(answer, refused, "refund", wanted, ending, payment)

    @rule(target=orders, amount=AMOUNTS, ending=ENDINGS)
    def withdraw(self, amount: int, ending: str) -> Any:
        return self.withdraw_amount(amount, ending)

    def withdraw_amount(self, amount: int, ending: str) -> Any:
        answer = self.ask("/v1/withdrawals", {"amount": amount, "currency": "THB"} | account(ending))
        refused = self.books.refusal_of_spending(amount)
        return self.begun(answer, refused, "withdrawal", amount, ending)

    def begun(
        self,
        answer: Any,
        refused: tuple[int, str] | None,
        purpose: Purpose,
        amount: int,
        ending: str,
        payment: Payment | None = None,
    ) -> Any:
        """The order that was accepted, or nothing where it had to be refused."""
        if refused:
            assert refusal(answer) == refused
            return multiple()
        assert answer.status_code == 200, answer.content
        order = Order(answer.json()[f"{purpose}_id"], purpose, amount, ending, clock.now(), payment)
        if not order.is_to_card:  # the payer's own card needs no approval
            self.books.judge_order(order)
        self.books.reserve(order)
        return order

    @rule(order=orders)
    def cancel(self, order: Order) -> None:
        answer = self.ask(f"/v1/{order.purpose}s/{order.id}/cancel")
        if order.is_cancelable:
            assert answer.status_code == 200, answer.content
            self.books.release(order, "canceled")
        else:
            assert refusal(answer) == (400, f"{order.purpose}_not_cancelable")

    @rule(is_bank_up=st.sampled_from([True, True, True, False]))
    def carry_out(self, is_bank_up: bool) -> None:
        with reaching_nobody(not is_bank_up):
            refunds.tasks.run_due()
            withdrawals.tasks.run_due()
            receipts.tasks.run_returns()
        self.books.carry_out(clock.now(), is_bank_up=is_bank_up)

    @rule()
    def let_the_bank_call(self) -> None:
        sending.run_once()
        self.books.hear_of_returns()

    @precondition(lambda self: self.kept)
    @rule(which=st.integers(0, 99))
    def repeat(self, which: int) -> None:
        """What was done is answered again, byte by byte, and not done again."""
        asked, first = self.kept[which % len(self.kept)]
        answer = self.post(asked)
        assert (answer.status_code, answer.content) == (first.status_code, first.content)
        assert answer.headers["Idempotent-Replayed"] == "true"

    @precondition(lambda self: self.kept)
    @rule(which=st.integers(0, 99), amount=AMOUNTS)
    def ask_something_else_under_the_same_key(self, which: int, amount: int) -> None:
        asked, _ = self.kept[which % len(self.kept)]
        other = Asked("/v1/qr-codes", {"amount": amount, "currency": "THB"}, asked.key)
        assert refusal(self.post(other)) == (409, "idempotency_key_reused")

    @invariant()
    def check(self) -> None:
        self.meet_refunds_of_the_bank()
        assert not self.shown.look()
        assert self.shown.read("balance") == self.books.balance
        assert self.shown.listed("payments", "status", "amount_refunded", "amount_received") == {
            payment.id: (payment.status, payment.refunded, payment.amount_received)
            for payment in self.books.payments.values()
        }
        for purpose in ("refund", "withdrawal"):
            assert self.shown.listed(f"{purpose}s", "status", "amount") == {
                order.id: (order.status, order.amount) for order in self.books.of(purpose)
            }
        assert self.shown.history() == self.books.history()

    def meet_refunds_of_the_bank(self) -> None:
        """Learn what those are called that nobody asked for."""
        while self.books.taken:
            money, refund = self.books.taken.pop()
            shown = Refund.objects.filter(reversal=money.reversal_id, amount=refund.amount)
            refund.id = shown.exclude(pk__in=self.books.orders).earliest("id").id
            self.books.orders[refund.id] = refund
