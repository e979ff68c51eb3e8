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


def deciding(action: str, movement: Model | str, **more: Any) -> Callable[[], Any]:
    """Return a function that does the action and returns its result or refusal."""

    def click() -> Any:
        try:
            return decide(action, movement, **more)
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
    movement, other = seller.late(), seller.shop.qr_code()["payment_id"]
    given = {"payment_id": other} if action == "attach" else more
    results = run_concurrently(*[deciding(action, movement, **given)] * 8)
    assert (done(results), sum(isinstance(result, AlreadyResolved) for result in results)) == (1, 7)
    assert Resolution.objects.count() == 1


def test_concurrent_different_resolutions_count_once(seller: Seller) -> None:
    for _ in range(ROUNDS):
        movement, other = seller.late(), seller.shop.qr_code()["payment_id"]
        results = run_concurrently(
            deciding("accept", movement),
            deciding("attach", movement, payment_id=other),
            deciding("send_back", movement),
            deciding("record_manual_return", movement, bank_reference="b"),
        )
        assert (done(results), Resolution.objects.filter(subject_id=movement.id).count()) == (1, 1)


def test_concurrent_decisions_about_an_over_payment_count_once(seller: Seller, served_by: Serving) -> None:
    served_by()
    for _ in range(ROUNDS):
        movement = seller.mismatch(300_000)
        results = run_concurrently(
            *[deciding("return_excess", movement)] * 2,
            deciding("accept", movement),
            deciding("send_back", movement),
        )
        assert (done(results), Resolution.objects.filter(subject_id=movement.id).count()) == (1, 1)


def test_excess_and_its_reversal_at_once_take_the_money_once(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[DONE] * ROUNDS)
    for _ in range(ROUNDS):
        movement = seller.mismatch(300_000)
        decide("return_excess", movement)
        reversing = notifying(reversal_of(movement))
        run_concurrently(partial(order_completion.run_due_returns, now=clock.now), reversing, reversing)
        excess = Excess.objects.get(movement=movement)
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
        movement, other = seller.late(), seller.shop.qr_code()["payment_id"]
        more = {"payment_id": other} if action == "attach" else {}
        run_concurrently(deciding(action, movement, **more), notifying(reversal_of(movement)))
        reversal = BankTransaction.objects.get(
            kind="reversal", bank_transaction_id=movement.bank_transaction_id
        )
        assert state_of(reversal) == ("reversed", "")
        assert state_of(movement)[1] in (
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
        results = run_concurrently(
            *[deciding("attach", movement, payment_id=payment_id) for movement in held]
        )
        assert (done(results), sorted(state_of(movement)[1] for movement in held)) == (1, ["", "attached"])
        assert event_types_of(payment_id).count("payment.succeeded") == 1


def test_attach_during_a_callback_pays_the_payment_once(seller: Seller) -> None:
    for _ in range(ROUNDS):
        code, movement = seller.shop.qr_code(), seller.unmatched()
        attach = deciding("attach", movement, payment_id=code["payment_id"])
        results = run_concurrently(attach, notifying(seller.bank.notification(code)))
        outcomes = BankTransaction.objects.filter(payment_id=code["payment_id"]).values_list(
            "match_result", flat=True
        )
        assert sorted(outcomes) == (["duplicate", "unmatched"] if done(results[:1]) else ["applied"])
        assert event_types_of(code["payment_id"]).count("payment.succeeded") == 1


def test_attach_during_expiry_pays_the_payment(seller: Seller) -> None:
    for _ in range(ROUNDS):
        code, movement = seller.shop.qr_code(expiry_minutes=1), seller.unmatched()
        sweep = partial(expiry_sweep.expire_due, now=clock.now() + timedelta(minutes=2))
        run_concurrently(deciding("attach", movement, payment_id=code["payment_id"]), sweep)
        assert seller.shop.payment(code["payment_id"])["status"] == "succeeded"
        assert event_types_of(code["payment_id"]).count("payment.succeeded") == 1


def test_concurrent_credit_and_reversal_cancel_each_other(seller: Seller) -> None:
    for changes in [{}, {"reference1": "NOBODYKNOWSTHIS00000"}] * ROUNDS:
        notification = seller.bank.notification(seller.shop.qr_code(), **changes)
        run_concurrently(*[notifying(notification | {"type": kind}) for kind in ("credit", "reversal")] * 3)
        reversal = BankTransaction.objects.get(
            bank_transaction_id=notification["transaction_id"], kind="reversal"
        )
        assert reversal.match_result == "reversed"
        assert (suspense(), seller.funds()) == (0, {"available": 0, "reserved": 0})


@pytest.mark.parametrize("ends", [DONE, REFUSED])
def test_reversal_during_completion_of_a_return_is_applied_or_an_exception(
    seller: Seller, served_by: Serving, ends: TransferResult
) -> None:
    for _ in range(ROUNDS):
        served_by(sends=[UNDER_WAY], inquiries=[ends])
        movement = seller.unmatched()
        decide("send_back", movement)
        run_returns()
        run_concurrently(
            partial(order_completion.run_due_returns, now=clock.now), notifying(reversal_of(movement))
        )
        # A run skips an order that the notification has locked. The next run takes it.
        order_completion.run_due_returns(now=clock.now)
        reversal = BankTransaction.objects.get(
            kind="reversal", bank_transaction_id=movement.bank_transaction_id
        )
        found = state_of(reversal)[0], state_of(movement)[1], latest_return(movement).status
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
        movement = seller.unmatched()
        decide("send_back", movement)
        run_concurrently(
            partial(order_completion.run_due_returns, now=clock.now), notifying(reversal_of(movement))
        )
        made = latest_return(movement)
        assert (bool(bank.sent), made.status, state_of(movement)[1]) in [
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
