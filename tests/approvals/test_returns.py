"""Money that fits no payment keeps to the limits, unless it goes back to the account that paid."""

from collections.abc import Callable

import pytest
from django.test import Client
from pytest_django import Settings

from approvals.models import Approval
from approvals.services import NotDecidable, OwnRequest
from banks import Word
from receipts.acts import AlreadyDone, Destination, NotPossible
from receipts.models import Receipt, Return
from tests.approvals.cast import approval_of, click, decide_approval, listed, page, waiting
from tests.conftest import BankCaller, Shop
from tests.receipts.cast import Till, carry_back, decide, now_of, postings_of, return_of, suspense
from tests.receipts.staff import LIST, page_of, read, staff
from tests.threads import at_once
from tests.transfers.cast import Bank
from transfers.models import Transfer

Serving = Callable[..., Bank]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]
DONE = Word("succeeded", "b-1")
ELSEWHERE = Destination("004", "4051234567", "Somying")
SOMSAK = "staff:somsak"


@pytest.fixture(autouse=True)
def limits(settings: Settings) -> None:
    settings.APPROVAL_ITEM_LIMIT, settings.APPROVAL_DAILY_LIMIT = 100_000, 250_000


@pytest.fixture
def till(shop: Shop, bank: BankCaller) -> Till:
    return Till(shop, bank)


def elsewhere(till: Till) -> tuple[Receipt, Return]:
    receipt = till.unmatched()
    made: Return = decide("send_back", receipt, destination=ELSEWHERE)
    return receipt, made


def test_return_to_an_account_that_staff_entered_waits_above_the_limit(
    till: Till, served_by: Serving, malee: Client
) -> None:
    bank = served_by(sends=[DONE])
    receipt, made = elsewhere(till)
    carry_back(2)
    assert (bank.sent, now_of(receipt), suspense()) == ([], ("unmatched", "sending_back"), 150_000)
    assert waiting() == [made.id]
    approval = approval_of(made.id)
    assert (approval.requested_by, approval.merchant) == ("staff:malee", till.shop.merchant)
    for part in ("1,500.00 THB", "...4567 at 004", "The customer called."):
        assert part in listed(malee) + page(malee, made.id), part


@pytest.mark.parametrize("entered", [None, Destination("014", "1234567890", "Somchai Jaidee")])
def test_return_to_the_account_that_paid_needs_no_approval(
    till: Till, served_by: Serving, entered: Destination | None
) -> None:
    bank = served_by(sends=[DONE])
    receipt = till.unmatched()
    made = decide("send_back", receipt, destination=entered)
    carry_back()
    assert (bank.sent, now_of(receipt)) == ([made.id], ("unmatched", "sent_back"))
    assert not Approval.objects.exists()


def test_staff_member_who_entered_the_account_cannot_approve_the_return(till: Till, malee: Client) -> None:
    _, made = elsewhere(till)
    assert "You asked for it yourself" in page(malee, made.id)
    assert "Nothing changed" in click(malee, "approve", made.id)
    with pytest.raises(OwnRequest):
        decide_approval(made.id, "approve", by="staff:malee")
    assert waiting() == [made.id]


def test_approved_return_is_sent_once(till: Till, served_by: Serving) -> None:
    bank = served_by(sends=[DONE])
    receipt, made = elsewhere(till)
    decide_approval(made.id, "approve", by=SOMSAK)
    carry_back(2)
    assert (bank.sent, now_of(receipt), suspense()) == ([made.id], ("unmatched", "sent_back"), 0)


def test_rejected_return_leaves_the_money_for_another_decision(till: Till, served_by: Serving) -> None:
    bank = served_by(sends=[DONE])
    receipt, made = elsewhere(till)
    decide_approval(made.id, "reject", by=SOMSAK)
    carry_back()
    made.refresh_from_db()
    assert (bank.sent, now_of(receipt), made.status) == ([], ("unmatched", ""), "canceled")
    assert Transfer.objects.get().state == "canceled"
    decide("send_back", receipt)
    carry_back()
    assert (now_of(receipt), suspense()) == (("unmatched", "sent_back"), 0)


