"""Returns and write-offs need approval above the limits, except returns to the payer's account."""

from collections.abc import Callable

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from pytest_django import Settings

from approvals.models import Approval
from approvals.services import NotDecidable
from audit_trail.acts import ActRefused
from banks import TransferResult
from reconciliation.exceptions.resolution_records import AlreadyResolved
from reconciliation.models import BankTransaction, Return
from refunds.destinations import Destination
from tests.approvals.builders import approval_of, click, decide_approval, listed, page, try_to_decide, waiting
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import (
    EXCEPTIONS_URL,
    RESOLVES,
    Seller,
    decide,
    exception_url,
    get_page,
    latest_return,
    postings_of,
    run_returns,
    staff_client,
    state_of,
    suspense,
)
from tests.staff_acts import act_form
from tests.transfers.builders import Bank
from transfers.models import Transfer

Serving = Callable[..., Bank]
pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
DONE = TransferResult("succeeded", "b-1")
ELSEWHERE = Destination("004", "4051234567", "Somying")
SOMSAK = "staff:somsak"


@pytest.fixture(autouse=True)
def limits(settings: Settings) -> None:
    settings.APPROVAL_ITEM_LIMIT, settings.APPROVAL_DAILY_LIMIT = 100_000, 250_000


@pytest.fixture
def seller(shop: Shop, bank: SandboxBankClient) -> Seller:
    return Seller(shop, bank)


def return_to_entered_account(seller: Seller) -> tuple[BankTransaction, Return]:
    bank_transaction = seller.unmatched()
    made: Return = decide("send_back", bank_transaction, destination=ELSEWHERE)
    return bank_transaction, made


def test_return_to_an_account_that_staff_entered_waits_above_the_limit(
    seller: Seller, served_by: Serving, malee: Client
) -> None:
    bank = served_by(sends=[DONE])
    bank_transaction, made = return_to_entered_account(seller)
    run_returns(2)
    assert (bank.sent, state_of(bank_transaction), suspense()) == ([], ("unmatched", "sending_back"), 150_000)
    assert waiting() == [made.id]
    approval = approval_of(made.id)
    assert (approval.requested_by, approval.merchant) == ("staff:malee", seller.shop.merchant)
    for part in ("1,500.00 THB", "...4567 at 004", "The customer called."):
        assert part in listed(malee) + page(malee, made.id), part


@pytest.mark.parametrize("entered", [None, Destination("014", "1234567890", "Somchai Jaidee")])
def test_return_to_the_account_that_paid_needs_no_approval(
    seller: Seller, served_by: Serving, entered: Destination | None
) -> None:
    bank = served_by(sends=[DONE])
    bank_transaction = seller.unmatched()
    made = decide("send_back", bank_transaction, destination=entered)
    run_returns()
    assert (bank.sent, state_of(bank_transaction)) == ([made.id], ("unmatched", "sent_back"))
    assert not Approval.objects.exists()


def test_staff_who_entered_the_return_account_cannot_approve_the_return(
    seller: Seller, malee: Client
) -> None:
    _, made = return_to_entered_account(seller)
    assert "You requested this. Another person must decide" in page(malee, made.id)
    assert "Nothing changed" in click(malee, "approve", made.id)
    with pytest.raises(NotDecidable, match="Another person must decide"):
        decide_approval(made.id, "approve", actor="staff:malee")
    assert waiting() == [made.id]


def test_approved_return_is_sent_once(seller: Seller, served_by: Serving) -> None:
    bank = served_by(sends=[DONE])
    bank_transaction, made = return_to_entered_account(seller)
    decide_approval(made.id, "approve", actor=SOMSAK)
    run_returns(2)
    assert (bank.sent, state_of(bank_transaction), suspense()) == ([made.id], ("unmatched", "sent_back"), 0)


def test_rejected_return_leaves_the_money_for_another_decision(seller: Seller, served_by: Serving) -> None:
    bank = served_by(sends=[DONE])
    bank_transaction, made = return_to_entered_account(seller)
    decide_approval(made.id, "reject", actor=SOMSAK)
    run_returns()
    made.refresh_from_db()
    assert (bank.sent, state_of(bank_transaction), made.status) == ([], ("unmatched", ""), "canceled")
    assert Transfer.objects.get().state == "canceled"
    decide("send_back", bank_transaction)
    run_returns()
    assert (state_of(bank_transaction), suspense()) == (("unmatched", "sent_back"), 0)


