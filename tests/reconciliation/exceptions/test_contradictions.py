"""An answer of a bank or acquirer that contradicts our record is one exception until staff resolve it."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from audit_trail.acts import ActRefused
from banks import ChargeResult, TransferResult
from core import clock
from payments import cards
from payments.models import Payment
from reconciliation.exceptions import explanations
from reconciliation.inquiries import services as inquiries
from reconciliation.matching import intake, order_completion
from reconciliation.models import (
    BankNotification,
    BankTransaction,
    ReconciliationException,
    ReportSource,
    Resolution,
)
from tests.conftest import Shop
from tests.reconciliation.builders import (
    EXCEPTIONS_URL,
    NOTE,
    Seller,
    decide,
    exception_url,
    get_page,
    parse,
)
from tests.refunds.builders import send_due_refunds
from tests.sqlstates import NOT_ALLOWED, sqlstate
from tests.staff_acts import act_form
from tests.transfers.builders import Bank
from tests.withdrawals import builders as withdrawals
from transfers import services as transfers
from transfers.models import TransferContradiction

Serving = Callable[..., Bank]
pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
CHARGED = ChargeResult("succeeded", "chrg_1", None, "visa", "4242")
SENT, NOT_SENT = TransferResult("succeeded", "b-1"), TransferResult("failed", "b-1")


@pytest.fixture
def failed_card(shop: Shop, settings: Any) -> Payment:
    """A card payment of 1,500.00 THB that failed here."""
    settings.SANDBOX_ACQUIRER_URL = "http://127.0.0.1:1"
    made = cards.draft(merchant=shop.merchant, token_id="tok", amount=150_000, now=clock.now())
    cards.store(made)
    settle(made.payment, ChargeResult("not_sent"))
    assert made.payment.status == "failed"
    return made.payment


def settle(payment: Payment, result: ChargeResult) -> None:
    with transaction.atomic():
        cards.complete(payment.id, result, now=clock.now())
    payment.refresh_from_db()


@pytest.fixture
def other_charge(shop: Shop, settings: Any) -> Payment:
    """A card payment of 1,500.00 THB; the acquirer reports a charge of 150.00 THB, twice."""
    settings.SANDBOX_ACQUIRER_URL = "http://127.0.0.1:1"
    made = cards.draft(merchant=shop.merchant, token_id="tok", amount=150_000, now=clock.now())
    cards.store(made)
    for _ in range(2):
        settle(made.payment, ChargeResult("succeeded", "chrg_1", amount=15_000, currency="THB"))
    assert made.payment.status == "pending"
    return made.payment


def run_action(client: Client, waiting: ReconciliationException, slug: str) -> str:
    answer = client.post(f"{EXCEPTIONS_URL}{waiting.pk}/do/{slug}/", act_form(reason=NOTE), follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def test_charged_card_of_a_failed_payment_is_listed_once_with_instructions(
    failed_card: Payment, malee: Client
) -> None:
    for _ in range(3):
        settle(failed_card, CHARGED)
    assert failed_card.status == "failed"
    waiting = ReconciliationException.objects.get()
    assert (waiting.reason, waiting.payment_id, waiting.amount) == ("contradiction", failed_card.id, 150_000)
    assert (waiting.merchant, waiting.bank) == (failed_card.merchant, "sandbox")
    for page in (
        get_page(malee, EXCEPTIONS_URL, q=failed_card.id),
        get_page(malee, exception_url(waiting.pk)),
    ):
        assert "failed here, and sandbox charged 1,500.00 THB" in page
        assert "Refund the charge at the acquirer, then dismiss this" in page
    assert "chrg_1" in get_page(malee, exception_url(waiting.pk))


def test_dismissed_contradiction_stays_dismissed_and_can_be_reopened(
    failed_card: Payment, malee: Client
) -> None:
    settle(failed_card, CHARGED)
    waiting = ReconciliationException.objects.get()
    assert "/do/returned" not in get_page(malee, exception_url(waiting.pk))
    run_action(malee, waiting, "dismiss")
    settle(failed_card, CHARGED)
    assert not ReconciliationException.objects.exists()
    assert "alee has already resolved this" in run_action(malee, waiting, "dismiss")
    run_action(malee, waiting, "reopen")
    assert ReconciliationException.objects.get().pk == waiting.pk


def test_contradiction_is_stored_in_the_commit_that_detects_it(failed_card: Payment) -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        cards.complete(failed_card.id, CHARGED, now=clock.now())
        raise RuntimeError
    assert not TransferContradiction.objects.exists()


def test_card_charged_with_wrong_amount_is_listed_once_until_staff_mark_it_failed(
    other_charge: Payment, malee: Client
) -> None:
    waiting = ReconciliationException.objects.get()
    page = get_page(malee, exception_url(waiting.pk))
    assert "asked for 1,500.00 THB, and sandbox charged 150.00 THB" in page
    assert "/do/failed/" in page and "/do/dismiss/" not in page
    with pytest.raises(ActRefused, match="still pending"):
        decide("dismiss", waiting.pk)
    run_action(malee, waiting, "failed")
    other_charge.refresh_from_db()
    assert (other_charge.status, other_charge.failure_code) == ("failed", "processing_error")
    assert not ReconciliationException.objects.exists()
    made = Resolution.objects.get(subject_id=waiting.pk)
    assert (made.type, made.actor, made.note) == ("booked_failed", "staff:malee", NOTE)
    with pytest.raises(ActRefused):
        decide("mark_failed", waiting.pk, actor="staff:somsak")
    with pytest.raises(ActRefused):
        decide("reopen", waiting.pk, actor="staff:somsak")


def test_card_charged_in_another_currency_shows_the_currency(other_charge: Payment) -> None:
    found = TransferContradiction.objects.get()
    found.answer_amount, found.answer_currency = 150_000, "USD"
    assert "charged 150000 of the smallest unit of USD" in explanations.of_contradiction(found)


def test_card_charge_with_correct_later_answer_succeeds_and_is_dismissed(
    other_charge: Payment, malee: Client
) -> None:
    settle(other_charge, ChargeResult("succeeded", "chrg_1", amount=150_000, currency="THB"))
    assert other_charge.status == "succeeded"
    waiting = ReconciliationException.objects.get()
    with pytest.raises(ActRefused, match="no longer pending"):
        decide("mark_failed", waiting.pk)
    run_action(malee, waiting, "dismiss")
    assert not ReconciliationException.objects.exists()


def test_failed_card_payment_cannot_be_marked_failed_again(failed_card: Payment) -> None:
    settle(failed_card, CHARGED)
    with pytest.raises(ActRefused, match="no longer pending"):
        decide("mark_failed", ReconciliationException.objects.get().pk)


def test_database_refuses_a_second_resolution_of_a_contradiction(other_charge: Payment) -> None:
    waiting = ReconciliationException.objects.get().pk
    decide("mark_failed", waiting)
    again = f"""INSERT INTO reconciliation_resolution (subject_id, type, actor, note, reopen_count,
    request_id, created_at)
        VALUES ('{waiting}', '{{}}', 'somsak', 'x', {{}}, '', now())"""
    assert sqlstate(again.format("dismissed", 0)) == "23505"
    assert sqlstate(again.format("booked_failed", 1)) == "23000"


def test_failed_withdrawal_that_the_bank_completed_is_an_exception(
    seller: Seller, served_by: Serving, malee: Client
) -> None:
    made = withdrawn(seller, served_by, NOT_SENT)
    for _ in range(2):
        transfers.complete(made, SENT, order_completion.HANDLERS["wd"], now=clock.now())
    waiting = ReconciliationException.objects.get()
    page = get_page(malee, exception_url(waiting.pk))
    assert f"Order {made} over 1,000.00 THB is failed here, and sandbox says succeeded" in page
    assert (
        "No action can correct this" in page
        and "Ask the bank to recall it" in page
        and "/do/returned" not in page
    )
    with pytest.raises(ActRefused):
        decide("mark_returned", waiting.pk)
    run_action(malee, waiting, "dismiss")
    assert not ReconciliationException.objects.exists()


def test_withdrawal_that_the_bank_never_sent_is_marked_returned(
    seller: Seller, served_by: Serving, malee: Client
) -> None:
    made = withdrawn(seller, served_by, SENT)
    assert seller.balance() == (50_000, 0)
    transfers.complete(made, NOT_SENT, order_completion.HANDLERS["wd"], now=clock.now())
    waiting = ReconciliationException.objects.get()
    assert "mark the order as returned" in get_page(malee, exception_url(waiting.pk))
    assert f"Withdrawal {made} fails, and" in get_page(malee, f"{EXCEPTIONS_URL}{waiting.pk}/do/returned/")
    run_action(malee, waiting, "returned")
    assert (seller.balance(), ReconciliationException.objects.exists()) == ((150_000, 0), False)
    assert (
        withdrawals.fetch_withdrawal(seller.shop, {"withdrawal_id": made})["failure_code"]
        == "returned_by_bank"
    )
    with pytest.raises(ActRefused):
        decide("mark_returned", waiting.pk, actor="staff:somsak")


def test_refund_that_the_bank_never_sent_is_an_exception_as_returned(
    seller: Seller, served_by: Serving, malee: Client
) -> None:
    served_by(sends=[SENT])
    made = seller.refund(seller.paid())["refund_id"]
    send_due_refunds()
    transfers.complete(made, NOT_SENT, order_completion.HANDLERS["ref"], now=clock.now())
    run_action(malee, ReconciliationException.objects.get(reason="contradiction"), "returned")
    assert [waiting.pk for waiting in ReconciliationException.objects.all()] == [made]
    decide("credit_returned_refund", made)
    assert seller.balance() == (150_000, 0)


def withdrawn(seller: Seller, serving: Serving, result: TransferResult) -> str:
    """A withdrawal of 1,000.00 of 1,500.00 THB with this result at the bank."""
    seller.paid()
    bank: Bank = serving(sends=[result])
    made = withdrawals.withdrawn(seller.shop)
    withdrawals.send_due_withdrawals()
    assert len(bank.sent) == 1
    return str(made["withdrawal_id"])


def test_inquiries_that_contradict_a_callback_are_one_exception(seller: Seller) -> None:
    notification = seller.bank.notification(seller.shop.qr_code(), satang=149_999)
    seller.bank.post(notification)
    answer = parse(notification | {"amount": "1500.01"})
    for _ in range(3):
        if inquiries._find_inquired("sandbox", answer) is None:
            intake.receive(
                bank="sandbox", body=b"{}", notification=answer, now=clock.now(), source=ReportSource.INQUIRY
            )
    assert BankNotification.objects.filter(result="conflict").count() == 1
    assert BankTransaction.objects.count() == 1


@pytest.mark.parametrize(
    "attack",
    [
        "UPDATE transfers_transfercontradiction SET answer = 'failed'",
        "DELETE FROM transfers_transfercontradiction",
        "TRUNCATE transfers_transfercontradiction",
    ],
)
def test_contradictions_are_append_only(failed_card: Payment, attack: str) -> None:
    settle(failed_card, CHARGED)
    assert sqlstate(attack) == NOT_ALLOWED
