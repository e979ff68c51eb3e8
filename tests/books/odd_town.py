"""A town whose money does not always fit: late, wrong, twice, for nobody, taken back; and its staff."""

from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from approvals import services
from approvals.models import Approval
from console import approval_handlers
from core import clock, ids
from core import money as satang
from merchants import services as merchants
from merchants.models import LateMoney
from receipts import acts
from receipts.acts import Destination, NotPossible
from receipts.models import Kind, Waiting
from tests.books.cast import account
from tests.books.model import ITEM_LIMIT
from tests.books.things import Judged, Money, Order, Payment
from tests.books.town import AMOUNTS, Town
from transactions import accounts
from transactions.postings import read

T = TypeVar("T")
WHICH = st.integers(0, 99)
LEAST = 100  # satang of a withdrawal
WAITS = st.sampled_from([0, 5, 10])
ENOUGH = (0, 5)  # to tell the bank, and to hear how it ended


class OddTown(Town):
    """All lives of a town, and these."""

    @rule(payment=Town.payments, more=st.sampled_from([-1, 1, 500]))
    def pay_another_amount(self, payment: Payment, more: int) -> None:
        self.pay(payment, payment.amount + more, own=payment)

    @rule(target=Town.payments, amount=AMOUNTS)
    def sell_for_another_amount(self, amount: int) -> Payment:
        payment = self.create(amount, 15)
        self.pay_another_amount(payment, 1)
        return payment

    @rule(payment=Town.payments)
    def pay_nobody(self, payment: Payment) -> None:
        """Somebody mistyped the reference."""
        nobody = ids.random_text(20, "ABCDEFGH")
        self.pay(payment, payment.amount, own=None, reference1=nobody)

    @rule(takes=st.booleans())
    def decide_about_late_money(self, takes: bool) -> None:
        policy = LateMoney.ACCEPT if takes else LateMoney.REVIEW
        merchants.decide_late_money(merchant_id=self.shop.merchant.id, late_money=policy)
        self.books.takes_late_money = takes

    @precondition(lambda self: self.books.net >= LEAST and self.books.reversible())
    @rule(target=Town.orders, ending=st.sampled_from(["4567", "0004"]), seconds=WAITS)
    def owe_while_a_withdrawal_waits(self, ending: str, seconds: int) -> Any:
        """The shop withdraws what needs no approval, and the bank takes payments back until the shop owes."""
        order = self.withdraw_amount(min(self.books.net, ITEM_LIMIT), ending)
        for money in self.books.reversible():
            if self.books.net >= 0:
                self.reverse(money)
        self.wait(seconds)
        self.carry_out(is_bank_up=True)
        return order

    @precondition(lambda self: self.books.reversible())
    @rule(target=Town.orders, which=WHICH, part=st.sampled_from([1, 2]))
    def take_back_while_a_refund_waits(self, which: int, part: int) -> Any:
        money = chosen(self.books.reversible(), which)
        order = self.refund_part(money, part)
        self.reverse(money)
        return order

    def refund_part(self, money: Money, part: int) -> Any:
        """All that is left of its payment, or half of it."""
        assert money.payment is not None
        wanted = max(money.payment.left // part, 1)
        return self.refund(money.payment, wanted, "4567", amount=wanted)

    @precondition(lambda self: self.books.money)
    @rule(which=WHICH)
    def take_back(self, which: int) -> None:
        """The bank takes back any money that it told of, or says again that it did."""
        untouched = [money for money in self.books.money if not money.reversal]
        on_its_way = [money for money in untouched if money.place == "sending"]
        self.reverse(nearly_always(on_its_way or untouched, self.books.money, which))

    def reverse(self, money: Money) -> None:
        """The bank says so twice, because it missed our answer: that changes nothing more."""
        for _ in range(2):
            assert self.bank.post(money.notice | {"type": "reversal"}).status_code == 200
        money.reversal_id = self.receipt_of(money, Kind.REVERSAL)
        self.books.take_back(money)

    @rule(payment=Town.payments)
    def take_back_before_it_is_told(self, payment: Payment) -> None:
        money = Money(self.bank.notice(payment.code, type="reversal"), payment.amount, payment)
        assert self.bank.post(money.notice).status_code == 200
        money.reversal, money.reversal_id = "waits", self.receipt_of(money, Kind.REVERSAL)
        money.notice = self.tell(payment, transaction_id=money.notice["transaction_id"])
        money.receipt_id = self.receipt_of(money, Kind.CREDIT)
        self.books.take_in(money, clock.now())

    @precondition(lambda self: self.books.money)
    @rule(which=WHICH)
    def accept(self, which: int) -> None:
        acceptable = [money for money in self.books.money if is_acceptable(money)]
        money = nearly_always(acceptable, self.books.money, which)
        if self.decide(is_acceptable(money), acts.accept, money.receipt_id) and money.own:
            self.books.credit(money, money.own)

    @precondition(lambda self: self.books.money)
    @rule(which=WHICH, to=WHICH)
    def attach(self, which: int, to: int) -> None:
        money, everybody = self.waiting_or_any(which), list(self.books.payments.values())
        payable = [payment for payment in everybody if payment.is_payable]
        payment = nearly_always(payable, everybody, to)
        may = money.place == "held" and payment.is_payable
        if self.decide(may, acts.attach, money.receipt_id, payment_id=payment.id):
            self.books.credit(money, payment)

    @precondition(lambda self: self.books.money)
    @rule(which=WHICH, ending=st.sampled_from(["4567", "0001"]), rounds=st.integers(0, 2))
    def send_back(self, which: int, ending: str, rounds: int) -> None:
        money, told = self.waiting_or_any(which), account(ending)
        to = Destination(told["bank_code"], told["bank_account"], told["account_name"])
        may = money.place == "held" and money.is_confirmed
        if made := self.decide(may, acts.send_back, money.receipt_id, destination=to):
            order = Order(made.id, "return", money.amount, ending, clock.now(), money=money)
            self.books.judge_order(order)
            self.books.order_back(money, order)
        self.work(*ENOUGH[:rounds])

    @precondition(lambda self: self.books.money)
    @rule(which=WHICH)
    def send_back_by_hand(self, which: int) -> None:
        money = self.waiting_or_any(which)
        may = money.place == "held" and money.is_confirmed
        if made := self.decide(may, acts.send_back_by_hand, money.receipt_id, bank_reference="counter 7"):
            if self.books.judge(Judged(made.id, money.amount, money=money)):
                money.place, money.order = "sending", None
            else:
                self.books.let_go(money)

    @precondition(lambda self: self.books.undone())
    @rule(which=WHICH)
    def dismiss(self, which: int) -> None:
        """A reversal of what has left already."""
        money = chosen(self.books.undone(), which)
        self.decide(True, acts.dismiss, money.reversal_id)
        self.books.end(money.reversal_id)
        money.reversal = "dismissed"

    @precondition(lambda self: self.books.undone())
    @rule(which=WHICH)
    def lose(self, which: int) -> None:
        money = chosen(self.books.undone(), which)
        may = money.reversal_id not in {item.subject_id for item in self.books.waiting()}
        is_asked = self.decide(may, acts.lose, money.reversal_id)
        if is_asked and not self.books.judge(Judged(money.reversal_id, money.amount, lost=money)):
            self.books.lose(money)

    @precondition(lambda self: self.books.waiting())
    @rule(which=WHICH, approves=st.booleans())
    def decide_about_money_out(self, which: int, approves: bool) -> None:
        """A second person approves or rejects what is above the limits, never the one who requested it."""
        item = chosen(self.books.waiting(), which)
        approval = Approval.objects.waiting().get(subject_id=item.subject_id)
        with pytest.raises(services.OwnRequest):
            self.judge(approval, approves, by=approval.requested_by)
        self.judge(approval, approves, by="staff:somsak")
        if approves:
            self.books.approve(item, clock.now())
        else:
            self.books.reject(item)

    def judge(self, approval: Approval, approves: bool, *, by: str) -> None:
        act = services.approve if approves else services.reject
        act(approval.id, approval_handlers.of(approval), by=by, why="Checked.", now=clock.now())

    @precondition(lambda self: self.returns())
    @rule(which=WHICH)
    def bring_back(self, which: int) -> None:
        """The payer's bank does not know the account, and says so when it likes."""
        order = chosen(self.returns(), which)
        told = {"type": "order", "reference": order.id, "bank_reference": "sbo_1", "currency": "THB"}
        told |= {"amount": satang.baht(order.amount), "status": "returned", "reason": "account_closed"}
        assert self.bank.post(told).status_code == 200
        if order.state == "told":
            self.books.pay_out(order)
        self.books.come_back(order)

    @rule()
    def let_some_seconds_pass(self) -> None:
        self.work(*ENOUGH)

    @invariant()
    def check_what_waits(self) -> None:
        found = read([accounts.SANDBOX_SUSPENSE, accounts.LOSSES], None)
        assert found.get(accounts.SANDBOX_SUSPENSE, 0) == self.books.suspense
        assert found.get(accounts.LOSSES, 0) == -self.books.lost
        held = {money.receipt_id for money in self.books.held()}
        undone = {money.reversal_id for money in self.books.undone()}
        waiting = [item.subject_id for item in self.books.waiting()]
        assert sorted(Approval.objects.waiting().values_list("subject_id", flat=True)) == sorted(waiting)
        assert set(Waiting.objects.values_list("pk", flat=True)) == held | undone

    def work(self, *waits: int) -> None:
        """A round of the workers after so many seconds, and the next."""
        for seconds in waits:
            self.wait(seconds)
            self.carry_out(is_bank_up=True)

    def returns(self) -> list[Order]:
        """Those that the bank has taken, and has not brought back."""
        return [order for order in self.books.of("return") if order.state in ("told", "succeeded")]

    def waiting_or_any(self, which: int) -> Money:
        """Nothing can be decided about money that does not wait."""
        return nearly_always(self.books.held(), self.books.money, which)

    def decide(self, may: bool, act: Callable[..., T], subject_id: str, **told: Any) -> T | None:
        """What staff do, or nothing where it must not be possible."""
        try:
            done = act(subject_id, by="malee", why="The customer called.", now=clock.now(), **told)
        except NotPossible:
            assert not may
            return None
        assert may
        return done


def is_acceptable(money: Money) -> bool:
    """Late, or another amount, for its own payment, which still waits."""
    is_open = money.place == "held" and money.is_acceptable
    return is_open and money.own is not None and money.own.is_payable


def chosen(things: list[T], which: int) -> T:
    return things[which % len(things)]


def nearly_always(these: list[T], those: list[T], which: int) -> T:
    """Nine times in ten one of these, if there are any."""
    return chosen(these if these and which % 10 else those, which // 10)
