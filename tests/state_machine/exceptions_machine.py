"""Steps with exceptions: late, wrong, duplicate, unknown and reversed money, and staff decisions."""

from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from approvals import services
from approvals.models import Approval
from audit_trail.acts import ActRefused
from core import clock, ids, money as satang
from ledger import accounts
from ledger.queries import read_balances
from merchants import services as merchants
from merchants.models import LateMoneyPolicy
from reconciliation.exceptions import resolutions
from reconciliation.models import BankTransactionKind, ReconciliationException
from refunds.destinations import Destination
from tests.approvals.builders import decide_approval
from tests.context import acting_as
from tests.state_machine.expected import ApprovalItem, BankMoney, Order, Payment
from tests.state_machine.http_service import account
from tests.state_machine.model import ITEM_LIMIT
from tests.state_machine.payments_machine import AMOUNTS, PaymentsMachine

T = TypeVar("T")
INDEX = st.integers(0, 99)
MIN_WITHDRAWAL = 100  # satang of a withdrawal
WAIT_SECONDS = st.sampled_from([0, 5, 10])
SUBMIT_AND_COMPLETE = (0, 5)  # seconds until the order is submitted, and until its final status


class ExceptionsMachine(PaymentsMachine):
    """The steps of payments, and steps with exceptions."""

    @rule(payment=PaymentsMachine.payments, more=st.sampled_from([-1, 1, 500]))
    def pay_another_amount(self, payment: Payment, more: int) -> None:
        self.pay(payment, payment.amount + more, named_payment=payment)

    @rule(target=PaymentsMachine.payments, amount=AMOUNTS)
    def sell_for_another_amount(self, amount: int) -> Payment:
        payment = self.create(amount, 15)
        self.pay_another_amount(payment, 1)
        return payment

    @rule(payment=PaymentsMachine.payments)
    def pay_unknown_reference(self, payment: Payment) -> None:
        """Pay with a reference that no payment has."""
        nobody = ids.random_text(20, "ABCDEFGH")
        self.pay(payment, payment.amount, named_payment=None, reference1=nobody)

    @rule(takes=st.booleans())
    def set_late_money_policy(self, takes: bool) -> None:
        policy = LateMoneyPolicy.ACCEPT if takes else LateMoneyPolicy.REVIEW
        merchants.set_policy(self.shop.merchant.id, late_money=policy)
        self.model.takes_late_money = takes

    @precondition(lambda self: self.model.net_available >= MIN_WITHDRAWAL and self.model.reversible())
    @rule(target=PaymentsMachine.orders, ending=st.sampled_from(["4567", "0004"]), seconds=WAIT_SECONDS)
    def reverse_while_withdrawal_pending(self, ending: str, seconds: int) -> Any:
        """The shop withdraws without approval. The bank then reverses payments until there is a debt."""
        order = self.withdraw_amount(min(self.model.net_available, ITEM_LIMIT), ending)
        for money in self.model.reversible():
            if self.model.net_available >= 0:
                self.reverse(money)
        self.wait(seconds)
        self.carry_out(is_bank_up=True)
        return order

    @precondition(lambda self: self.model.reversible())
    @rule(target=PaymentsMachine.orders, index=INDEX, part=st.sampled_from([1, 2]))
    def reverse_while_refund_pending(self, index: int, part: int) -> Any:
        money = pick(self.model.reversible(), index)
        order = self.refund_part(money, part)
        self.reverse(money)
        return order

    def refund_part(self, money: BankMoney, part: int) -> Any:
        """Refund the rest of its payment, or half of the rest."""
        assert money.payment is not None
        expected_amount = max(money.payment.left // part, 1)
        return self.refund(money.payment, expected_amount, "4567", amount=expected_amount)

    @precondition(lambda self: self.model.money)
    @rule(index=INDEX)
    def take_back(self, index: int) -> None:
        """The bank reverses any money that it reported, or repeats an earlier reversal."""
        untouched = [money for money in self.model.money if not money.reversal]
        on_its_way = [money for money in untouched if money.place == "sending"]
        self.reverse(pick_mostly(on_its_way or untouched, self.model.money, index))

    def reverse(self, money: BankMoney) -> None:
        """The bank sends the reversal twice, as after a lost response. The repetition changes nothing."""
        for _ in range(2):
            assert self.bank.post(money.notification | {"type": "reversal"}).status_code == 200
        money.reversal_id = self.bank_transaction_of(money, BankTransactionKind.REVERSAL)
        self.model.reverse(money)

    @rule(payment=PaymentsMachine.payments)
    def reverse_before_credit_notification(self, payment: Payment) -> None:
        money = BankMoney(self.bank.notification(payment.code, type="reversal"), payment.amount, payment)
        assert self.bank.post(money.notification).status_code == 200
        money.reversal, money.reversal_id = (
            "waits",
            self.bank_transaction_of(money, BankTransactionKind.REVERSAL),
        )
        money.notification = self.notify(payment, transaction_id=money.notification["transaction_id"])
        money.bank_transaction_id = self.bank_transaction_of(money, BankTransactionKind.CREDIT)
        self.model.receive(money, clock.now())

    @precondition(lambda self: self.model.money)
    @rule(index=INDEX)
    def accept(self, index: int) -> None:
        acceptable = [money for money in self.model.money if is_acceptable(money)]
        money = pick_mostly(acceptable, self.model.money, index)
        if (
            self.decide(is_acceptable(money), resolutions.accept, money.bank_transaction_id)
            and money.named_payment
        ):
            self.model.credit(money, money.named_payment)

    @precondition(lambda self: self.model.money)
    @rule(index=INDEX, to=INDEX)
    def attach(self, index: int, to: int) -> None:
        money, everybody = self.pick_held_money(index), list(self.model.payments.values())
        payable = [payment for payment in everybody if payment.is_payable]
        payment = pick_mostly(payable, everybody, to)
        is_allowed = money.place == "held" and payment.is_payable
        if self.decide(is_allowed, resolutions.attach, money.bank_transaction_id, payment_id=payment.id):
            self.model.credit(money, payment)

    @precondition(lambda self: self.model.money)
    @rule(index=INDEX, ending=st.sampled_from(["4567", "0001"]), rounds=st.integers(0, 2))
    def send_back(self, index: int, ending: str, rounds: int) -> None:
        money, shown = self.pick_held_money(index), account(ending)
        to = Destination(shown["bank_code"], shown["bank_account"], shown["account_name"])
        is_allowed = money.place == "held" and money.is_confirmed
        if made := self.decide(is_allowed, resolutions.send_back, money.bank_transaction_id, destination=to):
            order = Order(made.id, "return", money.amount, ending, clock.now(), money=money)
            self.model.check_order_limits(order)
            self.model.send_back(money, order)
        self.work(*SUBMIT_AND_COMPLETE[:rounds])

    @precondition(lambda self: self.model.money)
    @rule(index=INDEX)
    def send_back_by_hand(self, index: int) -> None:
        money = self.pick_held_money(index)
        is_allowed = money.place == "held" and money.is_confirmed
        if made := self.decide(
            is_allowed,
            resolutions.record_manual_return,
            money.bank_transaction_id,
            bank_reference="counter 7",
        ):
            if self.model.check_limits(ApprovalItem(made.id, money.amount, money=money)):
                money.place, money.order = "sending", None
            else:
                self.model.leave_suspense(money)

    @precondition(lambda self: self.model.open_reversals())
    @rule(index=INDEX)
    def dismiss(self, index: int) -> None:
        """Dismiss a reversal of money that has already left."""
        money = pick(self.model.open_reversals(), index)
        self.decide(True, resolutions.dismiss, money.reversal_id)
        self.model.end(money.reversal_id)
        money.reversal = "dismissed"

    @precondition(lambda self: self.model.open_reversals())
    @rule(index=INDEX)
    def write_off(self, index: int) -> None:
        money = pick(self.model.open_reversals(), index)
        is_allowed = money.reversal_id not in {item.subject_id for item in self.model.waiting()}
        is_asked = self.decide(is_allowed, resolutions.write_off, money.reversal_id)
        if is_asked and not self.model.check_limits(
            ApprovalItem(money.reversal_id, money.amount, written_off=money)
        ):
            self.model.write_off(money)

    @precondition(lambda self: self.model.waiting())
    @rule(index=INDEX, approves=st.booleans())
    def decide_approval(self, index: int, approves: bool) -> None:
        """A second person approves or rejects an item above the limits. The requester may not."""
        item = pick(self.model.waiting(), index)
        approval = Approval.objects.waiting().get(subject_id=item.subject_id)
        with pytest.raises(services.NotDecidable, match="Another person must decide"):
            self.decide_as(approval, approves, by=approval.requested_by)
        self.decide_as(approval, approves, by="staff:somsak")
        if approves:
            self.model.approve(item, clock.now())
        else:
            self.model.reject(item)

    def decide_as(self, approval: Approval, approves: bool, *, by: str) -> None:
        decide_approval(approval.subject_id, "approve" if approves else "reject", actor=by)

    @precondition(lambda self: self.returns())
    @rule(index=INDEX)
    def return_sent_back_money(self, index: int) -> None:
        """The payer's bank returns the money because the account is closed."""
        order = pick(self.returns(), index)
        shown = {"type": "order", "reference": order.id, "bank_reference": "sbo_1", "currency": "THB"}
        shown |= {"amount": satang.baht(order.amount), "status": "returned", "reason": "account_closed"}
        assert self.bank.post(shown).status_code == 200
        if order.state == "submitted":
            self.model.pay_out(order)
        self.model.return_money(order)

    @rule()
    def run_transfers(self) -> None:
        self.work(*SUBMIT_AND_COMPLETE)

    @invariant()
    def check_suspense_and_exceptions(self) -> None:
        found = read_balances([accounts.SANDBOX_SUSPENSE, accounts.SANDBOX_WRITE_OFFS], None)
        assert found.get(accounts.SANDBOX_SUSPENSE, 0) == self.model.suspense
        assert found.get(accounts.SANDBOX_WRITE_OFFS, 0) == -self.model.written_off
        held = {money.bank_transaction_id for money in self.model.held()}
        undone = {money.reversal_id for money in self.model.open_reversals()}
        waiting = [item.subject_id for item in self.model.waiting()]
        assert sorted(Approval.objects.waiting().values_list("subject_id", flat=True)) == sorted(waiting)
        assert set(ReconciliationException.objects.values_list("pk", flat=True)) == held | undone

    def work(self, *waits: int) -> None:
        """Run the workers after each of these waits in seconds."""
        for seconds in waits:
            self.wait(seconds)
            self.carry_out(is_bank_up=True)

    def returns(self) -> list[Order]:
        """Return the returns that are submitted or succeeded."""
        return [
            order for order in self.model.with_purpose("return") if order.state in ("submitted", "succeeded")
        ]

    def pick_held_money(self, index: int) -> BankMoney:
        """Pick mostly held money. Any action on other money must be refused."""
        return pick_mostly(self.model.held(), self.model.money, index)

    def decide(self, is_allowed: bool, action: Callable[..., T], subject_id: str, **shown: Any) -> T | None:
        """Run an action of staff. Return None if it is refused, as expected."""
        try:
            with acting_as("staff:malee"):
                done = action(subject_id, note="The customer called.", now=clock.now(), **shown)
        except ActRefused:
            assert not is_allowed
            return None
        assert is_allowed
        return done


def is_acceptable(money: BankMoney) -> bool:
    """Return whether staff can accept late or wrong money for the payment that it names."""
    is_open = money.place == "held" and money.is_acceptable
    return is_open and money.named_payment is not None and money.named_payment.is_payable


def pick(items: list[T], index: int) -> T:
    return items[index % len(items)]


def pick_mostly(preferred: list[T], others: list[T], index: int) -> T:
    """Return a preferred item in nine of ten cases, if there is one."""
    return pick(preferred if preferred and index % 10 else others, index // 10)
