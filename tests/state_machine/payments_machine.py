"""Steps of a shop, its payers and its bank, and the invariants after each step."""

import json
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

import time_machine
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, precondition, rule

import reconciliation.tasks
import refunds.tasks
import withdrawals.tasks
from banks import TransferPurpose
from core import clock
from counts import tasks as counts
from ledger import tasks as ledger
from payments import tasks as payments
from reconciliation.models import BankTransaction, BankTransactionKind
from refunds.models import Refund
from sandbox import callbacks
from sandbox.models import SandboxOrder
from tests.state_machine.expected import BankMoney, Order, Payment
from tests.state_machine.http_service import (
    HttpConnectionClient,
    HttpResponse_,
    SentRequest,
    ShopView,
    account,
    open_empty_shop,
    refusal,
    unreachable_bank,
)
from tests.state_machine.model import MoneyModel

# In the past, because the sandbox bank uses the database's clock: all its results are then due.
START = datetime(2025, 1, 6, 3, tzinfo=UTC)
AMOUNTS = st.integers(100, 1_000)
ENDINGS = st.sampled_from(["4567", "0001", "0002", "0003", "0004"])


class PaymentsMachine(RuleBasedStateMachine):
    """A run with one shop. Only some steps move the clock."""

    payments, orders = Bundle("payments"), Bundle("orders")

    def __init__(self, client: HttpConnectionClient) -> None:
        super().__init__()
        self.clock = time_machine.travel(START, tick=False)
        self.time = self.clock.start()
        self.shop, self.bank = open_empty_shop(client)
        self.view = ShopView(self.shop)
        self.model = MoneyModel()
        self.keys = 0
        self.stored_requests: list[tuple[SentRequest, HttpResponse_]] = []

    def teardown(self) -> None:
        try:
            self.run_background_tasks()
            self.view.forget()
            self.check()
            assert self.view.balance_by_transactions() == self.model.balance
            by_bank = [
                order for order in self.model.orders.values() if order.sent_at and not order.is_to_card
            ]
            orders = {order.id: order.amount for order in by_bank}
            assert dict(SandboxOrder.objects.values_list("reference", "amount")) == orders
        finally:
            self.clock.stop()

    def ask(
        self, path: str, body: dict[str, Any] | None = None, *, stored_statuses: Collection[int] = (200,)
    ) -> HttpResponse_:
        """Post under a new key. stored_statuses: statuses of answers that the service stores with the key."""
        self.keys += 1
        request = SentRequest(path, body, f"key {self.keys}")
        response = self.post(request)
        if response.status_code in stored_statuses:
            self.stored_requests.append((request, response))
        return response

    def post(self, request: SentRequest) -> HttpResponse_:
        response: HttpResponse_ = self.shop.post(request.path, request.body, key=request.key)
        return response

    @rule(target=payments, amount=AMOUNTS, minutes=st.integers(1, 60))
    def create_code(self, amount: int, minutes: int) -> Payment:
        return self.create(amount, minutes)

    def create(self, amount: int, minutes: int) -> Payment:
        shown = {"amount": amount, "currency": "THB", "expiry_minutes": minutes}
        response = self.ask("/v1/qr-codes", shown)
        assert response.status_code == 200, response.content
        payment = Payment(response.json(), amount)
        self.model.payments[payment.id] = payment
        return payment

    def notify(self, payment: Payment, **changes: Any) -> dict[str, Any]:
        """Send a bank notification, and store it for `repeat_notification`."""
        notification = self.bank.notification(payment.code, **changes)
        payment.notifications.append(json.dumps(notification).encode())
        assert self.bank.post(payment.notifications[-1]).status_code == 200
        return notification

    def pay(self, payment: Payment, satang: int, *, named_payment: Payment | None, **changes: Any) -> None:
        """Report a credit. named_payment: the payment that its reference names."""
        paid_at = changes.get("paid_at", clock.now())
        money = BankMoney(self.notify(payment, satang=satang, **changes), satang, named_payment)
        money.bank_transaction_id = self.bank_transaction_of(money, BankTransactionKind.CREDIT)
        self.model.receive(money, paid_at)

    def bank_transaction_of(self, money: BankMoney, kind: BankTransactionKind) -> str:
        shown = BankTransaction.objects.get(bank_reference=money.notification["transaction_id"], kind=kind)
        return str(shown.id)

    @rule(payment=payments)
    def confirm(self, payment: Payment) -> None:
        """Pay a code now. Late or duplicate money is held; the instant of expiry is in time."""
        self.pay(payment, payment.amount, named_payment=payment)

    @rule(target=payments, amount=AMOUNTS)
    def sell(self, amount: int) -> Payment:
        payment = self.create(amount, 15)
        self.confirm(payment)
        return payment

    @rule(payment=payments)
    def confirm_late_what_was_paid_in_time(self, payment: Payment) -> None:
        in_time = payment.expires_at - timedelta(seconds=1)
        self.pay(payment, payment.amount, named_payment=payment, paid_at=in_time)

    @rule(payment=payments)
    def decline(self, payment: Payment) -> None:
        self.notify(payment, type="decline")
        if payment.status == "pending":
            payment.status = "failed"

    @rule(payment=payments, index=st.integers(0, 9))
    def repeat_notification(self, payment: Payment, index: int) -> None:
        if payment.notifications:
            assert (
                self.bank.post(payment.notifications[index % len(payment.notifications)]).status_code == 200
            )

    @rule(payment=payments)
    def expire_code(self, payment: Payment) -> None:
        response = self.ask(f"/v1/qr-codes/{payment.code['qr_code_id']}/expire")
        if payment.status == "pending":
            assert response.status_code == 200
            payment.code = payment.code | {"expires_at": response.json()["expires_at"]}
            payment.status = "expired"
        else:
            assert refusal(response) == (400, "qr_code_not_expirable")

    @rule(seconds=st.sampled_from([1, 1, 5, 5, 60, 1_000]))
    def wait(self, seconds: int) -> None:
        self.time.shift(seconds)
        self.model.expire(clock.now())

    @rule()
    def run_background_tasks(self) -> None:
        """Run the background tasks that have no visible result."""
        payments.expire_due()
        ledger.roll_up_due()
        counts.roll_up()

    @rule(target=orders, payment=payments, ending=ENDINGS)
    def refund_what_is_left(self, payment: Payment, ending: str) -> Any:
        return self.refund(payment, payment.left, ending)

    @rule(target=orders, payment=payments, amount=st.integers(1, 1_000), ending=ENDINGS)
    def refund_a_part(self, payment: Payment, amount: int, ending: str) -> Any:
        return self.refund(payment, amount, ending, amount=amount)

    def refund(self, payment: Payment, expected_amount: int, ending: str, **shown: int) -> Any:
        response = self.ask("/v1/refunds", {"payment_id": payment.id, "destination": account(ending)} | shown)
        refused = self.model.refusal_of_refund(payment, expected_amount)
        return self.check_order(response, refused, "refund", expected_amount, ending, payment)

    @rule(target=orders, amount=AMOUNTS, ending=ENDINGS)
    def withdraw(self, amount: int, ending: str) -> Any:
        return self.withdraw_amount(amount, ending)

    def withdraw_amount(self, amount: int, ending: str) -> Any:
        response = self.ask("/v1/withdrawals", {"amount": amount, "currency": "THB"} | account(ending))
        refused = self.model.refusal_of_spending(amount)
        return self.check_order(response, refused, "withdrawal", amount, ending)

    def check_order(
        self,
        response: Any,
        refused: tuple[int, str] | None,
        purpose: TransferPurpose,
        amount: int,
        ending: str,
        payment: Payment | None = None,
    ) -> Any:
        """Return the accepted order, or nothing if the service refuses it as expected."""
        if refused:
            assert refusal(response) == refused
            return multiple()
        assert response.status_code == 200, response.content
        order = Order(response.json()[f"{purpose}_id"], purpose, amount, ending, clock.now(), payment)
        if not order.is_to_card:  # the payer's own card needs no approval
            self.model.check_order_limits(order)
        self.model.reserve(order)
        return order

    @rule(order=orders)
    def cancel(self, order: Order) -> None:
        response = self.ask(f"/v1/{order.purpose}s/{order.id}/cancel")
        if order.is_cancelable:
            assert response.status_code == 200, response.content
            self.model.release(order, "canceled")
        else:
            assert refusal(response) == (400, f"{order.purpose}_not_cancelable")

    @rule(is_bank_up=st.sampled_from([True, True, True, False]))
    def carry_out(self, is_bank_up: bool) -> None:
        with unreachable_bank(not is_bank_up):
            refunds.tasks.run_due()
            withdrawals.tasks.run_due()
            reconciliation.tasks.run_returns()
        self.model.carry_out(clock.now(), is_bank_up=is_bank_up)

    @rule()
    def send_callbacks(self) -> None:
        callbacks.run_once()
        self.model.apply_returns()

    @precondition(lambda self: self.stored_requests)
    @rule(index=st.integers(0, 99))
    def repeat(self, index: int) -> None:
        """A repeated request gets the same response byte by byte and changes nothing."""
        request, first = self.stored_requests[index % len(self.stored_requests)]
        response = self.post(request)
        assert (response.status_code, response.content) == (first.status_code, first.content)
        assert response.headers["Idempotent-Replayed"] == "true"

    @precondition(lambda self: self.stored_requests)
    @rule(index=st.integers(0, 99), amount=AMOUNTS)
    def reuse_idempotency_key(self, index: int, amount: int) -> None:
        request, _ = self.stored_requests[index % len(self.stored_requests)]
        other = SentRequest("/v1/qr-codes", {"amount": amount, "currency": "THB"}, request.key)
        assert refusal(self.post(other)) == (409, "idempotency_key_reused")

    @invariant()
    def check(self) -> None:
        self.adopt_refunds_by_reversal()
        assert not self.view.check_audit()
        assert self.view.read("balance") == self.model.balance
        assert self.view.listed("payments", "status", "amount_refunded", "amount_received") == {
            payment.id: (payment.status, payment.refunded, self.model.amount_received(payment))
            for payment in self.model.payments.values()
        }
        for purpose in ("refund", "withdrawal"):
            assert self.view.listed(f"{purpose}s", "status", "amount") == {
                order.id: (order.status, order.amount) for order in self.model.with_purpose(purpose)
            }
        assert self.view.history() == self.model.history()

    def adopt_refunds_by_reversal(self) -> None:
        """Learn the ids of refunds that reversals created."""
        while self.model.bank_reversals:
            money, refund = self.model.bank_reversals.pop()
            shown = Refund.objects.filter(reversal=money.reversal_id, amount=refund.amount)
            refund.id = shown.exclude(pk__in=self.model.orders).earliest("id").id
            self.model.orders[refund.id] = refund