def test_reversal_by_the_bank_cancels_a_return_that_waits(till: Till, served_by: Serving) -> None:
    bank = served_by(sends=[DONE])
    receipt, made = elsewhere(till)
    till.takes_back(receipt)
    assert now_of(receipt) == ("unmatched", "taken_back")
    assert approval_of(made.id).status == "canceled"
    with pytest.raises(NotDecidable):
        decide_approval(made.id, "approve", by=SOMSAK)
    carry_back()
    assert (bank.sent, suspense()) == ([], 0)


def test_return_is_not_approved_while_the_bank_takes_a_part_back_itself(
    till: Till, served_by: Serving
) -> None:
    bank = served_by(sends=[DONE])
    receipt, made = elsewhere(till)
    reversal = till.takes_back(receipt, 50_000)
    with pytest.raises(NotDecidable, match="takes money of this back itself"):
        decide_approval(made.id, "approve", by=SOMSAK)
    carry_back()
    assert (bank.sent, waiting(), suspense()) == ([], [made.id], 150_000)
    decide("dismiss", reversal)
    decide_approval(made.id, "approve", by=SOMSAK)
    carry_back()
    assert (bank.sent, now_of(receipt)) == ([made.id], ("unmatched", "sent_back"))


def test_approved_return_is_held_while_the_bank_takes_a_part_back_itself(
    till: Till, served_by: Serving
) -> None:
    bank = served_by(sends=[DONE])
    receipt, made = elsewhere(till)
    decide_approval(made.id, "approve", by=SOMSAK)
    reversal = till.takes_back(receipt, 50_000)
    carry_back(2)
    assert (bank.sent, suspense()) == ([], 150_000)
    decide("dismiss", reversal)
    carry_back()
    assert (bank.sent, now_of(receipt)) == ([made.id], ("unmatched", "sent_back"))


def test_return_by_hand_above_the_limit_is_noted_when_it_is_approved(till: Till) -> None:
    receipt = till.unmatched()
    made = decide("send_back_by_hand", receipt, bank_reference="counter 7")
    assert (made.status, now_of(receipt), suspense()) == ("pending", ("unmatched", "sending_back"), 150_000)
    with pytest.raises(AlreadyDone):
        decide("send_back", receipt)
    decide_approval(made.id, "approve", by=SOMSAK)
    made.refresh_from_db()
    assert (made.status, made.bank_reference) == ("completed", "counter 7")
    assert (now_of(receipt), suspense()) == (("unmatched", "sent_back"), 0)
    assert postings_of(made.id) == [("sent_back", 150_000)]


def test_rejected_return_by_hand_waits_for_another_decision(till: Till) -> None:
    receipt = till.unmatched()
    made = decide("send_back_by_hand", receipt, bank_reference="counter 7")
    decide_approval(made.id, "reject", by=SOMSAK)
    assert (now_of(receipt), suspense(), return_of(receipt).status) == (
        ("unmatched", ""), 150_000, "canceled",
    )  # fmt: skip


def test_reversal_while_a_return_by_hand_waits_is_left_to_staff(till: Till) -> None:
    receipt = till.unmatched()
    made = decide("send_back_by_hand", receipt, bank_reference="counter 7")
    reversal = till.takes_back(receipt)
    assert (now_of(reversal), waiting()) == (("unmatched", ""), [made.id])
    decide_approval(made.id, "reject", by=SOMSAK)
    assert (now_of(receipt), now_of(reversal)) == (("unmatched", "taken_back"), ("reversed", ""))


def test_returns_of_nobodys_money_have_a_daily_limit_of_their_own(till: Till, settings: Settings) -> None:
    settings.APPROVAL_ITEM_LIMIT = 0
    for _ in range(2):
        decide("send_back", till.unmatched(biller_id="000000000000000"), destination=ELSEWHERE)
    assert Approval.objects.filter(merchant=None, status="within_limits").count() == 1
    assert Approval.objects.filter(merchant=None, status="waiting").count() == 1
    decide("send_back", till.unmatched(), destination=ELSEWHERE)
    assert Approval.objects.filter(merchant=till.shop.merchant, status="within_limits").count() == 1


