"""Scenarios of the audit tests: held money, reversals, statements and contradictions."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import transaction

from banks import ChargeResult, ReportedTransfer, TransferResult
from core import clock
from ledger import services as ledger
from merchants.models import LateMoneyPolicy, Merchant
from payments import cards
from reconciliation.matching.order_completion import HANDLERS
from reconciliation.models import BankNotification, BankTransaction
from reconciliation.statements import undo
from refunds.models import Refund
from tests.conftest import open_shop
from tests.context import acting_as
from tests.payments.test_fees import set_terms
from tests.reconciliation.builders import Seller, decide, latest_return, reversal_of, run_returns
from tests.reconciliation.statements.statement_files import (
    bot_file,
    credit_line,
    csv_file,
    detail,
    import_file,
    report_twice,
)
from tests.reconciliation.statements.test_fees import WITH_FEE, with_fee
from tests.reconciliation.statements.test_lost_callbacks import store_unmatched_lines
from tests.refunds.builders import RefundShop, send_due_refunds
from tests.transfers.builders import Bank
from tests.withdrawals.builders import send_due_withdrawals, withdrawn
from transfers import services as transfers
from transfers.models import TransferContradiction

Serving = Callable[..., Bank]
DONE, REFUSED, UNDER_WAY = (
    TransferResult("succeeded", "b-1"),
    TransferResult("failed", "b-1"),
    TransferResult("processing", "b-1"),
)


def _shop(refund_shop: RefundShop) -> Seller:
    return Seller(refund_shop.shop, refund_shop.bank)


def _empty_shop(refund_shop: RefundShop) -> Seller:
    """A shop with an empty balance."""
    return Seller(open_shop("Som O"), refund_shop.bank)


def accept(refund_shop: RefundShop, serving: Serving) -> None:
    """Accept late money, too little money and too much money."""
    seller = _shop(refund_shop)
    for bank_transaction in (seller.late(), seller.mismatch(149_999), seller.mismatch(150_001)):
        decide("accept", bank_transaction)


def decide_as_merchant(refund_shop: RefundShop, serving: Serving) -> None:
    """A merchant accepts money, and returns other money; the bank refuses the return."""
    seller = _shop(refund_shop)
    seller.decide("accept", seller.mismatch(149_999))
    serving(sends=[REFUSED])
    seller.decide("return", seller.duplicate())
    run_returns()


def accept_by_policy(refund_shop: RefundShop, serving: Serving) -> None:
    seller = _empty_shop(refund_shop)
    Merchant.objects.filter(pk=seller.shop.merchant.id).update(late_money=LateMoneyPolicy.ACCEPT)
    seller.late()
    seller.mismatch()


def attach(refund_shop: RefundShop, serving: Serving) -> None:
    seller = _shop(refund_shop)
    for bank_transaction in (seller.unmatched(), seller.duplicate(), seller.mismatch(99)):
        decide("attach", bank_transaction, payment_id=seller.shop.qr_code()["payment_id"])


def send_back(refund_shop: RefundShop, serving: Serving) -> None:
    """Send back three: one succeeds, one fails and then succeeds, one is returned after its success."""
    seller = _shop(refund_shop)
    serving(sends=[DONE, REFUSED, DONE, DONE])
    for bank_transaction in (seller.unmatched(), failed := seller.duplicate(), returned := seller.late()):
        decide("send_back", bank_transaction)
        run_returns()
    decide("send_back", failed)
    run_returns()
    transfers.apply_notification(
        ReportedTransfer(latest_return(returned).id, "returned"), HANDLERS["rtn"], now=clock.now()
    )


def begin_to_send_back(refund_shop: RefundShop, serving: Serving) -> None:
    """Send back three: one is submitted without an answer, another and an excess are queued."""
    seller = _shop(refund_shop)
    serving(sends=[UNDER_WAY], inquiries=[UNDER_WAY])
    decide("send_back", seller.unmatched())
    run_returns()
    decide("send_back", seller.unmatched())
    decide("return_excess", seller.mismatch(150_005))


def return_excess(refund_shop: RefundShop, serving: Serving) -> None:
    """Split four over-payments: sent back, waiting after a failure, sent back by hand, reversed."""
    seller = _shop(refund_shop)
    serving(sends=[DONE, REFUSED, REFUSED, REFUSED])
    sent, open_excess, by_hand, reversed_credit = (seller.mismatch(150_000 + more) for more in (1, 2, 3, 4))
    for bank_transaction in (sent, open_excess, by_hand, reversed_credit):
        decide("return_excess", bank_transaction)
        run_returns()
    decide("record_manual_return", by_hand, bank_reference="counter 8")
    seller.reverse(reversed_credit)
    seller.reverse(sent, 150_000)


def send_back_by_hand(refund_shop: RefundShop, serving: Serving) -> None:
    decide("record_manual_return", _shop(refund_shop).unmatched(), bank_reference="counter 7")


def dismiss(refund_shop: RefundShop, serving: Serving) -> None:
    seller = _shop(refund_shop)
    decide("dismiss", seller.reverse(seller.sale(), transaction_id="NEVERHEARDOFTHAT0000"))


def credit_returned_refund(refund_shop: RefundShop, serving: Serving) -> None:
    """The money of one returned refund is credited to the merchant; that of another is held."""
    serving(sends=[DONE])
    for _ in range(2):
        made = refund_shop.refund(refund_shop.paid())["refund_id"]
        send_due_refunds()
        transfers.apply_notification(ReportedTransfer(made, "returned"), HANDLERS["ref"], now=clock.now())
    decide("credit_returned_refund", Refund.objects.get(pk=made).id)


def reverse(refund_shop: RefundShop, serving: Serving) -> None:
    """Reverse a whole payment, a part of one, accepted money and attached money."""
    seller = _shop(refund_shop)
    seller.reverse(seller.sale())
    seller.reverse(seller.sale(), 50_000)
    accepted, attached = seller.mismatch(99), seller.unmatched()
    decide("accept", accepted)
    decide("attach", attached, payment_id=seller.shop.qr_code()["payment_id"])
    seller.reverse(accepted)
    seller.reverse(attached)


def reverse_more_than_balance(refund_shop: RefundShop, serving: Serving) -> None:
    """Reverse more than the balance. Later money repays the debt."""
    seller = _empty_shop(refund_shop)
    credit = seller.sale()
    serving(sends=[DONE])
    withdrawn(seller.shop)
    send_due_withdrawals()
    seller.reverse(credit)
    seller.sale(250_000)
    ledger.roll_up_due(now=clock.now())


def reverse_after_refund(refund_shop: RefundShop, serving: Serving) -> None:
    """Reverse after a partial or full refund, and during a refund that succeeds or fails."""
    for amount, sends, ends in [
        (60_000, DONE, DONE),
        (150_000, DONE, DONE),
        (40_000, UNDER_WAY, DONE),
        (40_000, UNDER_WAY, REFUSED),
        (150_000, UNDER_WAY, REFUSED),
    ]:
        seller = _empty_shop(refund_shop)
        serving(sends=[sends], inquiries=[ends])
        credit = seller.sale()
        seller.refund(str(credit.payment_id), amount=amount)
        send_due_refunds()
        seller.reverse(credit)
        send_due_refunds()


def reverse_what_waits(refund_shop: RefundShop, serving: Serving) -> None:
    """Reverse each kind of held money, a part of it before staff accept it, and more than was held."""
    seller = _shop(refund_shop)
    for credit in (seller.unmatched(), seller.mismatch(), seller.late(), seller.duplicate()):
        seller.reverse(credit)
    seller.reverse(part := seller.late(), 50_000)
    decide("accept", part)
    seller.reverse(seller.unmatched(), 150_001)


def reverse_what_is_sent_back(refund_shop: RefundShop, serving: Serving) -> None:
    """Reverse money of a queued return, and of submitted ones that fail, succeed or are returned."""
    seller = _shop(refund_shop)
    queued = seller.unmatched()
    decide("send_back", queued)
    seller.reverse(queued)
    for ends in (REFUSED, DONE, DONE):
        serving(sends=[UNDER_WAY], inquiries=[ends])
        decide("send_back", credit := seller.unmatched())
        run_returns()
        seller.reverse(credit)
        run_returns()
    transfers.apply_notification(
        ReportedTransfer(latest_return(credit).id, "returned"), HANDLERS["rtn"], now=clock.now()
    )


def reverse_before(refund_shop: RefundShop, serving: Serving) -> None:
    """Send a reversal before its credit: for a payment, and for held money."""
    seller = _shop(refund_shop)
    for changes in ({}, {"reference1": "NOBODYS"}):
        notification = seller.bank.notification(seller.shop.qr_code(), **changes)
        for kind in ("reversal", "credit"):
            assert seller.bank.post(notification | {"type": kind}).status_code == 200


def reverse_twice(refund_shop: RefundShop, serving: Serving) -> None:
    """Send the same reversal twice, and one with another id."""
    seller = _shop(refund_shop)
    notification = reversal_of(seller.sale())
    for again in ({}, {}, {"transaction_id": "ANOTHERTRANSACTION00"}):
        assert seller.bank.post(notification | again).status_code == 200
    assert BankTransaction.objects.filter(kind="reversal", match_result="reversed").exists()


def write_off(refund_shop: RefundShop, serving: Serving) -> None:
    """Write off reversed money whose return succeeded. Later one of the two returns is returned."""
    seller = _shop(refund_shop)
    for _ in range(2):
        serving(sends=[UNDER_WAY], inquiries=[DONE])
        decide("send_back", credit := seller.unmatched())
        run_returns()
        reversal = seller.reverse(credit)
        run_returns()
        decide("write_off", reversal)
    transfers.apply_notification(
        ReportedTransfer(latest_return(credit).id, "returned"), HANDLERS["rtn"], now=clock.now()
    )


def reopen(refund_shop: RefundShop, serving: Serving) -> None:
    """Reopen dismissals and write-offs, and decide again."""
    seller = _shop(refund_shop)
    for after in (
        [],
        ["write_off"],
        ["dismiss"],
        ["write_off", "reopen"],
        ["write_off", "reopen", "write_off"],
    ):
        for first in ("dismiss", "write_off"):
            reversal = seller.reverse(seller.sale(), 150_001)
            for action in (first, "reopen", *after):
                decide(action, reversal)
    refund_shop.bank.post(b"garbage")
    message = BankNotification.objects.filter(result="unreadable").latest("id")
    for action in ("dismiss", "reopen") * 2:
        decide(action, message)


def take_back_by_order(refund_shop: RefundShop, serving: Serving) -> None:
    """A bank that only voids reports a refund and a return as reversals."""
    seller = _shop(refund_shop)
    serving(sends=[DONE])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("banks.is_void_only", lambda route: True)
        paid, malformed = seller.sale(), seller.unmatched()
        seller.refund(str(paid.payment_id))
        decide("send_back", malformed)
        send_due_refunds()
        run_returns()
        for credit in (paid, malformed):
            assert seller.reverse(credit).match_result == "ordered"


def report_by_statement(refund_shop: RefundShop, serving: Serving) -> None:
    """Import three lines: one is confirmed, one is reversed, one stays unconfirmed."""
    seller = _shop(refund_shop)
    for kind in ("confirmed", "reversed", "unconfirmed"):
        code = seller.shop.qr_code()
        import_file(bot_file(credit_line(code, clock.now().replace(microsecond=0))))
        credit = seller.bank_transaction(code["payment_id"])
        if kind == "reversed":
            seller.reverse(credit, transaction_id="THEBANKSOWNID0000000")
        if kind == "confirmed":
            decide("confirm", credit, actor="staff:somsri")


def report_fees(refund_shop: RefundShop, serving: Serving) -> None:
    """Statements name fees: of two payments, the second twice; of money that waits; and before a crash."""
    seller = _empty_shop(refund_shop)
    set_terms(seller.shop, clock.now() - timedelta(days=2), rate=100)
    codes = [seller.shop.qr_code() for _ in range(4)]
    for code, satang in zip(codes, (150_000, 150_000, 140_000, 150_000), strict=True):
        seller.report(code, satang=satang)
    lines = [*map(with_fee, codes[:2]), with_fee(codes[1], "13.00"), with_fee(codes[2], amount="1400.00")]
    for line in lines:
        import_file(csv_file(line, header=WITH_FEE))
    store_unmatched_lines(csv_file(with_fee(codes[3]), header=WITH_FEE))


def contradict(refund_shop: RefundShop, serving: Serving) -> None:
    """The bank reports two withdrawals and a refund as failed that it had reported as sent."""
    for _ in range(2):
        refund_shop.paid()
    serving(sends=[DONE, DONE, DONE])
    made = [withdrawn(refund_shop.shop)["withdrawal_id"] for _ in range(2)]
    send_due_withdrawals()
    made.append(refund_shop.refund(refund_shop.paid())["refund_id"])
    send_due_refunds()
    for order_id in made:
        owner = HANDLERS[order_id.partition("_")[0]]
        transfers.complete(order_id, REFUSED, owner, now=clock.now())
    waiting = TransferContradiction.objects.in_bulk(field_name="id").values()
    found = {each.subject_id: each.id for each in waiting}
    for order_id in made[1:]:
        decide("mark_returned", found[order_id])


def charge_another_amount(refund_shop: RefundShop, serving: Serving) -> None:
    """The acquirer charged three cards another amount; staff refunded two of the charges there."""
    for number in range(3):
        made = cards.draft(
            merchant=refund_shop.shop.merchant, token_id="tok", amount=150_000, now=clock.now()
        )
        cards.store(made)
        charged = ChargeResult(
            "succeeded", f"chrg_{number}", None, "visa", "4242", amount=15_000, currency="THB"
        )
        with transaction.atomic():
            cards.complete(made.payment.id, charged, now=clock.now())
        if number:
            found = TransferContradiction.objects.get(subject_id=made.payment.id)
            decide("mark_failed", found.id)


def merge_duplicates(refund_shop: RefundShop, serving: Serving) -> None:
    """Merge two reports of one transaction, reopen the merge, and merge them again."""
    seller = _shop(refund_shop)
    for times in range(3):
        held = report_twice(seller)
        decide("merge", held)
        if times:
            decide("reopen", held)
        if times > 1:
            decide("merge", held)


def undo_import(refund_shop: RefundShop, serving: Serving) -> None:
    """Undo the import of unknown money and of a line that cannot be read."""
    line = credit_line(_shop(refund_shop).shop.qr_code(), clock.now(), ref1="NOBODYKNOWSTHIS99999")
    lines = [line, detail(amount="undone?")]
    with acting_as("staff:malee"):
        undo.undo(import_file(bot_file(*lines)).statement.pk, note="Another shop.", now=clock.now())


SCENARIOS = [
    accept, decide_as_merchant, accept_by_policy, attach, return_excess, send_back, send_back_by_hand,
    dismiss,
    credit_returned_refund,
    reverse, reverse_more_than_balance, reverse_after_refund,
    reverse_what_waits, reverse_what_is_sent_back, reverse_before, reverse_twice,
    write_off, reopen, take_back_by_order, begin_to_send_back,
    report_by_statement, report_fees, contradict, charge_another_amount, merge_duplicates,
    undo_import,
]  # fmt: skip