def test_reversal_by_the_bank_cancels_a_return_that_waits(seller: Seller, served_by: Serving) -> None:
    bank = served_by(sends=[DONE])
    bank_transaction, made = return_to_entered_account(seller)
    seller.reverse(bank_transaction)
    assert state_of(bank_transaction) == ("unmatched", "taken_back")
    assert approval_of(made.id).status == "canceled"
    with pytest.raises(NotDecidable):
        decide_approval(made.id, "approve", actor=SOMSAK)
    run_returns()
    assert (bank.sent, suspense()) == ([], 0)


def test_return_is_not_approved_during_a_partial_reversal(seller: Seller, served_by: Serving) -> None:
    bank = served_by(sends=[DONE])
    bank_transaction, made = return_to_entered_account(seller)
    reversal = seller.reverse(bank_transaction, 50_000)
    with pytest.raises(
        NotDecidable,
        match="is reversing money of this transaction: ask the bank how much is left, or reject it",
    ):
        decide_approval(made.id, "approve", actor=SOMSAK)
    run_returns()
    assert (bank.sent, waiting(), suspense()) == ([], [made.id], 150_000)
    decide("dismiss", reversal)
    decide_approval(made.id, "approve", actor=SOMSAK)
    run_returns()
    assert (bank.sent, state_of(bank_transaction)) == ([made.id], ("unmatched", "sent_back"))


def test_approved_return_is_held_during_a_partial_reversal(seller: Seller, served_by: Serving) -> None:
    bank = served_by(sends=[DONE])
    bank_transaction, made = return_to_entered_account(seller)
    decide_approval(made.id, "approve", actor=SOMSAK)
    reversal = seller.reverse(bank_transaction, 50_000)
    run_returns(2)
    assert (bank.sent, suspense()) == ([], 150_000)
    decide("dismiss", reversal)
    run_returns()
    assert (bank.sent, state_of(bank_transaction)) == ([made.id], ("unmatched", "sent_back"))


def test_manual_return_above_the_limit_is_recorded_after_approval(seller: Seller) -> None:
    bank_transaction = seller.unmatched()
    made = decide("record_manual_return", bank_transaction, bank_reference="counter 7")
    assert (made.status, state_of(bank_transaction), suspense()) == (
        "pending",
        ("unmatched", "sending_back"),
        150_000,
    )
    with pytest.raises(AlreadyResolved):
        decide("send_back", bank_transaction)
    decide_approval(made.id, "approve", actor=SOMSAK)
    made.refresh_from_db()
    assert (made.status, made.bank_reference) == ("completed", "counter 7")
    assert (state_of(bank_transaction), suspense()) == (("unmatched", "sent_back"), 0)
    assert postings_of(made.id) == [("sent_back", 150_000)]


def test_rejected_manual_return_waits_for_another_decision(seller: Seller) -> None:
    bank_transaction = seller.unmatched()
    made = decide("record_manual_return", bank_transaction, bank_reference="counter 7")
    decide_approval(made.id, "reject", actor=SOMSAK)
    assert (state_of(bank_transaction), suspense(), latest_return(bank_transaction).status) == (
        ("unmatched", ""), 150_000, "canceled",
    )  # fmt: skip


def test_reversal_during_a_waiting_manual_return_is_left_to_staff(seller: Seller) -> None:
    bank_transaction = seller.unmatched()
    made = decide("record_manual_return", bank_transaction, bank_reference="counter 7")
    reversal = seller.reverse(bank_transaction)
    assert (state_of(reversal), waiting()) == (("unmatched", ""), [made.id])
    decide_approval(made.id, "reject", actor=SOMSAK)
    assert (state_of(bank_transaction), state_of(reversal)) == (("unmatched", "taken_back"), ("reversed", ""))


def test_returns_without_merchant_have_a_separate_daily_limit(seller: Seller, settings: Settings) -> None:
    settings.APPROVAL_ITEM_LIMIT = 0
    for _ in range(2):
        decide("send_back", seller.unmatched(biller_id="000000000000000"), destination=ELSEWHERE)
    assert Approval.objects.filter(merchant=None, status="within_limits").count() == 1
    assert Approval.objects.filter(merchant=None, status="waiting").count() == 1
    decide("send_back", seller.unmatched(), destination=ELSEWHERE)
    assert Approval.objects.filter(merchant=seller.shop.merchant, status="within_limits").count() == 1


def too_much_taken(seller: Seller) -> BankTransaction:
    """Make a reversal that matches no credit."""
    return seller.reverse(seller.sale(), 150_001)