def too_much_taken(till: Till) -> Receipt:
    """A reversal that nothing here explains."""
    return till.takes_back(till.sold(), 150_001)


def test_write_off_above_the_limit_is_booked_when_it_is_approved(till: Till, malee: Client) -> None:
    reversal = too_much_taken(till)
    decide("lose", reversal)
    assert (now_of(reversal), postings_of(reversal.id), waiting()) == (("unmatched", ""), [], [reversal.id])
    assert "Write-off of" in page(malee, reversal.id)
    with pytest.raises(NotPossible):
        decide("lose", reversal)
    with pytest.raises(OwnRequest):
        decide_approval(reversal.id, "approve", by="staff:malee")
    decide_approval(reversal.id, "approve", by=SOMSAK)
    assert (now_of(reversal), postings_of(reversal.id)) == (("unmatched", "lost"), [("lost", 150_001)])


def test_rejected_write_off_books_nothing_and_may_be_asked_for_again(till: Till) -> None:
    reversal = too_much_taken(till)
    for _ in range(2):
        decide("lose", reversal)
        decide_approval(reversal.id, "reject", by=SOMSAK)
        assert (now_of(reversal), postings_of(reversal.id)) == (("unmatched", ""), [])
    decide("dismiss", reversal)
    assert now_of(reversal) == ("unmatched", "dismissed")


def test_dismissal_cancels_a_write_off_that_waits(till: Till) -> None:
    reversal = too_much_taken(till)
    decide("lose", reversal)
    decide("dismiss", reversal)
    assert approval_of(reversal.id).status == "canceled"
    with pytest.raises(NotDecidable):
        decide_approval(reversal.id, "approve", by=SOMSAK)
    assert (now_of(reversal), postings_of(reversal.id)) == (("unmatched", "dismissed"), [])


def test_write_off_that_was_opened_again_is_judged_again(till: Till) -> None:
    reversal = too_much_taken(till)
    for _ in range(2):
        decide("lose", reversal)
        decide_approval(reversal.id, "approve", by=SOMSAK)
        assert now_of(reversal) == ("unmatched", "lost")
        decide("reopen", reversal)
    assert Approval.objects.filter(kind="write_off", status="approved").count() == 2


def test_page_of_the_exception_says_that_a_second_person_must_approve(till: Till) -> None:
    reversal = too_much_taken(till)
    person = staff("somsri", "resolve_receipt", "view_receipt")
    url = f"{LIST}{reversal.id}/act/lose/"
    answer = person.post(url, {"why": "The bank insists.", "sure": "yes"}, follow=True)
    assert "a second person must approve it" in answer.content.decode()
    text = read(person, page_of(reversal.id))
    assert "waits for a second person" in text
    assert "/act/lose/" not in text
    assert approval_of(reversal.id).requested_by == "staff:somsri"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["return", "by_hand", "write_off"])
def test_approve_and_reject_at_once_decide_once(till: Till, served_by: Serving, kind: str) -> None:
    bank = served_by(sends=[DONE])
    if kind == "write_off":
        receipt = too_much_taken(till)
        decide("lose", receipt)
        subject_id = receipt.id
    elif kind == "return":
        receipt, made = elsewhere(till)
        subject_id = made.id
    else:
        receipt = till.unmatched()
        subject_id = decide("send_back_by_hand", receipt, bank_reference="counter 7").id

    def act(how: str, by: str) -> bool:
        try:
            decide_approval(subject_id, how, by=by)
        except NotDecidable:
            return False
        return True

    approvals = [lambda: act("approve", SOMSAK)] * 4
    assert sum(at_once(*approvals, *[lambda: act("reject", "staff:anong")] * 4)) == 1
    carry_back(2)
    is_approved = approval_of(subject_id).status == "approved"
    ends = {"write_off": "lost", "return": "sent_back", "by_hand": "sent_back"}
    assert now_of(receipt)[1] == (ends[kind] if is_approved else "")
    assert len(bank.sent) == (1 if is_approved and kind == "return" else 0)
