"""Every kind of life that a payment, a refund, a withdrawal or an account can have."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import time_machine
from django.db import transaction
from django.db.models import F

from banks import OrderNotice, Said, Word
from core import clock
from payments import cards, services
from receipts import orders
from receipts.acts import Destination
from receipts.orders import OWNERS
from tests.approvals.cast import decide_approval
from tests.console import odd_lives
from tests.receipts.cast import Till, decide
from tests.refunds.cast import PAYEE, Counter, carry_out
from tests.transfers.cast import Bank
from tests.withdrawals.cast import PATH, withdrawn, work
from transfers import services as transfers
from transfers.models import Transfer
from transfers.schedule import OVERDUE
from withdrawals import services as withdrawals

Serving = Callable[..., Bank]
DONE, REFUSED, UNKNOWN = Word("succeeded", "b-1"), Word("failed", "b-1"), Word("unknown")
CHARGED = Said("succeeded", "chrg_1", None, "visa", "4242")


def pay(counter: Counter, serving: Serving) -> None:
    counter.paid()


def wait(counter: Counter, serving: Serving) -> None:
    counter.shop.qr_code()


def decline(counter: Counter, serving: Serving) -> None:
    counter.bank.tell(counter.shop.qr_code(), type="decline")


def expire(counter: Counter, serving: Serving) -> None:
    with time_machine.travel(clock.now(), tick=False) as machine:
        counter.shop.qr_code()
        machine.shift(timedelta(days=2))
        services.expire_due(now=clock.now())


def report_late(counter: Counter, serving: Serving) -> None:
    """Paid in time, told after expiry."""
    with time_machine.travel(clock.now(), tick=False) as machine:
        code, paid_at = counter.shop.qr_code(), clock.now()
        machine.shift(timedelta(days=2))
        counter.bank.tell(code, paid_at=paid_at)


def pay_strangely(counter: Counter, serving: Serving) -> None:
    """Money that waits for staff."""
    code = counter.shop.qr_code()
    counter.bank.tell(code, satang=149_999)
    counter.bank.tell(code)
    counter.bank.tell(code)
    counter.bank.tell(code, type="decline")
    counter.bank.tell(code, reference1="NOBODYS")


def charge_cards(counter: Counter, serving: Serving) -> None:
    for said in [
        [],
        [CHARGED],
        [Said("declined", failure_code="card_declined")],
        [Said("unknown")],
        [Said("unknown"), CHARGED],
        [Said("refused")],
    ]:
        now = clock.now()
        made = cards.draft(merchant=counter.shop.merchant, token_id="tok", amount=150_000, now=now)
        cards.store(made)
        for each in said:
            with transaction.atomic():
                cards.settle(made.payment.id, each, now=clock.now())


def refund(counter: Counter, serving: Serving) -> None:
    """In part, and then the whole."""
    serving(sends=[DONE])
    payment_id = counter.paid()
    counter.refund(payment_id, amount=50_000)
    carry_out()
    counter.refund(payment_id)
    counter.refund(counter.paid(), amount=1)
    carry_out()


def fail_refund(counter: Counter, serving: Serving) -> None:
    serving(sends=[REFUSED])
    counter.refund(counter.paid())
    carry_out()


def begin_refunds(counter: Counter, serving: Serving) -> None:
    """One waits for a destination, one for its bank's word, one to be sent; two are canceled."""
    serving(sends=[UNKNOWN], inquiries=[UNKNOWN])
    counter.refund(counter.paid(), amount=10_000)
    carry_out(2)
    counter.refund(counter.paid())
    counter.refund(_paid_from_nowhere(counter))
    for payment_id in (counter.paid(), _paid_from_nowhere(counter)):
        assert counter.act(counter.refund(payment_id), "cancel").status_code == 200


def _paid_from_nowhere(counter: Counter) -> str:
    """A payment by an account at a bank that nobody knows."""
    code = counter.shop.qr_code()
    assert counter.bank.tell(code, payer_bank_code="999").status_code == 200
    return str(code["payment_id"])


def return_refund(counter: Counter, serving: Serving) -> None:
    serving(sends=[DONE])
    made = counter.refund(counter.paid())
    carry_out()
    transfers.hear(OrderNotice(made["refund_id"], "returned"), OWNERS["ref"], now=clock.now())


