"""Scenarios of the audit tests: payments, refunds, withdrawals and approvals."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import time_machine
from django.db import transaction
from django.db.models import F

from banks import ChargeResult, ReportedTransfer, TransferResult
from core import clock
from payments import cards, services
from reconciliation.exceptions.order_completion import HANDLERS
from reconciliation.exceptions.returns import ReturnDestination
from tests.approvals.builders import decide_approval
from tests.operations import exception_scenarios
from tests.reconciliation.builders import Seller, complete_order, decide
from tests.refunds.builders import PAYEE, RefundShop, send_due_refunds
from tests.transfers.builders import Bank
from tests.withdrawals.builders import PATH, send_due_withdrawals, withdrawn
from transfers import services as transfers
from transfers.models import Transfer
from transfers.schedule import OVERDUE_AFTER
from withdrawals import services as withdrawals

Serving = Callable[..., Bank]
DONE, REFUSED, UNKNOWN = (
    TransferResult("succeeded", "b-1"),
    TransferResult("failed", "b-1"),
    TransferResult("unknown"),
)
CHARGED = ChargeResult("succeeded", "chrg_1", None, "visa", "4242")


def pay(counter: RefundShop, serving: Serving) -> None:
    counter.paid()


def wait(counter: RefundShop, serving: Serving) -> None:
    counter.shop.qr_code()


def decline(counter: RefundShop, serving: Serving) -> None:
    counter.bank.notify(counter.shop.qr_code(), type="decline")


def expire(counter: RefundShop, serving: Serving) -> None:
    with time_machine.travel(clock.now(), tick=False) as machine:
        counter.shop.qr_code()
        machine.shift(timedelta(days=2))
        services.expire_due(now=clock.now())


def report_late(counter: RefundShop, serving: Serving) -> None:
    """Paid in time, reported after expiry."""
    with time_machine.travel(clock.now(), tick=False) as machine:
        code, paid_at = counter.shop.qr_code(), clock.now()
        machine.shift(timedelta(days=2))
        counter.bank.notify(code, paid_at=paid_at)


def pay_with_exceptions(counter: RefundShop, serving: Serving) -> None:
    """Money that is held for staff."""
    code = counter.shop.qr_code()
    counter.bank.notify(code, satang=149_999)
    counter.bank.notify(code)
    counter.bank.notify(code)
    counter.bank.notify(code, type="decline")
    counter.bank.notify(code, reference1="NOBODYS")


def charge_cards(counter: RefundShop, serving: Serving) -> None:
    for output in [
        [],
        [CHARGED],
        [ChargeResult("declined", failure_code="card_declined")],
        [ChargeResult("unknown")],
        [ChargeResult("unknown"), CHARGED],
        [ChargeResult("refused")],
    ]:
        now = clock.now()
        made = cards.draft(merchant=counter.shop.merchant, token_id="tok", amount=150_000, now=now)
        cards.store(made)
        for each in output:
            with transaction.atomic():
                cards.complete(made.payment.id, each, now=clock.now())


def refund(counter: RefundShop, serving: Serving) -> None:
    """A part, then the rest."""
    serving(sends=[DONE])
    payment_id = counter.paid()
    counter.refund(payment_id, amount=50_000)
    send_due_refunds()
    counter.refund(payment_id)
    counter.refund(counter.paid(), amount=1)
    send_due_refunds()


def fail_refund(counter: RefundShop, serving: Serving) -> None:
    serving(sends=[REFUSED])
    counter.refund(counter.paid())
    send_due_refunds()


def begin_refunds(counter: RefundShop, serving: Serving) -> None:
    """Create refunds: one awaits a destination, one is submitted, one is queued, two are canceled."""
    serving(sends=[UNKNOWN], inquiries=[UNKNOWN])
    counter.refund(counter.paid(), amount=10_000)
    send_due_refunds(2)
    counter.refund(counter.paid())
    counter.refund(_paid_from_nowhere(counter))
    for payment_id in (counter.paid(), _paid_from_nowhere(counter)):
        assert counter.act(counter.refund(payment_id), "cancel").status_code == 200


def _paid_from_nowhere(counter: RefundShop) -> str:
    """A payment from an account at an unknown bank."""
    code = counter.shop.qr_code()
    assert counter.bank.notify(code, payer_bank_code="999").status_code == 200
    return str(code["payment_id"])


def return_refund(counter: RefundShop, serving: Serving) -> None:
    serving(sends=[DONE])
    made = counter.refund(counter.paid())
    send_due_refunds()
    transfers.apply_notification(
        ReportedTransfer(made["refund_id"], "returned"), HANDLERS["ref"], now=clock.now()
    )


def withdraw(counter: RefundShop, serving: Serving) -> None:
    counter.paid()
    serving(sends=[DONE])
    withdrawn(counter.shop)
    send_due_withdrawals()


def fail_withdrawal(counter: RefundShop, serving: Serving) -> None:
    counter.paid()
    serving(sends=[REFUSED])
    withdrawn(counter.shop)
    send_due_withdrawals()


def begin_withdrawals(counter: RefundShop, serving: Serving) -> None:
    """Create withdrawals: one is submitted, one is retried, one is canceled, one is queued."""
    for _ in range(4):
        counter.paid()
    serving(sends=[UNKNOWN], inquiries=[UNKNOWN])
    withdrawn(counter.shop)
    send_due_withdrawals(2)
    serving(sends=[TransferResult("not_sent")], inquiries=[UNKNOWN])
    withdrawn(counter.shop)
    send_due_withdrawals()
    canceled = withdrawn(counter.shop)["withdrawal_id"]
    assert counter.shop.post(f"{PATH}/{canceled}/cancel").status_code == 200
    withdrawn(counter.shop)


def return_withdrawal(counter: RefundShop, serving: Serving) -> None:
    counter.paid()
    serving(sends=[DONE])
    made = withdrawn(counter.shop)
    send_due_withdrawals()
    transfers.apply_notification(
        ReportedTransfer(made["withdrawal_id"], "returned"), HANDLERS["wd"], now=clock.now()
    )


def request_approvals(counter: RefundShop, serving: Serving, settings: Any) -> None:
    """Create four approvals of each kind: waiting, approved, rejected and canceled."""
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


def _ask_for_refunds(counter: RefundShop) -> None:
    request_body = [counter.refund(counter.paid(), destination=PAYEE) for _ in range(4)]
    decide_approval(request_body[1]["refund_id"], "approve")
    decide_approval(request_body[2]["refund_id"], "reject")
    assert counter.act(request_body[3], "cancel").status_code == 200


def _ask_for_returns(counter: RefundShop, serving: Serving) -> None:
    seller, destination = (
        Seller(counter.shop, counter.bank),
        ReturnDestination("004", "4051234567", "Somying"),
    )
    returns = [decide("send_back", seller.unmatched(), destination=destination) for _ in range(4)]
    by_hand = [
        decide("record_manual_return", seller.unmatched(), bank_reference="counter 7") for _ in range(3)
    ]
    write_offs = [seller.reverse(seller.sale(), 150_001) for _ in range(4)]
    for reversal in write_offs:
        decide("write_off", reversal)
    for request_body in (returns, by_hand, write_offs):
        decide_approval(request_body[1].id, "approve", actor="staff:somsak")
        decide_approval(request_body[2].id, "reject", actor="staff:somsak")
    seller.reverse(returns[3].movement)
    decide("dismiss", write_offs[3])


def _ask_whether_orders_never_arrived(counter: RefundShop, serving: Serving) -> None:
    """Within the limits, and above them."""
    serving(sends=[UNKNOWN], inquiries=[UNKNOWN])
    request_body = []
    for amount in (50_000, *[50_001] * 4):
        counter.paid()
        made = withdrawn(counter.shop, amount=amount)["withdrawal_id"]
        if amount > 50_000:
            decide_approval(made, "approve", actor="staff:somsak")
        request_body.append(made)
    send_due_withdrawals(2)
    Transfer.objects.filter(pk__in=request_body).update(submitted_at=F("submitted_at") - OVERDUE_AFTER)
    for made in request_body:
        complete_order(made, transfers.NEVER_ARRIVED)
    decide_approval(request_body[2], "approve", actor="staff:somsak")
    decide_approval(request_body[3], "reject", actor="staff:somsak")
    transfers.apply_notification(
        ReportedTransfer(request_body[4], "succeeded"), HANDLERS["wd"], now=clock.now()
    )


SCENARIOS = [
    pay, wait, decline, expire, report_late, pay_with_exceptions, charge_cards, refund, fail_refund,
    begin_refunds, return_refund, withdraw, fail_withdrawal, begin_withdrawals, return_withdrawal,
    *exception_scenarios.SCENARIOS,
]  # fmt: skip
