"""Merchants accept or return the exceptions of their payments through the API."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.test import Client

from audit_trail.models import AuditRecord
from banks import TransferResult
from core import clock, ids
from merchants import secret_keys, services as merchants
from payments.models import Payment
from reconciliation.exceptions.resolution_records import AlreadyResolved
from reconciliation.models import BankTransaction, Resolution, Return
from sandbox.models import SandboxCallback
from tests import tables
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop, new_client, open_shop
from tests.error_messages import check_error
from tests.reconciliation.builders import Seller, decide, run_returns, state_of, suspense
from tests.reconciliation.statements.statement_files import bot_file, credit_line, import_file, report_twice
from tests.transfers.builders import Bank
from transfers.models import Transfer

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
Serving = Callable[..., Bank]
DONE = TransferResult("succeeded", "b-1")
DECISIONS = ["accept", "return"]
# The state table: what each decision answers for an exception and what staff have done to it.
ACCEPTED, RETURNED = "accepted", "sending_back"
NOT_ACCEPTABLE, NOT_RETURNABLE = "exception_not_acceptable", "exception_not_returnable"


def outcome(answer: Any) -> str:
    """The status of the exception, or the code of the error."""
    body = answer.json()
    return str(body["status"] if answer.status_code == 200 else body["error"]["code"])


def message(answer: Any) -> str:
    assert answer.status_code == 400
    return str(answer.json()["error"]["message"])


# --- the scenarios of the sandbox bank -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario", "decision", "status", "received"),
    [
        ("over", "accept", "succeeded", 300_000),
        ("over", "return", "pending", None),
        ("under", "accept", "succeeded", 75_000),
        ("under", "return", "pending", None),
        ("late", "accept", "succeeded", None),
        ("late", "return", "pending", None),
        ("twice", "return", "succeeded", None),
    ],
)
def test_merchant_decides_about_each_scenario_of_the_sandbox_bank(
    seller: Seller, served_by: Serving, scenario: str, decision: str, status: str, received: int | None
) -> None:
    served_by(sends=[DONE])
    code = seller.shop.qr_code()
    body = {"qr_data": code["qr_data"], "scenario": scenario}
    assert seller.shop.post("/sandbox/v1/payments", body).status_code == 200
    for callback in SandboxCallback.objects.order_by("due_at"):
        assert seller.bank.post(callback.body.encode()).status_code == 200
    path = f"/v1/payments/{code['payment_id']}"
    (found,) = seller.shop.get(f"{path}/exceptions").json()["exceptions"]
    assert seller.shop.post(f"{path}/exceptions/{found['exception_id']}/{decision}").status_code == 200
    run_returns()
    payment = seller.shop.get(path).json()
    assert (payment["status"], payment["amount_received"], suspense()) == (status, received, 0)


# --- accept ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("satang", [1, 149_999, 150_001])
def test_accepted_money_of_another_amount_pays_the_payment(seller: Seller, satang: int) -> None:
    bank_transaction = seller.mismatch(satang)
    decided = seller.decide("accept", bank_transaction, note="Paid the rest in cash.")
    payment = seller.shop.payment(str(bank_transaction.payment_id))
    assert payment["exceptions"] == [decided]
    assert (decided["status"], payment["status"], payment["amount_received"]) == (
        ACCEPTED,
        "succeeded",
        satang,
    )
    assert (suspense(), seller.balance()) == (0, (satang, 0))
    resolution = Resolution.objects.get()
    assert (resolution.type, resolution.note) == ("accepted", "Paid the rest in cash.")
    key = f"key:{secret_keys.public_id(seller.shop.secret_key)}"
    record = AuditRecord.objects.get(act="exception_resolved")
    assert (resolution.actor, record.actor, record.object_id) == (key, key, bank_transaction.id)


def test_expired_payment_succeeds_with_accepted_late_money(seller: Seller) -> None:
    bank_transaction = seller.late()
    assert seller.decide("accept", bank_transaction)["status"] == ACCEPTED
    payment = seller.shop.payment(str(bank_transaction.payment_id))
    assert (payment["status"], payment["amount_received"]) == ("succeeded", None)
    timeline = seller.shop.get(f"/v1/payments/{bank_transaction.payment_id}/timeline").json()["timeline"]
    (entry,) = [entry for entry in timeline if entry["type"] == "merchant.accepted"]
    assert entry["actor"].startswith("key:")


# --- return ------------------------------------------------------------------------------------------------


def test_returned_money_goes_to_the_account_it_came_from(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[DONE])
    bank_transaction = seller.duplicate()
    assert seller.decide("return", bank_transaction)["status"] == RETURNED
    run_returns()
    order = Transfer.objects.get()
    assert (order.bank_code, order.account) == (
        bank_transaction.payer_bank_code,
        bank_transaction.payer_account,
    )
    (shown,) = seller.shop.payment(str(bank_transaction.payment_id))["exceptions"]
    assert (shown["status"], suspense(), seller.balance()) == ("sent_back", 0, (150_000, 0))
    assert Resolution.objects.get().note == "Decided by the merchant."


def test_return_to_an_unknown_account_stays_with_staff(seller: Seller) -> None:
    bank_transaction = seller.mismatch(payer_bank_code="999")
    assert message(seller.ask_to("return", bank_transaction)).endswith("and the operator must decide.")
    assert (state_of(bank_transaction), Return.objects.count()) == (("amount_mismatch", ""), 0)
    decide("record_manual_return", bank_transaction, bank_reference="counter 7")


def test_unconfirmed_money_cannot_be_returned_before_a_second_source_confirms_it(
    seller: Seller, served_by: Serving
) -> None:
    served_by(sends=[DONE])
    code = seller.shop.qr_code()
    paid_at = clock.now().replace(microsecond=0) - timedelta(minutes=1)
    import_file(bot_file(credit_line(code, paid_at, amount=99)))
    bank_transaction = BankTransaction.objects.get()
    for part in ("all", "excess"):
        answer = seller.ask_to("return", bank_transaction, part=part)
        assert "a second source must confirm it first" in message(answer)
    assert seller.bank.notify(code, satang=99, paid_at=paid_at).status_code == 200
    assert seller.decide("return", bank_transaction)["status"] == RETURNED


def test_money_that_is_being_reversed_cannot_be_returned(seller: Seller) -> None:
    bank_transaction = seller.mismatch()
    seller.reverse(bank_transaction, 100)
    text = "This exception cannot be returned: the bank is taking this money back."
    assert message(seller.ask_to("return", bank_transaction)) == text


def test_money_that_was_probably_reported_twice_stays_with_staff(seller: Seller) -> None:
    held = report_twice(seller)
    for decision in DECISIONS:
        assert "probably reported the same money twice" in message(seller.ask_to(decision, held))


# --- return of the excess ----------------------------------------------------------------------------------


def test_returned_excess_leaves_the_payment_with_its_amount(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[DONE])
    bank_transaction = seller.mismatch(170_000)
    assert seller.decide("return", bank_transaction, part="excess")["status"] == "excess_sending_back"
    run_returns()
    order = Transfer.objects.get()
    actual = (order.bank_code, order.account, order.amount)
    assert actual == (bank_transaction.payer_bank_code, bank_transaction.payer_account, 20_000)
    payment = seller.shop.payment(str(bank_transaction.payment_id))
    assert (payment["status"], payment["amount_received"]) == ("succeeded", None)
    assert [each["status"] for each in payment["exceptions"]] == ["excess_sent_back"]
    assert (suspense(), seller.balance()) == (0, (150_000, 0))
    key = f"key:{secret_keys.public_id(seller.shop.secret_key)}"
    assert (Resolution.objects.get().type, Resolution.objects.get().actor) == ("excess_sent_back", key)


@pytest.mark.parametrize("part", ["all", "excess"])
def test_excess_whose_return_failed_can_be_returned_again(
    seller: Seller, served_by: Serving, part: str
) -> None:
    served_by(sends=[TransferResult("failed", "b-1", "closed"), DONE])
    bank_transaction = seller.mismatch(170_000)
    seller.decide("return", bank_transaction, part="excess")
    run_returns()
    (shown,) = seller.shop.payment(str(bank_transaction.payment_id))["exceptions"]
    assert shown["status"] == "excess_open"
    assert seller.decide("return", bank_transaction, part=part)["status"] == "excess_sending_back"
    run_returns()
    assert (suspense(), seller.balance()) == (0, (150_000, 0))


@pytest.mark.parametrize("make", [Seller.mismatch, Seller.late])
def test_money_that_is_not_too_much_has_no_excess(
    seller: Seller, make: Callable[[Seller], BankTransaction]
) -> None:
    bank_transaction = make(seller)
    text = "it is not more than the amount of its payment, so it has no excess."
    assert message(seller.ask_to("return", bank_transaction, part="excess")).endswith(text)
    seller.reverse(bank_transaction, 100)
    assert message(seller.ask_to("return", bank_transaction, part="excess")).endswith(text)
    assert (state_of(bank_transaction)[1], Return.objects.count()) == ("", 0)


@pytest.mark.parametrize("paid_by", ["report", "accept"])
def test_excess_of_a_payment_that_is_paid_already_is_refused(seller: Seller, paid_by: str) -> None:
    bank_transaction = seller.mismatch(170_000)
    if paid_by == "accept":
        seller.decide("accept", bank_transaction)
        text = "it is accepted."
    else:
        with_payment_paid(seller, bank_transaction)
        text = "its payment is succeeded."
    assert message(seller.ask_to("return", bank_transaction, part="excess")).endswith(text)
    assert Return.objects.count() == 0


def test_excess_that_cannot_be_sent_to_the_payer_changes_nothing(seller: Seller) -> None:
    bank_transaction = seller.mismatch(170_000, payer_bank_code="999")
    count = tables.count_rows()
    answer = seller.ask_to("return", bank_transaction, part="excess")
    assert message(answer).endswith("and the operator must decide.")
    assert tables.count_rows() == count
    assert seller.shop.payment(str(bank_transaction.payment_id))["status"] == "pending"


@pytest.mark.parametrize("part", ["", "rest", True, 1])
def test_unknown_part_is_refused(seller: Seller, part: Any) -> None:
    bank_transaction = seller.mismatch(170_000)
    assert outcome(seller.ask_to("return", bank_transaction, part=part)) == "invalid_part"
    assert state_of(bank_transaction)[1] == ""


# --- states and refusals -----------------------------------------------------------------------------------


def open_(seller: Seller, bank_transaction: BankTransaction) -> None:
    """Nobody has decided."""


def accepted(seller: Seller, bank_transaction: BankTransaction) -> None:
    seller.decide("accept", bank_transaction)


def returning(seller: Seller, bank_transaction: BankTransaction) -> None:
    seller.decide("return", bank_transaction)


def returned(seller: Seller, bank_transaction: BankTransaction) -> None:
    decide("record_manual_return", bank_transaction, bank_reference="counter 7")


def attached(seller: Seller, bank_transaction: BankTransaction) -> None:
    decide("attach", bank_transaction, payment_id=seller.shop.qr_code()["payment_id"])


def taken_back(seller: Seller, bank_transaction: BankTransaction) -> None:
    seller.reverse(bank_transaction)


def with_payment_paid(seller: Seller, bank_transaction: BankTransaction) -> None:
    code = {"qr_code_id": Payment.objects.get(pk=bank_transaction.payment_id).qr_code_id}
    seller.report(seller.shop.get(f"/v1/qr-codes/{code['qr_code_id']}").json())


@pytest.mark.parametrize(
    ("make", "before", "accept", "give_back"),
    [
        (Seller.mismatch, open_, ACCEPTED, RETURNED),
        (Seller.late, open_, ACCEPTED, RETURNED),
        (Seller.duplicate, open_, NOT_ACCEPTABLE, RETURNED),
        (Seller.mismatch, with_payment_paid, NOT_ACCEPTABLE, RETURNED),
        (Seller.mismatch, accepted, NOT_ACCEPTABLE, NOT_RETURNABLE),
        (Seller.mismatch, returning, NOT_ACCEPTABLE, NOT_RETURNABLE),
        (Seller.late, returned, NOT_ACCEPTABLE, NOT_RETURNABLE),
        (Seller.duplicate, attached, NOT_ACCEPTABLE, NOT_RETURNABLE),
        (Seller.duplicate, taken_back, NOT_ACCEPTABLE, NOT_RETURNABLE),
    ],
)
@pytest.mark.parametrize("decision", DECISIONS)
def test_decision_by_state_of_the_exception(
    seller: Seller,
    make: Callable[[Seller], BankTransaction],
    before: Callable[[Seller, BankTransaction], None],
    accept: str,
    give_back: str,
    decision: str,
) -> None:
    bank_transaction = make(seller)
    payment_id = bank_transaction.payment_id
    before(seller, bank_transaction)
    count = tables.count_rows()
    answer = seller.shop.post(f"/Thai/v1/payments/{payment_id}/exceptions/{bank_transaction.id}/{decision}")
    assert outcome(answer) == (accept if decision == "accept" else give_back)
    assert (answer.status_code == 200) == (tables.count_rows() != count)


def test_refusal_names_the_status_and_no_member_of_staff(seller: Seller) -> None:
    decide("accept", bank_transaction := seller.mismatch())
    refused = seller.ask_to("return", bank_transaction)
    check_error(refused.json(), "exception_not_returnable", why="it is accepted")
    refused = seller.ask_to("accept", seller.duplicate())
    check_error(refused.json(), "exception_not_acceptable", why="its payment is succeeded")


@pytest.mark.parametrize("decision", DECISIONS)
def test_exception_of_another_payment_or_of_none_is_not_found(seller: Seller, decision: str) -> None:
    own, other, unmatched = seller.mismatch(), seller.mismatch(), seller.unmatched()
    for exception_id in (other.id, unmatched.id, ids.new("btx_", clock.now()), "btx_x", "nonsense"):
        answer = seller.shop.post(f"/v1/payments/{own.payment_id}/exceptions/{exception_id}/{decision}")
        assert answer.status_code == 404
        check_error(answer.json(), "exception_not_found", id=exception_id)


@pytest.mark.parametrize("decision", DECISIONS)
def test_decision_needs_the_scope_for_exceptions(seller: Seller, decision: str) -> None:
    scopes = ["payments:read", "payments:write", "refunds:write", "withdrawals:write", "webhooks:write"]
    _, secret = merchants.issue_key(merchant=seller.shop.merchant, now=clock.now(), scopes=scopes)
    limited = Shop(seller.shop.merchant, secret, Client())
    bank_transaction = seller.mismatch()
    answer = Seller(limited, seller.bank).ask_to(decision, bank_transaction)
    assert (answer.status_code, outcome(answer)) == (403, "insufficient_scope")
    assert limited.get(f"/v1/payments/{bank_transaction.payment_id}/exceptions").json()["total"] == 1


@pytest.mark.parametrize(
    ("note", "code"), [("", "invalid_note"), ("x" * 256, "invalid_note"), (7, "invalid_note")]
)
def test_bad_note_is_refused(seller: Seller, note: Any, code: str) -> None:
    bank_transaction = seller.mismatch()
    assert outcome(seller.ask_to("accept", bank_transaction, note=note)) == code
    assert state_of(bank_transaction)[1] == ""


# --- repeats and races -------------------------------------------------------------------------------------


def test_repeat_with_the_same_key_gets_the_first_answer(seller: Seller) -> None:
    bank_transaction = seller.mismatch()
    path = f"/v1/payments/{bank_transaction.payment_id}/exceptions/{bank_transaction.id}"
    first, again = (seller.shop.post(f"{path}/accept", key="once") for _ in range(2))
    assert (first.status_code, again.content) == (200, first.content)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert outcome(seller.shop.post(f"{path}/return", key="once")) == "idempotency_key_reused"
    assert Resolution.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("by_staff", DECISIONS)
def test_staff_and_merchant_at_once_decide_once(decision: str, by_staff: str) -> None:
    seller = Seller(open_shop("Race"), SandboxBankClient(new_client()))
    service = {"accept": "accept", "return": "send_back"}[by_staff]
    for _ in range(8):
        bank_transaction = seller.mismatch()
        rival = Seller(Shop(seller.shop.merchant, seller.shop.secret_key, new_client()), seller.bank)

        def staff(bank_transaction: BankTransaction = bank_transaction) -> bool:
            try:
                decide(service, bank_transaction)
            except AlreadyResolved:
                return False
            return True

        def merchant(bank_transaction: BankTransaction = bank_transaction, rival: Seller = rival) -> bool:
            answer = rival.ask_to(decision, bank_transaction)
            assert answer.status_code == 200 or outcome(answer) in (NOT_ACCEPTABLE, NOT_RETURNABLE)
            return bool(answer.status_code == 200)

        assert sorted(run_concurrently(staff, partial(merchant))) == [False, True]
        assert Resolution.objects.filter(subject_id=bank_transaction.id).count() == 1
