"""Months of disordered money: each has the right name, and nothing remains after what a person does."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from banks import ChargeResult, ReportedTransfer, SettledItem, TransferResult
from core import clock
from operations.audit.month_close import closing
from operations.audit.month_close.closing import Books
from payments import cards
from payments.models import CardCharge
from reconciliation.matching.order_completion import HANDLERS
from reconciliation.models import BankTransaction
from settlements import questions
from settlements.models import OpenQuestion
from tests.audit import differences
from tests.reconciliation.builders import Seller, decide, run_returns
from tests.refunds.builders import RefundShop, send_due_refunds
from tests.settlements.conftest import AMOUNT, COST, COST_VAT, FEE, VAT, ReportingAcquirer, item_of
from tests.transfers.builders import Bank, pass_time
from tests.withdrawals.builders import send_due_withdrawals, withdrawn
from transfers import services as transfers

pytestmark = pytest.mark.django_db
DONE, UNKNOWN = TransferResult("succeeded", "b-1"), TransferResult("unknown")
SALE = 150_000


@dataclass
class Disorder:
    """A shop, its bank, and an acquirer; what a scenario does with them."""

    seller: Seller
    acquirer: ReportingAcquirer
    serving: Callable[..., Bank]

    def card(self, **changes: Any) -> CardCharge:
        return self.acquirer.charge(self.seller.shop.merchant, **changes)

    def transferred(self, *items: SettledItem, **changes: Any) -> None:
        self.acquirer.transfer(*items, **changes)
        self.acquirer.read()


@pytest.fixture
def disorder(
    refund_shop: RefundShop, acquirer: ReportingAcquirer, served_by: Callable[..., Bank], clock: Any
) -> Disorder:
    return Disorder(Seller(refund_shop.shop, refund_shop.bank), acquirer, served_by)


Answer = Callable[[], Any]


def books() -> Books:
    return closing.read(closing.month_of(clock.now()), clock.now(), is_sandbox=True)


def book_the_difference() -> None:
    question = OpenQuestion.objects.get(closed_at=None)
    questions.close(question.pk, note="They told us so.", is_booked=True, now=clock.now())


def paid(of: Disorder) -> Answer | None:
    of.seller.paid()
    return None


def paid_twice(of: Disorder) -> Answer:
    second = of.seller.duplicate()
    return lambda: send_back(of, second)


def send_back(of: Disorder, held: BankTransaction) -> None:
    of.serving(sends=[DONE])
    decide("send_back", held)
    run_returns()


def paid_too_much(of: Disorder) -> Answer:
    more = of.seller.mismatch(SALE + 100)

    def return_excess() -> None:
        of.serving(sends=[DONE])
        decide("return_excess", more)
        run_returns()

    return return_excess


def paid_too_little(of: Disorder) -> Answer:
    less = of.seller.mismatch(SALE - 100)
    return lambda: decide("accept", less)


def paid_late(of: Disorder) -> Answer:
    late = of.seller.late()
    return lambda: decide("accept", late)


def unknown_reference(of: Disorder) -> Answer:
    unknown = of.seller.unmatched()
    return lambda: send_back(of, unknown)


def reversed_unknown(of: Disorder) -> Answer:
    """The bank takes back a payment, and says that it takes back another that never came."""
    credit = of.seller.sale()
    of.seller.reverse(credit)
    never = of.seller.reverse(of.seller.sale(), transaction_id="NEVERHEARDOFTHAT0000")
    return lambda: decide("dismiss", never)


def refund_of_a_part_of_a_card(of: Disorder) -> Answer:
    charge = of.card()
    of.serving(sends=[UNKNOWN], inquiries=[UNKNOWN])
    refund = of.seller.refund(charge.pk, amount=40_000)
    send_due_refunds()

    def the_bank_answers() -> None:
        of.serving(inquiries=[DONE])
        send_due_refunds()
        item = SettledItem("refund", "rfnd_1", refund["refund_id"], -40_000, 0, 0, -40_000)
        of.transferred(item_of(charge), item)

    return the_bank_answers


def card_with_a_late_fee(of: Disorder) -> Answer:
    charge = of.card(fee=None)

    def the_acquirer_says_it() -> None:
        result = ChargeResult("succeeded", charge.charge_id, None, "visa", "4242", fee=FEE, fee_vat=VAT)
        with transaction.atomic():
            cards.complete(charge.pk, result, now=clock.now())

    return the_acquirer_says_it


def fee_that_changed(of: Disorder) -> Answer:
    of.transferred(item_of(of.card(), fee=FEE + 100))
    return book_the_difference


def transfer_short_by_a_satang(of: Disorder) -> Answer:
    of.transferred(item_of(of.card()), short_by=1)
    return book_the_difference


def transfer_twice(of: Disorder) -> Answer:
    charge = of.card()
    of.acquirer.transfer(item_of(charge))
    of.transferred(item_of(charge))

    def the_acquirer_takes_it_back() -> None:
        for question in OpenQuestion.objects.filter(closed_at=None):
            questions.close(question.pk, note="They take it back.", is_booked=False, now=clock.now())

    return the_acquirer_takes_it_back


def withdrawal_returned(of: Disorder) -> Answer:
    of.seller.paid()
    of.serving(sends=[UNKNOWN], inquiries=[UNKNOWN])
    made = withdrawn(of.seller.shop)
    send_due_withdrawals()

    def the_bank_returns_it() -> None:
        of.serving(inquiries=[DONE])
        pass_time()
        send_due_withdrawals()
        returned = ReportedTransfer(made["withdrawal_id"], "returned")
        transfers.apply_notification(returned, HANDLERS["wd"], now=clock.now())

    return the_bank_returns_it


SCENARIOS: list[tuple[Callable[[Disorder], Answer | None], list[str], dict[str, int]]] = [
    (paid, [], {"payment": SALE}),
    (paid_twice, ["exception_duplicate"], {"payment": SALE}),
    (paid_too_much, ["exception_amount_mismatch"], {"payment": SALE}),
    (paid_too_little, ["exception_amount_mismatch"], {"payment": SALE - 100}),
    (paid_late, ["exception_late"], {"payment": SALE}),
    (unknown_reference, ["exception_unmatched"], {}),
    (reversed_unknown, ["exception_reversal"], {"payment": 2 * SALE, "reversal": -SALE}),
    (
        refund_of_a_part_of_a_card,
        ["result_unknown"],
        {"payment": AMOUNT, "fee": -FEE, "vat": -VAT, "refund": -40_000, "price": -COST - COST_VAT},
    ),
    (card_with_a_late_fee, ["fee_unknown"], {"payment": AMOUNT, "fee": -FEE, "vat": -VAT}),
    (
        fee_that_changed,
        ["settlement_fee_differs"],
        {"payment": AMOUNT, "fee": -FEE, "vat": -VAT, "price": -COST - COST_VAT, "loss": -100},
    ),
    (
        transfer_short_by_a_satang,
        ["settlement_amount_differs"],
        {"payment": AMOUNT, "fee": -FEE, "vat": -VAT, "price": -COST - COST_VAT, "loss": -1},
    ),
    (
        transfer_twice,
        ["settlement_paid_twice"],
        # What came twice is on the account of the acquirer, which it takes back.
        {"payment": AMOUNT, "fee": -FEE, "vat": -VAT, "price": -2 * (COST + COST_VAT)},
    ),
    (withdrawal_returned, ["result_unknown"], {"payment": SALE}),
]


@pytest.mark.parametrize(
    ("scenario", "names", "amounts"), SCENARIOS, ids=[each[0].__name__ for each in SCENARIOS]
)
def test_nothing_remains_of_a_month_of(
    disorder: Disorder, clock: Any, scenario: Any, names: list[str], amounts: dict[str, int]
) -> None:
    answer = scenario(disorder)
    clock.shift(timedelta(minutes=20))
    before = books()
    assert [each.kind for each in before.open] == names
    assert (before.remainder > 0) == bool(names)
    if answer:
        answer()
    after = books()
    assert (after.open, after.remainder) == ([], 0)
    assert {name: amount for name, amount in after.total.amounts.items() if amount} == amounts
    assert all(party.unexplained == 0 for party in after.parties)
    assert after.total.closing == sum(amounts.values())
    assert not differences()
