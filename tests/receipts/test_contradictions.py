"""An answer of a bank or an acquirer that contradicts our record is one exception until staff end it."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from banks import Said, Word
from core import clock
from payments import cards
from payments.models import Payment
from receipts import acts, charges, inbox, inquiries, orders, sentences
from receipts.acts import NotPossible
from receipts.models import Act, Notice, Receipt, Source, Waiting
from tests.conftest import Shop
from tests.receipts.cast import WHY, Till, parsed
from tests.receipts.staff import LIST, page_of, read, staff
from tests.refunds.cast import carry_out
from tests.refunds.test_guard import NOT_ALLOWED, sqlstate
from tests.transfers.cast import Bank
from tests.withdrawals import cast as withdrawals
from transfers import settling
from transfers.models import Contradiction

Serving = Callable[..., Bank]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]
CHARGED = Said("succeeded", "chrg_1", None, "visa", "4242")
SENT, NOT_SENT = Word("succeeded", "b-1"), Word("failed", "b-1")


@pytest.fixture
def malee(db: None) -> Client:
    return staff("malee", "view_receipt", "resolve_receipt")


@pytest.fixture
def failed_card(shop: Shop, settings: Any) -> Payment:
    """A card payment of 1,500.00 THB that failed here."""
    settings.SANDBOX_ACQUIRER_URL = "http://127.0.0.1:1"
    made = cards.draft(merchant=shop.merchant, token_id="tok", amount=150_000, now=clock.now())
    cards.store(made)
    settle(made.payment, Said("not_sent"))
    assert made.payment.status == "failed"
    return made.payment


def settle(payment: Payment, said: Said) -> None:
    with transaction.atomic():
        cards.settle(payment.id, said, now=clock.now())
    payment.refresh_from_db()


@pytest.fixture
def other_charge(shop: Shop, settings: Any) -> Payment:
    """A card payment of 1,500.00 THB of which the acquirer charged 150.00 THB, as it says twice."""
    settings.SANDBOX_ACQUIRER_URL = "http://127.0.0.1:1"
    made = cards.draft(merchant=shop.merchant, token_id="tok", amount=150_000, now=clock.now())
    cards.store(made)
    for _ in range(2):
        settle(made.payment, Said("succeeded", "chrg_1", amount=15_000, currency="THB"))
    assert made.payment.status == "pending"
    return made.payment


def act(client: Client, waiting: Waiting, slug: str) -> str:
    answer = client.post(f"{LIST}{waiting.pk}/act/{slug}/", {"why": WHY}, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def test_card_that_failed_here_and_was_charged_is_listed_once_with_instructions(
    failed_card: Payment, malee: Client
) -> None:
    for _ in range(3):
        settle(failed_card, CHARGED)
    assert failed_card.status == "failed"
    waiting = Waiting.objects.get()
    assert (waiting.why, waiting.payment_id, waiting.amount, waiting.merchant, waiting.bank) == (
        "contradiction",
        failed_card.id,
        150_000,
        failed_card.merchant,
        "sandbox",
    )
    for page in (read(malee, LIST, q=failed_card.id), read(malee, page_of(waiting.pk))):
        assert "failed here, and sandbox charged 1,500.00 THB" in page
        assert "Refund the charge at sandbox, then dismiss this" in page
    assert "chrg_1" in read(malee, page_of(waiting.pk))


def test_dismissed_contradiction_stays_away_and_can_be_opened_again(
    failed_card: Payment, malee: Client
) -> None:
    settle(failed_card, CHARGED)
    waiting = Waiting.objects.get()
    assert "/act/returned" not in read(malee, page_of(waiting.pk))
    act(malee, waiting, "dismiss")
    settle(failed_card, CHARGED)
    assert not Waiting.objects.exists()
    assert "alee decided already" in act(malee, waiting, "dismiss")
    act(malee, waiting, "reopen")
    assert Waiting.objects.get().pk == waiting.pk


def test_contradiction_is_stored_in_the_commit_that_learns_of_it(failed_card: Payment) -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        cards.settle(failed_card.id, CHARGED, now=clock.now())
        raise RuntimeError
    assert not Contradiction.objects.exists()


def test_card_charged_another_amount_is_listed_once_until_staff_book_it_as_failed(
    other_charge: Payment, malee: Client
) -> None:
    waiting = Waiting.objects.get()
    page = read(malee, page_of(waiting.pk))
    assert "asked for 1,500.00 THB, and sandbox charged 150.00 THB" in page
    assert "/act/failed/" in page and "/act/dismiss/" not in page
    with pytest.raises(NotPossible, match="still pending"):
        acts.dismiss(waiting.pk, by="malee", why=WHY, now=clock.now())
    act(malee, waiting, "failed")
    other_charge.refresh_from_db()
    assert (other_charge.status, other_charge.failure_code) == ("failed", "processing_error")
    assert not Waiting.objects.exists()
    made = Act.objects.get(subject_id=waiting.pk)
    assert (made.deed, made.by, made.why) == ("booked_failed", "malee", WHY)
    with pytest.raises(NotPossible):
        charges.book_as_failed(waiting.pk, by="somsak", why=WHY, now=clock.now())
    with pytest.raises(NotPossible):
        acts.reopen(waiting.pk, by="somsak", why=WHY, now=clock.now())


def test_card_charged_another_amount_in_other_currency_says_so(other_charge: Payment) -> None:
    found = Contradiction.objects.get()
    found.answer_amount, found.answer_currency = 150_000, "USD"
    assert "charged 150000 of the smallest unit of USD" in sentences.of_contradiction(found)


def test_card_charge_that_was_answered_rightly_afterwards_succeeds_and_is_dismissed(
    other_charge: Payment, malee: Client
) -> None:
    settle(other_charge, Said("succeeded", "chrg_1", amount=150_000, currency="THB"))
    assert other_charge.status == "succeeded"
    waiting = Waiting.objects.get()
    with pytest.raises(NotPossible, match="not pending any more"):
        charges.book_as_failed(waiting.pk, by="malee", why=WHY, now=clock.now())
    act(malee, waiting, "dismiss")
    assert not Waiting.objects.exists()


def test_failed_card_payment_cannot_be_booked_as_failed_again(failed_card: Payment) -> None:
    settle(failed_card, CHARGED)
    with pytest.raises(NotPossible, match="not pending any more"):
        charges.book_as_failed(Waiting.objects.get().pk, by="malee", why=WHY, now=clock.now())


def test_database_refuses_a_second_end_of_a_contradiction(other_charge: Payment) -> None:
    waiting = Waiting.objects.get().pk
    charges.book_as_failed(waiting, by="malee", why=WHY, now=clock.now())
    again = f"""INSERT INTO receipts_act (subject_id, deed, by, why, round, request_id, at)
        VALUES ('{waiting}', '{{}}', 'somsak', 'x', {{}}, '', now())"""
    assert sqlstate(again.format("dismissed", 0)) == "23505"
    assert sqlstate(again.format("booked_failed", 1)) == "23000"


def test_withdrawal_that_failed_here_and_arrived_at_the_bank_is_an_exception(
    till: Till, served_by: Serving, malee: Client
) -> None:
    made = withdrawn(till, served_by, NOT_SENT)
    for _ in range(2):
        settling.settle(made, SENT, orders.OWNERS["wd"], now=clock.now())
    waiting = Waiting.objects.get()
    page = read(malee, page_of(waiting.pk))
    assert f"Order {made} over 1,000.00 THB is failed here, and sandbox says succeeded" in page
    assert (
        "No action books this" in page and "Ask the bank to recall it" in page and "/act/returned" not in page
    )
    with pytest.raises(NotPossible):
        orders.book_as_returned(waiting.pk, by="malee", why=WHY, now=clock.now())
    act(malee, waiting, "dismiss")
    assert not Waiting.objects.exists()


def test_withdrawal_that_the_bank_never_sent_is_booked_as_returned(
    till: Till, served_by: Serving, malee: Client
) -> None:
    made = withdrawn(till, served_by, SENT)
    assert till.balance() == (50_000, 0)
    settling.settle(made, NOT_SENT, orders.OWNERS["wd"], now=clock.now())
    waiting = Waiting.objects.get()
    assert "book the order as returned" in read(malee, page_of(waiting.pk))
    assert f"Withdrawal {made} fails, and the merchant has" in read(
        malee, f"{LIST}{waiting.pk}/act/returned/"
    )
    act(malee, waiting, "returned")
    assert (till.balance(), Waiting.objects.exists()) == ((150_000, 0), False)
    assert withdrawals.now_of(till.shop, {"withdrawal_id": made})["failure_code"] == "returned_by_bank"
    with pytest.raises(NotPossible):
        orders.book_as_returned(waiting.pk, by="somsak", why=WHY, now=clock.now())


def test_refund_that_the_bank_never_sent_waits_for_staff_as_returned(
    till: Till, served_by: Serving, malee: Client
) -> None:
    served_by(sends=[SENT])
    made = till.refund(till.paid())["refund_id"]
    carry_out()
    settling.settle(made, NOT_SENT, orders.OWNERS["ref"], now=clock.now())
    act(malee, Waiting.objects.get(why="contradiction"), "returned")
    assert [waiting.pk for waiting in Waiting.objects.all()] == [made]
    acts.keep(made, by="malee", why=WHY, now=clock.now())
    assert till.balance() == (150_000, 0)


def withdrawn(till: Till, serving: Serving, word: Word) -> str:
    """A withdrawal of 1,000.00 of 1,500.00 THB, and how its bank says that it ended."""
    till.paid()
    bank: Bank = serving(sends=[word])
    made = withdrawals.withdrawn(till.shop)
    withdrawals.work()
    assert len(bank.sent) == 1
    return str(made["withdrawal_id"])


def test_inquiries_that_contradict_a_callback_are_one_exception(till: Till) -> None:
    notice = till.bank.notice(till.shop.qr_code(), satang=149_999)
    till.bank.post(notice)
    answer = parsed(notice | {"amount": "1500.01"})
    for _ in range(3):
        if inquiries._heard_before("sandbox", answer) is None:
            inbox.accept(bank="sandbox", body=b"{}", notice=answer, now=clock.now(), source=Source.INQUIRY)
    assert Notice.objects.filter(verdict="conflict").count() == 1
    assert Receipt.objects.count() == 1


@pytest.mark.parametrize(
    "attack",
    [
        "UPDATE transfers_contradiction SET answer = 'failed'",
        "DELETE FROM transfers_contradiction",
        "TRUNCATE transfers_contradiction",
    ],
)
def test_contradictions_are_not_rewritten(failed_card: Payment, attack: str) -> None:
    settle(failed_card, CHARGED)
    assert sqlstate(attack) == NOT_ALLOWED