def test_write_off_above_the_limit_is_booked_after_approval(seller: Seller, malee: Client) -> None:
    reversal = too_much_taken(seller)
    decide("write_off", reversal)
    assert (state_of(reversal), postings_of(reversal.id), waiting()) == (("unmatched", ""), [], [reversal.id])
    assert "Write-off of" in page(malee, reversal.id)
    with pytest.raises(ActRefused):
        decide("write_off", reversal)
    with pytest.raises(NotDecidable, match="Another person must decide"):
        decide_approval(reversal.id, "approve", actor="staff:malee")
    decide_approval(reversal.id, "approve", actor=SOMSAK)
    assert (state_of(reversal), postings_of(reversal.id)) == (
        ("unmatched", "written_off"),
        [("written_off", 150_001)],
    )


def test_rejected_write_off_books_nothing_and_may_be_repeated(seller: Seller) -> None:
    reversal = too_much_taken(seller)
    for _ in range(2):
        decide("write_off", reversal)
        decide_approval(reversal.id, "reject", actor=SOMSAK)
        assert (state_of(reversal), postings_of(reversal.id)) == (("unmatched", ""), [])
    decide("dismiss", reversal)
    assert state_of(reversal) == ("unmatched", "dismissed")


def test_dismissal_cancels_a_waiting_write_off(seller: Seller) -> None:
    reversal = too_much_taken(seller)
    decide("write_off", reversal)
    decide("dismiss", reversal)
    assert approval_of(reversal.id).status == "canceled"
    with pytest.raises(NotDecidable):
        decide_approval(reversal.id, "approve", actor=SOMSAK)
    assert (state_of(reversal), postings_of(reversal.id)) == (("unmatched", "dismissed"), [])


def test_credit_of_a_reversal_cancels_its_waiting_write_off(seller: Seller) -> None:
    notification = seller.bank.notification(seller.shop.qr_code())
    seller.bank.post(notification | {"type": "reversal"})
    reversal = BankTransaction.objects.get()
    decide("write_off", reversal)
    assert waiting() == [reversal.id]
    seller.bank.post(notification)
    assert approval_of(reversal.id).status == "canceled"
    assert state_of(reversal) == ("reversed", "")
    assert "written_off" not in dict(postings_of(reversal.id))


def test_reopened_write_off_needs_another_approval(seller: Seller) -> None:
    reversal = too_much_taken(seller)
    for _ in range(2):
        decide("write_off", reversal)
        decide_approval(reversal.id, "approve", actor=SOMSAK)
        assert state_of(reversal) == ("unmatched", "written_off")
        decide("reopen", reversal)
    assert Approval.objects.filter(kind="write_off", status="approved").count() == 2


def test_exception_page_shows_that_a_second_person_must_approve(seller: Seller) -> None:
    reversal = too_much_taken(seller)
    person = staff_client("somsri", *RESOLVES)
    url = f"{EXCEPTIONS_URL}{quote(reversal.id)}/do/write-off/"
    answer = person.post(url, act_form(reason="The bank insists."), follow=True)
    assert "a second person must approve it" in answer.content.decode()
    text = get_page(person, exception_url(reversal.id))
    assert "waits for approval by a second person" in text
    assert "/do/write-off/" not in text
    assert approval_of(reversal.id).requested_by == "staff:somsri"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["return", "by_hand", "write_off"])
def test_concurrent_approval_and_rejection_have_one_outcome(
    seller: Seller, served_by: Serving, kind: str
) -> None:
    bank = served_by(sends=[DONE])
    if kind == "write_off":
        bank_transaction = too_much_taken(seller)
        decide("write_off", bank_transaction)
        subject_id = bank_transaction.id
    elif kind == "return":
        bank_transaction, made = return_to_entered_account(seller)
        subject_id = made.id
    else:
        bank_transaction = seller.unmatched()
        subject_id = decide("record_manual_return", bank_transaction, bank_reference="counter 7").id

    approvals = [lambda: try_to_decide(subject_id, "approve", SOMSAK)] * 4
    assert (
        sum(run_concurrently(*approvals, *[lambda: try_to_decide(subject_id, "reject", "staff:anong")] * 4))
        == 1
    )
    run_returns(2)
    is_approved = approval_of(subject_id).status == "approved"
    ends = {"write_off": "written_off", "return": "sent_back", "by_hand": "sent_back"}
    assert state_of(bank_transaction)[1] == (ends[kind] if is_approved else "")
    assert len(bank.sent) == (1 if is_approved and kind == "return" else 0)
