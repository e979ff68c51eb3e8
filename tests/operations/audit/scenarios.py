"""Scenarios of the audit tests: payments, refunds, withdrawals and approvals."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import time_machine
from django.db import connection, transaction
from django.db.models import F

from banks import ChargeResult, ReportedTransfer, SettledItem, TransferResult
from core import clock
from links import services as links
from merchants import services as merchants
from merchants.models import HoldsPayers
from payments import cards, expiry_sweep
from reconciliation.exceptions import acquirer_transfers
from reconciliation.matching.order_completion import HANDLERS
from reconciliation.models import BankTransaction
from refunds.destinations import Destination
from settlements import failed_transfers, questions
from settlements.models import AcquirerTransfer, OpenQuestion
from tests.approvals.builders import decide_approval
from tests.operations.audit import exception_scenarios
from tests.reconciliation.builders import Seller, complete_order, decide
from tests.refunds.builders import PAYEE, RefundShop, send_due_refunds
from tests.settlements.conftest import AMOUNT, DAY, FEE, VAT, ReportingAcquirer, item_of
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


def pay(refund_shop: RefundShop, serving: Serving) -> None:
    """By another payer: the payment is held, and then not."""
    merchants.set_policy(refund_shop.shop.merchant.pk, holds_payers=HoldsPayers.NO)
    payment_id = refund_shop.paid(client_name="Somying Rakdee")
    assert refund_shop.shop.post(f"/v1/payments/{payment_id}/lift-hold").status_code == 200


def wait(refund_shop: RefundShop, serving: Serving) -> None:
    refund_shop.shop.qr_code()


def pay_by_link(refund_shop: RefundShop, serving: Serving) -> None:
    shop = refund_shop.shop
    link = links.create(merchant=shop.merchant, amount=150_000, expiry_minutes=15, now=clock.now())
    payment = links.pay(link, visitor="x", amount=150_000, now=clock.now())
    refund_shop.bank.notify(shop.get(f"/v1/qr-codes/{payment.qr_code_id}").json())


def decline(refund_shop: RefundShop, serving: Serving) -> None:
    refund_shop.bank.notify(refund_shop.shop.qr_code(), type="decline")


def expire(refund_shop: RefundShop, serving: Serving) -> None:
    with time_machine.travel(clock.now(), tick=False) as machine:
        refund_shop.shop.qr_code()
        machine.shift(timedelta(days=2))
        expiry_sweep.expire_due(now=clock.now())


def report_late(refund_shop: RefundShop, serving: Serving) -> None:
    """Paid in time, reported after expiry."""
    with time_machine.travel(clock.now(), tick=False) as machine:
        code, paid_at = refund_shop.shop.qr_code(), clock.now()
        machine.shift(timedelta(days=2))
        refund_shop.bank.notify(code, paid_at=paid_at)


def pay_with_exceptions(refund_shop: RefundShop, serving: Serving) -> None:
    """Money that is held for staff."""
    code = refund_shop.shop.qr_code()
    refund_shop.bank.notify(code, satang=149_999)
    refund_shop.bank.notify(code)
    refund_shop.bank.notify(code)
    refund_shop.bank.notify(code, type="decline")
    refund_shop.bank.notify(code, reference1="NOBODYS")


def charge_cards(refund_shop: RefundShop, serving: Serving) -> None:
    for output in [
        [],
        [CHARGED],
        [ChargeResult("declined", failure_code="card_declined")],
        [ChargeResult("unknown")],
        [ChargeResult("unknown"), CHARGED],
        [CHARGED, replace(CHARGED, fee=5_475, fee_vat=383)],
        [ChargeResult("refused")],
    ]:
        now = clock.now()
        made = cards.draft(merchant=refund_shop.shop.merchant, token_id="tok", amount=150_000, now=now)
        cards.store(made)
        for each in output:
            with transaction.atomic():
                cards.complete(made.payment.id, each, now=clock.now())


def settle_cards(refund_shop: RefundShop, serving: Serving, acquirer: ReportingAcquirer) -> None:
    """One transfer is on our account, with a refund and two other fees: one is asked, one booked.

    Nobody knows the fee of another payment of it. One transfer is on its way.
    """
    serving(sends=[TransferResult("succeeded", "rfnd_1"), TransferResult("succeeded", "rfnd_2")])
    charges = [acquirer.charge(refund_shop.shop.merchant) for _ in range(5)]
    made = refund_shop.refund(charges[0].pk, amount=50_000)
    send_due_refunds()
    refund_shop.refund(charges[4].pk, amount=50_000)
    send_due_refunds()
    arrived = acquirer.transfer(
        item_of(charges[0]),
        *[item_of(each, fee=FEE + 100) for each in charges[1:3]],
        replace(item_of(acquirer.charge(refund_shop.shop.merchant, fee=None)), fee=None, fee_vat=None),
        SettledItem("refund", "rfnd_1", made["refund_id"], -50_000, 0, 0, -50_000),
    )
    acquirer.transfer(item_of(charges[3]), state="sent")
    acquirer.read()
    booked = OpenQuestion.objects.filter(payment_id=charges[2].pk).get()
    questions.close(booked.pk, note="Their new price.", is_booked=True, now=clock.now())
    refund_shop.bank.notify(refund_shop.shop.qr_code(), satang=arrived.net, reference1="PAYOUT")
    acquirer_transfers.identify(
        BankTransaction.objects.get(reference1="PAYOUT").id,
        transfer_id=AcquirerTransfer.objects.get(transfer_id=arrived.id).pk,
        note="Its slip.",
        now=clock.now(),
    )


def fail_transfer(refund_shop: RefundShop, serving: Serving, acquirer: ReportingAcquirer) -> None:
    """A later transfer has the money of one that failed, and staff say so."""
    merchant = refund_shop.shop.merchant
    failing = acquirer.transfer(item_of(acquirer.charge(merchant)), state="sent", ago=3 * DAY)
    acquirer.transfer(item_of(acquirer.charge(merchant)), short_by=-failing.amount, ago=2 * DAY)
    acquirer.read()
    acquirer.change(failing, state="failed")
    acquirer.read()
    question = OpenQuestion.objects.get(difference=failing.amount)
    (failed,) = failed_transfers.candidates(question)
    failed_transfers.pay_by_later_one(question.pk, failed_id=failed.pk, note="So they say.", now=clock.now())


def void_card(refund_shop: RefundShop, serving: Serving, acquirer: ReportingAcquirer) -> None:
    """A card payment is refunded as a whole, and the acquirer gives its fee back."""
    serving(sends=[TransferResult("succeeded", "rfnd_void")])
    charges = [acquirer.charge(refund_shop.shop.merchant) for _ in range(3)]
    made = refund_shop.refund(charges[0].pk)["refund_id"]
    send_due_refunds()
    acquirer.transfer(
        *map(item_of, charges),
        SettledItem("refund", "rfnd_void", made, -AMOUNT, 0, 0, -AMOUNT),
        SettledItem("adjustment", "rfnd_void", made, FEE + VAT, 0, 0, FEE + VAT, "refund.fee"),
    )
    acquirer.read()


def refund(refund_shop: RefundShop, serving: Serving) -> None:
    """A part, then the rest."""
    serving(sends=[DONE])
    payment_id = refund_shop.paid()
    refund_shop.refund(payment_id, amount=50_000)
    send_due_refunds()
    refund_shop.refund(payment_id)
    refund_shop.refund(refund_shop.paid(), amount=1)
    send_due_refunds()


def fail_refund(refund_shop: RefundShop, serving: Serving) -> None:
    serving(sends=[REFUSED])
    refund_shop.refund(refund_shop.paid())
    send_due_refunds()


def begin_refunds(refund_shop: RefundShop, serving: Serving) -> None:
    """Create refunds: one awaits a destination, one is submitted, one is queued, two are canceled."""
    serving(sends=[UNKNOWN], inquiries=[UNKNOWN])
    refund_shop.refund(refund_shop.paid(), amount=10_000)
    send_due_refunds(2)
    refund_shop.refund(refund_shop.paid())
    refund_shop.refund(_paid_from_nowhere(refund_shop))
    for payment_id in (refund_shop.paid(), _paid_from_nowhere(refund_shop)):
        assert refund_shop.act(refund_shop.refund(payment_id), "cancel").status_code == 200


def _paid_from_nowhere(refund_shop: RefundShop) -> str:
    """A payment from an account at an unknown bank."""
    code = refund_shop.shop.qr_code()
    assert refund_shop.bank.notify(code, payer_bank_code="999").status_code == 200
    return str(code["payment_id"])


def return_refund(refund_shop: RefundShop, serving: Serving) -> None:
    serving(sends=[DONE])
    made = refund_shop.refund(refund_shop.paid())
    send_due_refunds()
    transfers.apply_notification(
        ReportedTransfer(made["refund_id"], "returned"), HANDLERS["ref"], now=clock.now()
    )


def withdraw(refund_shop: RefundShop, serving: Serving) -> None:
    refund_shop.paid()
    serving(sends=[DONE])
    withdrawn(refund_shop.shop)
    send_due_withdrawals()


def fail_withdrawal(refund_shop: RefundShop, serving: Serving) -> None:
    refund_shop.paid()
    serving(sends=[REFUSED])
    withdrawn(refund_shop.shop)
    send_due_withdrawals()


def begin_withdrawals(refund_shop: RefundShop, serving: Serving) -> None:
    """Create withdrawals: one is submitted, one is retried, one is canceled, one is queued."""
    for _ in range(4):
        refund_shop.paid()
    serving(sends=[UNKNOWN], inquiries=[UNKNOWN])
    withdrawn(refund_shop.shop)
    send_due_withdrawals(2)
    serving(sends=[TransferResult("not_sent")], inquiries=[UNKNOWN])
    withdrawn(refund_shop.shop)
    send_due_withdrawals()
    canceled = withdrawn(refund_shop.shop)["withdrawal_id"]
    assert refund_shop.shop.post(f"{PATH}/{canceled}/cancel").status_code == 200
    withdrawn(refund_shop.shop)


def return_withdrawal(refund_shop: RefundShop, serving: Serving) -> None:
    refund_shop.paid()
    serving(sends=[DONE])
    made = withdrawn(refund_shop.shop)
    send_due_withdrawals()
    transfers.apply_notification(
        ReportedTransfer(made["withdrawal_id"], "returned"), HANDLERS["wd"], now=clock.now()
    )


def request_approvals(refund_shop: RefundShop, serving: Serving, settings: Any) -> None:
    """Create four approvals of each kind: waiting, approved, rejected and canceled."""
    settings.APPROVAL_ITEM_LIMIT = 50_000
    _ask_for_refunds(refund_shop)
    _ask_for_returns(refund_shop, serving)
    _ask_whether_orders_never_arrived(refund_shop, serving)
    for _ in range(4):
        refund_shop.paid()
    _, approved, rejected, canceled = [withdrawn(refund_shop.shop)["withdrawal_id"] for _ in range(4)]
    decide_approval(approved, "approve")
    decide_approval(rejected, "reject")
    withdrawals.cancel(withdrawal_id=canceled, now=clock.now())


def _ask_for_refunds(refund_shop: RefundShop) -> None:
    refunds = [refund_shop.refund(refund_shop.paid(), destination=PAYEE) for _ in range(4)]
    decide_approval(refunds[1]["refund_id"], "approve")
    decide_approval(refunds[2]["refund_id"], "reject")
    assert refund_shop.act(refunds[3], "cancel").status_code == 200


def _ask_for_returns(refund_shop: RefundShop, serving: Serving) -> None:
    seller, destination = (
        Seller(refund_shop.shop, refund_shop.bank),
        Destination("004", "4051234567", "Somying"),
    )
    returns = [decide("send_back", seller.unmatched(), destination=destination) for _ in range(4)]
    by_hand = [
        decide("record_manual_return", seller.unmatched(), bank_reference="counter 7") for _ in range(3)
    ]
    write_offs = [seller.reverse(seller.sale(), 150_001) for _ in range(4)]
    for reversal in write_offs:
        decide("write_off", reversal)
    for approvals in (returns, by_hand, write_offs):
        decide_approval(approvals[1].id, "approve", actor="staff:somsak")
        decide_approval(approvals[2].id, "reject", actor="staff:somsak")
    seller.reverse(returns[3].bank_transaction)
    decide("dismiss", write_offs[3])


def _ask_whether_orders_never_arrived(refund_shop: RefundShop, serving: Serving) -> None:
    """Within the limits, and above them."""
    serving(sends=[UNKNOWN], inquiries=[UNKNOWN])
    request_body = []
    for amount in (50_000, *[50_001] * 4):
        refund_shop.paid()
        made = withdrawn(refund_shop.shop, amount=amount)["withdrawal_id"]
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
    pay_by_link,
    *exception_scenarios.SCENARIOS,
]  # fmt: skip


def check_constraints_now() -> None:
    """Run the deferred triggers of this transaction. A savepoint that is rolled back would repeat them."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")  # for what the test does next
