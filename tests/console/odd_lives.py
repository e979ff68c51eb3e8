"""Every kind of life that money can have which does not fit, or which its bank takes back."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import transaction

from banks import OrderNotice, Said, Word
from core import clock
from merchants.models import LateMoney, Merchant
from payments import cards
from receipts import acts, charges, orders
from receipts.models import Notice, Receipt
from receipts.orders import OWNERS
from refunds.models import Refund
from tests.conftest import open_shop
from tests.receipts.cast import WHY, Till, carry_back, decide, return_of, reversal_of
from tests.receipts.statements.cast import bot, line_of, load
from tests.refunds.cast import Counter, carry_out
from tests.transfers.cast import Bank
from tests.withdrawals.cast import withdrawn, work
from transactions import ledger
from transfers import services as transfers
from transfers import settling
from transfers.models import Contradiction

Serving = Callable[..., Bank]
DONE, REFUSED, UNDER_WAY = Word("succeeded", "b-1"), Word("failed", "b-1"), Word("processing", "b-1")


def _till(counter: Counter) -> Till:
    return Till(counter.shop, counter.bank)


def _poor(counter: Counter) -> Till:
    """A shop whose balance is nothing but what comes here."""
    return Till(open_shop("Som O"), counter.bank)


def accept(counter: Counter, serving: Serving) -> None:
    """Late, too little, too much."""
    till = _till(counter)
    for receipt in (till.late(), till.mismatch(149_999), till.mismatch(150_001)):
        decide("accept", receipt)


def accept_by_policy(counter: Counter, serving: Serving) -> None:
    till = _poor(counter)
    Merchant.objects.filter(pk=till.shop.merchant.id).update(late_money=LateMoney.ACCEPT)
    till.late()
    till.mismatch()


def attach(counter: Counter, serving: Serving) -> None:
    till = _till(counter)
    for receipt in (till.unmatched(), till.duplicate(), till.mismatch(99)):
        decide("attach", receipt, payment_id=till.shop.qr_code()["payment_id"])


def send_back(counter: Counter, serving: Serving) -> None:
    """It arrives; it fails, and then arrives; it arrives and comes back."""
    till = _till(counter)
    serving(sends=[DONE, REFUSED, DONE, DONE])
    for receipt in (till.unmatched(), failed := till.duplicate(), returned := till.late()):
        decide("send_back", receipt)
        carry_back()
    decide("send_back", failed)
    carry_back()
    transfers.hear(OrderNotice(return_of(returned).id, "returned"), OWNERS["rtn"], now=clock.now())


def begin_to_send_back(counter: Counter, serving: Serving) -> None:
    """Of one its bank was told, and is silent; one is to be sent."""
    till = _till(counter)
    serving(sends=[UNDER_WAY], inquiries=[UNDER_WAY])
    decide("send_back", till.unmatched())
    carry_back()
    decide("send_back", till.unmatched())


def send_back_by_hand(counter: Counter, serving: Serving) -> None:
    decide("send_back_by_hand", _till(counter).unmatched(), bank_reference="counter 7")


def dismiss(counter: Counter, serving: Serving) -> None:
    till = _till(counter)
    decide("dismiss", till.takes_back(till.sold(), transaction_id="NEVERHEARDOFTHAT0000"))


def keep(counter: Counter, serving: Serving) -> None:
    """The merchant gets the money of a refund that came back; of another it waits."""
    serving(sends=[DONE])
    for _ in range(2):
        made = counter.refund(counter.paid())["refund_id"]
        carry_out()
        transfers.hear(OrderNotice(made, "returned"), OWNERS["ref"], now=clock.now())
    acts.keep(Refund.objects.get(pk=made).id, by="malee", why=WHY, now=clock.now())


def reverse(counter: Counter, serving: Serving) -> None:
    """All of a payment, a part of one, one that staff accepted, one whose money was attached."""
    till = _till(counter)
    till.takes_back(till.sold())
    till.takes_back(till.sold(), 50_000)
    accepted, attached = till.mismatch(99), till.unmatched()
    decide("accept", accepted)
    decide("attach", attached, payment_id=till.shop.qr_code()["payment_id"])
    till.takes_back(accepted)
    till.takes_back(attached)


def owe(counter: Counter, serving: Serving) -> None:
    """A bank takes back more than is left, and later money fills the debt."""
    till = _poor(counter)
    credit = till.sold()
    serving(sends=[DONE])
    withdrawn(till.shop)
    work()
    till.takes_back(credit)
    till.sold(250_000)
    ledger.fold_due(now=clock.now())


def owe_more(counter: Counter, serving: Serving) -> None:
    """After a refund of a part, or of all; while a refund is under way, which then ends so or so."""
    for amount, sends, ends in [
        (60_000, DONE, DONE),
        (150_000, DONE, DONE),
        (40_000, UNDER_WAY, DONE),
        (40_000, UNDER_WAY, REFUSED),
        (150_000, UNDER_WAY, REFUSED),
    ]:
        till = _poor(counter)
        serving(sends=[sends], inquiries=[ends])
        credit = till.sold()
        till.refund(str(credit.payment_id), amount=amount)
        carry_out()
        till.takes_back(credit)
        carry_out()


def reverse_what_waits(counter: Counter, serving: Serving) -> None:
    """Each kind of it; of one a part, before it is accepted; of one too much."""
    till = _till(counter)
    for credit in (till.unmatched(), till.mismatch(), till.late(), till.duplicate()):
        till.takes_back(credit)
    till.takes_back(part := till.late(), 50_000)
    decide("accept", part)
    till.takes_back(till.unmatched(), 150_001)


def reverse_what_is_sent_back(counter: Counter, serving: Serving) -> None:
    """While the order is queued; when its bank was told, and it then fails, arrives, comes back after all."""
    till = _till(counter)
    queued = till.unmatched()
    decide("send_back", queued)
    till.takes_back(queued)
    for ends in (REFUSED, DONE, DONE):
        serving(sends=[UNDER_WAY], inquiries=[ends])
        decide("send_back", credit := till.unmatched())
        carry_back()
        till.takes_back(credit)
        carry_back()
    transfers.hear(OrderNotice(return_of(credit).id, "returned"), OWNERS["rtn"], now=clock.now())


def reverse_before(counter: Counter, serving: Serving) -> None:
    """The reversal comes before its credit: of a payment, and of money that waits."""
    till = _till(counter)
    for changes in ({}, {"reference1": "NOBODYS"}):
        notice = till.bank.notice(till.shop.qr_code(), **changes)
        for kind in ("reversal", "credit"):
            assert till.bank.post(notice | {"type": kind}).status_code == 200


def reverse_twice(counter: Counter, serving: Serving) -> None:
    """The same word again, and a second one under another id."""
    till = _till(counter)
    notice = reversal_of(till.sold())
    for again in ({}, {}, {"transaction_id": "ANOTHERTRANSACTION00"}):
        assert till.bank.post(notice | again).status_code == 200
    assert Receipt.objects.filter(kind="reversal", outcome="reversed").exists()


def lose(counter: Counter, serving: Serving) -> None:
    """What the bank took back had arrived at its payer; that stays so, or comes back after all."""
    till = _till(counter)
    for _ in range(2):
        serving(sends=[UNDER_WAY], inquiries=[DONE])
        decide("send_back", credit := till.unmatched())
        carry_back()
        reversal = till.takes_back(credit)
        carry_back()
        decide("lose", reversal)
    transfers.hear(OrderNotice(return_of(credit).id, "returned"), OWNERS["rtn"], now=clock.now())


def reopen(counter: Counter, serving: Serving) -> None:
    """A dismissal and losses that were mistakes: what waits again, is lost again, is taken after all."""
    till = _till(counter)
    for after in ([], ["lose"], ["dismiss"], ["lose", "reopen"], ["lose", "reopen", "lose"]):
        for first in ("dismiss", "lose"):
            reversal = till.takes_back(till.sold(), 150_001)
            for deed in (first, "reopen", *after):
                decide(deed, reversal)
    counter.bank.post(b"garbage")
    message = Notice.objects.filter(verdict="unreadable").latest("id")
    for act in (acts.dismiss, acts.reopen, acts.dismiss, acts.reopen):
        act(message.id, by="malee", why=WHY, now=clock.now())


def take_back_by_order(counter: Counter, serving: Serving) -> None:
    """A bank that sends nothing to accounts tells what it took back by our order: a refund, a return."""
    till = _till(counter)
    serving(sends=[DONE])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("banks.voids", lambda route: True)
        paid, odd = till.sold(), till.unmatched()
        till.refund(str(paid.payment_id))
        decide("send_back", odd)
        carry_out()
        carry_back()
        for credit in (paid, odd):
            assert till.takes_back(credit).outcome == "ordered"


def report_by_statement(counter: Counter, serving: Serving) -> None:
    """Only a file reports it: a second person confirms it, its bank takes it back, it waits."""
    till = _till(counter)
    for kind in ("confirmed", "reversed", "unconfirmed"):
        code = till.shop.qr_code()
        load(bot(line_of(code, clock.now().replace(microsecond=0))))
        credit = till.receipt(code["payment_id"])
        if kind == "reversed":
            till.takes_back(credit, transaction_id="THEBANKSOWNID0000000")
        if kind == "confirmed":
            decide("confirm", credit, by="somsri")


def contradict(counter: Counter, serving: Serving) -> None:
    """The bank says that it never sent two withdrawals and a refund that it had reported as sent."""
    for _ in range(2):
        counter.paid()
    serving(sends=[DONE, DONE, DONE])
    made = [withdrawn(counter.shop)["withdrawal_id"] for _ in range(2)]
    work()
    made.append(counter.refund(counter.paid())["refund_id"])
    carry_out()
    for order_id in made:
        owner = OWNERS[order_id.partition("_")[0]]
        settling.settle(order_id, REFUSED, owner, now=clock.now())
    waiting = Contradiction.objects.in_bulk(field_name="id").values()
    found = {each.subject_id: each.id for each in waiting}
    for order_id in made[1:]:
        orders.book_as_returned(found[order_id], by="malee", why=WHY, now=clock.now())


def charge_another_amount(counter: Counter, serving: Serving) -> None:
    """The acquirer charged three cards another amount; staff refunded two of the charges there."""
    for number in range(3):
        made = cards.draft(merchant=counter.shop.merchant, token_id="tok", amount=150_000, now=clock.now())
        cards.store(made)
        charged = Said("succeeded", f"chrg_{number}", None, "visa", "4242", amount=15_000, currency="THB")
        with transaction.atomic():
            cards.settle(made.payment.id, charged, now=clock.now())
        if number:
            found = Contradiction.objects.get(subject_id=made.payment.id)
            charges.book_as_failed(found.id, by="malee", why=WHY, now=clock.now())


def count_once(counter: Counter, serving: Serving) -> None:
    """Two reports are one transaction: staff count it once; or open that again, once or for good."""
    till, now = _till(counter), clock.now().replace(microsecond=0)
    for times in range(3):
        code = till.shop.qr_code()
        load(bot(line_of(code, now - timedelta(days=1))))
        held = till.told(code, paid_at=now)
        decide("merge", held)
        if times:
            decide("reopen", held)
        if times > 1:
            decide("merge", held)


LIVES = [
    accept, accept_by_policy, attach, send_back, send_back_by_hand, dismiss, keep, reverse, owe, owe_more,
    reverse_what_waits, reverse_what_is_sent_back, reverse_before, reverse_twice,
    lose, reopen, take_back_by_order, begin_to_send_back,
    report_by_statement, contradict, charge_another_amount, count_once,
]  # fmt: skip