def withdraw(counter: Counter, serving: Serving) -> None:
    counter.paid()
    serving(sends=[DONE])
    withdrawn(counter.shop)
    work()


def fail_withdrawal(counter: Counter, serving: Serving) -> None:
    counter.paid()
    serving(sends=[REFUSED])
    withdrawn(counter.shop)
    work()


def begin_withdrawals(counter: Counter, serving: Serving) -> None:
    """One waits for its bank's word, one has a bank that is down, one is canceled, one is to be sent."""
    for _ in range(4):
        counter.paid()
    serving(sends=[UNKNOWN], inquiries=[UNKNOWN])
    withdrawn(counter.shop)
    work(2)
    serving(sends=[Word("not_sent")], inquiries=[UNKNOWN])
    withdrawn(counter.shop)
    work()
    canceled = withdrawn(counter.shop)["withdrawal_id"]
    assert counter.shop.post(f"{PATH}/{canceled}/cancel").status_code == 200
    withdrawn(counter.shop)


def return_withdrawal(counter: Counter, serving: Serving) -> None:
    counter.paid()
    serving(sends=[DONE])
    made = withdrawn(counter.shop)
    work()
    transfers.hear(OrderNotice(made["withdrawal_id"], "returned"), OWNERS["wd"], now=clock.now())


def ask_staff(counter: Counter, serving: Serving, settings: Any) -> None:
    """Of each kind one waits, one is approved, one is rejected, one is canceled before staff look."""
    settings.APPROVAL_ITEM_LIMIT = 50_000
    _ask_for_refunds(counter)
    _ask_for_returns(counter, serving)
    _ask_whether_orders_never_arrived(counter, serving)
    for _ in range(4):
        counter.paid()
    _, approved, rejected, canceled = [withdrawn(counter.shop)["withdrawal_id"] for _ in range(4)]
    decide_approval(approved, "approve")
    decide_approval(rejected, "reject")
    withdrawals.cancel(withdrawal_id=canceled, now=clock.now())


def _ask_for_refunds(counter: Counter) -> None:
    asked = [counter.refund(counter.paid(), destination=PAYEE) for _ in range(4)]
    decide_approval(asked[1]["refund_id"], "approve")
    decide_approval(asked[2]["refund_id"], "reject")
    assert counter.act(asked[3], "cancel").status_code == 200


def _ask_for_returns(counter: Counter, serving: Serving) -> None:
    till, elsewhere = Till(counter.shop, counter.bank), Destination("004", "4051234567", "Somying")
    returns = [decide("send_back", till.unmatched(), destination=elsewhere) for _ in range(4)]
    by_hand = [decide("send_back_by_hand", till.unmatched(), bank_reference="counter 7") for _ in range(3)]
    write_offs = [till.takes_back(till.sold(), 150_001) for _ in range(4)]
    for reversal in write_offs:
        decide("lose", reversal)
    for asked in (returns, by_hand, write_offs):
        decide_approval(asked[1].id, "approve", by="staff:somsak")
        decide_approval(asked[2].id, "reject", by="staff:somsak")
    till.takes_back(returns[3].receipt)
    decide("dismiss", write_offs[3])


def _ask_whether_orders_never_arrived(counter: Counter, serving: Serving) -> None:
    """Within the limits, and above them."""
    serving(sends=[UNKNOWN], inquiries=[UNKNOWN])
    asked = []
    for amount in (50_000, *[50_001] * 4):
        counter.paid()
        made = withdrawn(counter.shop, amount=amount)["withdrawal_id"]
        if amount > 50_000:
            decide_approval(made, "approve", by="staff:somsak")
        asked.append(made)
    work(2)
    Transfer.objects.filter(pk__in=asked).update(told_at=F("told_at") - OVERDUE)
    for made in asked:
        orders.settle_by_hand(made, transfers.NEVER_ARRIVED, by="malee", now=clock.now())
    decide_approval(asked[2], "approve", by="staff:somsak")
    decide_approval(asked[3], "reject", by="staff:somsak")
    transfers.hear(OrderNotice(asked[4], "succeeded"), OWNERS["wd"], now=clock.now())


LIVES = [
    pay, wait, decline, expire, report_late, pay_strangely, charge_cards, refund, fail_refund, begin_refunds,
    return_refund, withdraw, fail_withdrawal, begin_withdrawals, return_withdrawal, *odd_lives.LIVES,
]  # fmt: skip
