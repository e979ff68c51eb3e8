"""Resolutions, notifications and timeouts at the same moment: real threads with their own connections."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db.models import Model

from audit_trail.acts import ActRefused
from banks import ReportedTransfer, TransferResult
from core import clock
from payments import expiry_sweep
from payments.models import Payment
from reconciliation.exceptions.resolution_records import AlreadyResolved
from reconciliation.matching import order_completion
from reconciliation.matching.order_completion import HANDLERS
from reconciliation.models import BankTransaction, Excess, Resolution, Return
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, new_client, open_shop
from tests.reconciliation.builders import (
    Seller,
    decide,
    event_types_of,
    latest_return,
    reversal_of,
    run_returns,
    state_of,
    suspense,
)
from tests.reconciliation.statements.statement_files import bot_file, credit_line, import_file
from tests.refunds.builders import send_due_refunds
from tests.transfers.builders import Bank
from transfers import services as transfers

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("audit_is_clean"),
]
Serving = Callable[..., Bank]
ROUNDS = 10
DONE, REFUSED, UNDER_WAY = (
    TransferResult("succeeded", "b-1"),
    TransferResult("failed", "b-1"),
    TransferResult("processing", "b-1"),
)


@pytest.fixture
def seller() -> Seller:
    return Seller(open_shop("Race"), SandboxBankClient(new_client()))


def deciding(action: str, bank_transaction: Model | str, **more: Any) -> Callable[[], Any]:
    """Return a function that does the action and returns its result or refusal."""

    def click() -> Any:
        try:
            return decide(action, bank_transaction, **more)
        except ActRefused as refusal:
            return refusal

    return click


def notifying(notification: dict[str, Any]) -> Callable[[], Any]:
    return partial(SandboxBankClient(new_client()).post, notification)


def done(results: list[Any]) -> int:
    """The number of actions that were not refused."""
    return sum(not isinstance(result, ActRefused) for result in results)


@pytest.mark.parametrize(
    ("action", "more"),
    [("accept", {}), ("attach", {}), ("send_back", {}), ("record_manual_return", {"bank_reference": "b"})],
)
def test_eight_concurrent_resolutions_count_once(seller: Seller, action: str, more: dict[str, str]) -> None:
    bank_transaction, other = seller.late(), seller.shop.qr_code()["payment_id"]
    given = {"payment_id": other} if action == "attach" else more
    results = run_concurrently(*[deciding(action, bank_transaction, **given)] * 8)
    assert (done(results), sum(isinstance(result, AlreadyResolved) for result in results)) == (1, 7)
    assert Resolution.objects.count() == 1


def test_concurrent_different_resolutions_count_once(seller: Seller) -> None:
    for _ in range(ROUNDS):
        bank_transaction, other = seller.late(), seller.shop.qr_code()["payment_id"]
        results = run_concurrently(
            deciding("accept", bank_transaction),
            deciding("attach", bank_transaction, payment_id=other),
            deciding("send_back", bank_transaction),
            deciding("record_manual_return", bank_transaction, bank_reference="b"),
        )
        assert (done(results), Resolution.objects.filter(subject_id=bank_transaction.id).count()) == (1, 1)


def test_concurrent_decisions_about_an_over_payment_count_once(seller: Seller, served_by: Serving) -> None:
    served_by()
    for _ in range(ROUNDS):
        bank_transaction = seller.mismatch(300_000)
        results = run_concurrently(
            *[deciding("return_excess", bank_transaction)] * 2,
            deciding("accept", bank_transaction),
            deciding("send_back", bank_transaction),
        )
        assert (done(results), Resolution.objects.filter(subject_id=bank_transaction.id).count()) == (1, 1)


def test_excess_and_its_reversal_at_once_take_the_money_once(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[DONE] * ROUNDS)
    for _ in range(ROUNDS):
        bank_transaction = seller.mismatch(300_000)
        decide("return_excess", bank_transaction)
        reversing = notifying(reversal_of(bank_transaction))
        run_concurrently(partial(order_completion.run_due_returns, now=clock.now), reversing, reversing)
        excess = Excess.objects.get(bank_transaction=bank_transaction)
        assert excess.resolution_state in ("sent_back", "taken_back")
    assert suspense() == 0


def test_concurrent_credits_of_a_returned_refund_count_once(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[DONE])
    refund_id = seller.refund(seller.paid())["refund_id"]
    send_due_refunds()
    transfers.apply_notification(ReportedTransfer(refund_id, "returned"), HANDLERS["ref"], now=clock.now())

    assert done(run_concurrently(*[deciding("credit_returned_refund", refund_id)] * 8)) == 1
    assert (seller.balance(), suspense()) == ((150_000, 0), 0)


# --- against bank notifications ----------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["accept", "attach", "send_back"])
def test_resolution_during_a_reversal_never_uses_the_money_twice(seller: Seller, action: str) -> None:
    for _ in range(ROUNDS):
        bank_transaction, other = seller.late(), seller.shop.qr_code()["payment_id"]
        more = {"payment_id": other} if action == "attach" else {}
        run_concurrently(deciding(action, bank_transaction, **more), notifying(reversal_of(bank_transaction)))
        reversal = BankTransaction.objects.get(
            kind="reversal", bank_reference=bank_transaction.bank_reference
        )
        assert state_of(reversal) == ("reversed", "")
        assert state_of(bank_transaction)[1] in (
            "taken_back",
            {"accept": "accepted", "attach": "attached"}.get(action),
        )
        assert (suspense(), seller.funds()) == (0, {"available": 0, "reserved": 0})


def test_correct_amount_during_acceptance_of_a_wrong_one_pays_once(seller: Seller) -> None:
    for number in range(ROUNDS):
        code = seller.shop.qr_code()
        less = seller.report(code, satang=100)
        results = run_concurrently(deciding("accept", less), notifying(seller.bank.notification(code)))
        payment = Payment.objects.get(pk=code["payment_id"])
        assert payment.status == "succeeded"
        assert payment.received == (100 if done(results[:1]) else 150_000), number
        right = BankTransaction.objects.get(reference1=less.reference1, amount=150_000)
        assert (state_of(right)[0], state_of(less)[1]) in [("duplicate", "accepted"), ("applied", "")]
        assert event_types_of(code["payment_id"]).count("payment.succeeded") == 1


def test_two_concurrent_attaches_pay_a_payment_once(seller: Seller) -> None:
    for _ in range(ROUNDS):
        payment_id, held = seller.shop.qr_code()["payment_id"], [seller.unmatched() for _ in range(2)]
        results = run_concurrently(*[deciding("attach", each, payment_id=payment_id) for each in held])
        assert (done(results), sorted(state_of(each)[1] for each in held)) == (
            1,
            ["", "attached"],
        )
        assert event_types_of(payment_id).count("payment.succeeded") == 1


def test_attach_during_a_callback_pays_the_payment_once(seller: Seller) -> None:
    for _ in range(ROUNDS):
        code, bank_transaction = seller.shop.qr_code(), seller.unmatched()
        attach = deciding("attach", bank_transaction, payment_id=code["payment_id"])
        results = run_concurrently(attach, notifying(seller.bank.notification(code)))
        outcomes = BankTransaction.objects.filter(payment_id=code["payment_id"]).values_list(
            "match_result", flat=True
        )
        assert sorted(outcomes) == (["duplicate", "unmatched"] if done(results[:1]) else ["applied"])
        assert event_types_of(code["payment_id"]).count("payment.succeeded") == 1


def test_attach_during_expiry_pays_the_payment(seller: Seller) -> None:
    for _ in range(ROUNDS):
        code, bank_transaction = seller.shop.qr_code(expiry_minutes=1), seller.unmatched()
        sweep = partial(expiry_sweep.expire_due, now=clock.now() + timedelta(minutes=2))
        run_concurrently(deciding("attach", bank_transaction, payment_id=code["payment_id"]), sweep)
        assert seller.shop.payment(code["payment_id"])["status"] == "succeeded"
        assert event_types_of(code["payment_id"]).count("payment.succeeded") == 1


def test_concurrent_credit_and_reversal_cancel_each_other(seller: Seller) -> None:
    for changes in [{}, {"reference1": "NOBODYKNOWSTHIS00000"}] * ROUNDS:
        notification = seller.bank.notification(seller.shop.qr_code(), **changes)
        run_concurrently(*[notifying(notification | {"type": kind}) for kind in ("credit", "reversal")] * 3)
        reversal = BankTransaction.objects.get(bank_reference=notification["transaction_id"], kind="reversal")
        assert reversal.match_result == "reversed"
        assert (suspense(), seller.funds()) == (0, {"available": 0, "reserved": 0})


@pytest.mark.parametrize("ends", [DONE, REFUSED])
def test_reversal_during_completion_of_a_return_is_applied_or_an_exception(
    seller: Seller, served_by: Serving, ends: TransferResult
) -> None:
    for _ in range(ROUNDS):
        served_by(sends=[UNDER_WAY], inquiries=[ends])
        bank_transaction = seller.unmatched()
        decide("send_back", bank_transaction)
        run_returns()
        run_concurrently(
            partial(order_completion.run_due_returns, now=clock.now), notifying(reversal_of(bank_transaction))
        )
        # A run skips an order that the notification has locked. The next run takes it.
        order_completion.run_due_returns(now=clock.now)
        reversal = BankTransaction.objects.get(
            kind="reversal", bank_reference=bank_transaction.bank_reference
        )
        found = state_of(reversal)[0], state_of(bank_transaction)[1], latest_return(bank_transaction).status
        assert found == (
            ("reversed", "taken_back", "failed")
            if ends is REFUSED
            else ("unmatched", "sent_back", "completed")
        )
        assert suspense() == 0


def test_reversal_during_submission_cancels_the_return_or_is_an_exception(
    seller: Seller, served_by: Serving
) -> None:
    for _ in range(ROUNDS):
        bank = served_by(sends=[UNDER_WAY], inquiries=[UNDER_WAY])
        bank_transaction = seller.unmatched()
        decide("send_back", bank_transaction)
        run_concurrently(
            partial(order_completion.run_due_returns, now=clock.now), notifying(reversal_of(bank_transaction))
        )
        made = latest_return(bank_transaction)
        assert (bool(bank.sent), made.status, state_of(bank_transaction)[1]) in [
            (False, "canceled", "taken_back"),
            (True, "pending", "sending_back"),
        ]
        assert not Return.objects.filter(status="failed").exists()


def test_concurrent_merges_of_two_exceptions_merge_only_one(seller: Seller) -> None:
    for _ in range(ROUNDS):
        code, late = seller.shop.qr_code(expiry_minutes=1), clock.now() + timedelta(minutes=5)
        import_file(bot_file(credit_line(code, late + timedelta(days=1))))
        line, callback = (
            BankTransaction.objects.get(resolution_state="", source="statement"),
            seller.report(code, paid_at=late),
        )
        before = suspense()
        assert done(run_concurrently(deciding("merge", line), deciding("merge", callback))) == 1
        assert suspense() == before - callback.amount
        BankTransaction.objects.get(pk__in=[line.id, callback.id], resolution_state="merged")
        (left,) = [each for each in (line, callback) if state_of(each)[1] == ""]
        if not left.is_confirmed:
            decide("confirm", left, actor="staff:somsri")
        decide("record_manual_return", left, bank_reference="counter 7")
