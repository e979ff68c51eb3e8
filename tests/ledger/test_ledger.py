"""Each posting and what it does to the balance."""

from collections.abc import Callable
from dataclasses import astuple
from datetime import datetime
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.models import Sum

from core import ids
from ledger import accounts, tasks
from ledger import services as ledger
from ledger.errors import InsufficientFunds
from ledger.models import Account, Entry, Journal, JournalType, PendingEntry
from ledger.postings import AccountNotOpen
from tests.factories import MerchantFactory

pytestmark = pytest.mark.django_db
BANK = accounts.bank("sandbox")


class Books:
    """One merchant's postings in short: a new subject each time, unless one is named."""

    def __init__(self, at: datetime) -> None:
        self.merchant_id: str = MerchantFactory().id
        self.at = at

    def credit(self, amount: int, **changes: Any) -> None:
        ledger.credit(**self._told(JournalType.PAYMENT, amount, source=BANK) | changes)

    def reserve(self, amount: int, **changes: Any) -> None:
        ledger.reserve(**self._told(JournalType.REFUND_RESERVED, amount) | changes)

    def release(self, amount: int) -> None:
        ledger.release(**self._told(JournalType.REFUND_RELEASED, amount))

    def pay_out(self, amount: int) -> None:
        ledger.pay_out(**self._told(JournalType.REFUND_PAID, amount, to=BANK))

    def take_back(self, amount: int) -> int:
        return ledger.reverse(**self._told(JournalType.REVERSAL, amount, to=BANK))

    def hold(self, amount: int) -> None:
        ledger.hold(subject_id=self.subject(), amount=amount, source=BANK, now=self.at)

    def accept(self, amount: int) -> None:
        ledger.accept(
            merchant_id=self.merchant_id,
            subject_id=self.subject(),
            amount=amount,
            held_from=BANK,
            now=self.at,
        )

    def send_back(self, amount: int) -> None:
        ledger.send_back(subject_id=self.subject(), amount=amount, to=BANK, now=self.at)

    def fold(self, amount: int = 0) -> None:
        ledger.roll_up_due(now=self.at)

    def balance(self, before: datetime | None = None) -> tuple[int, ...]:
        return astuple(ledger.balance(self.merchant_id, before=before))[:3]

    def subject(self) -> str:
        return ids.new("sub_", self.at)

    def _told(self, type: JournalType, amount: int, **more: str) -> dict[str, Any]:
        told = {"merchant_id": self.merchant_id, "type": type, "subject_id": self.subject(), "now": self.at}
        return {**told, "amount": amount, **more}


@pytest.fixture
def books(noon: datetime) -> Books:
    return Books(noon)


def held(code: str) -> int:
    """The balance by entries; by `rolled_up_balance` and pending entries it must be the same."""
    found: int = Entry.objects.filter(account_id=code).aggregate(sum=Sum("amount", default=0))["sum"]
    waiting = PendingEntry.objects.filter(account_id=code).aggregate(sum=Sum("amount", default=0))["sum"]
    assert Account.objects.get(pk=code).rolled_up_balance + waiting == found
    return found


# what happens in order; available, reserved, owed; at the bank
STORIES: list[tuple[list[tuple[str, int]], tuple[int, int, int], int]] = [
    ([("credit", 100)], (100, 0, 0), -100),
    ([("credit", 100), ("credit", 50)], (150, 0, 0), -150),
    ([("credit", 100), ("reserve", 60)], (40, 60, 0), -100),
    ([("credit", 100), ("reserve", 100)], (0, 100, 0), -100),
    ([("credit", 100), ("reserve", 60), ("pay_out", 60)], (40, 0, 0), -40),
    ([("credit", 100), ("reserve", 60), ("release", 60)], (100, 0, 0), -100),
    ([("credit", 100), ("reserve", 60), ("release", 60), ("reserve", 100)], (0, 100, 0), -100),
    ([("credit", 100), ("take_back", 100)], (0, 0, 0), 0),
    ([("credit", 100), ("reserve", 60), ("take_back", 100)], (0, 60, 60), 0),
    ([("take_back", 70)], (0, 0, 70), 70),
    # credits fill what is owed, in what is shown at once, in the books when they are rolled up
    ([("take_back", 70), ("credit", 50)], (0, 0, 20), 20),
    ([("take_back", 70), ("credit", 100)], (30, 0, 0), -30),
    ([("take_back", 70), ("credit", 50), ("fold", 0)], (0, 0, 20), 20),
    ([("take_back", 70), ("credit", 100), ("fold", 0)], (30, 0, 0), -30),
    ([("take_back", 70), ("credit", 100), ("reserve", 30)], (0, 30, 0), -30),
    ([("take_back", 70), ("credit", 50), ("take_back", 5)], (0, 0, 25), 25),
    ([("credit", 9), ("reserve", 9), ("take_back", 9), ("release", 9), ("fold", 0)], (0, 0, 0), 0),
    # suspense
    ([("hold", 80)], (0, 0, 0), -80),
    ([("hold", 80), ("accept", 80)], (80, 0, 0), -80),
    ([("hold", 80), ("send_back", 80)], (0, 0, 0), 0),
    ([("hold", 80), ("take_back", 30), ("accept", 80)], (50, 0, 0), -50),
]


@pytest.mark.parametrize("is_folded", [False, True], ids=["unfolded", "folded"])
@pytest.mark.parametrize(("story", "balance", "at_bank"), STORIES, ids=str)
def test_postings_give_the_expected_balances(
    books: Books, story: list[tuple[str, int]], balance: tuple[int, ...], at_bank: int, is_folded: bool
) -> None:
    for act, amount in story:
        do: Callable[[int], object] = getattr(books, act)
        do(amount)
        if is_folded:
            books.fold()
    assert books.balance() == balance
    assert held(BANK) == at_bank
    assert sum(held(code) for code in Account.objects.values_list("pk", flat=True)) == 0


def test_balance_of_an_unknown_merchant_is_zero(books: Books) -> None:
    assert books.balance() == (0, 0, 0)
    with pytest.raises(InsufficientFunds):
        books.reserve(1)


def test_journal_type_is_posted_once_per_subject(books: Books) -> None:
    books.credit(100, subject_id="one")
    with pytest.raises(IntegrityError, match="journal_once_per_subject_and_type"), transaction.atomic():
        books.credit(100, subject_id="one")
    books.reserve(10, subject_id="one")
    assert books.balance() == (90, 10, 0)


@pytest.mark.parametrize(
    ("act", "amount"), [("pay_out", 61), ("release", 61), ("accept", 6), ("send_back", 6)]
)
def test_account_cannot_be_overdrawn(books: Books, act: str, amount: int) -> None:
    books.credit(100)
    books.reserve(60)
    books.hold(5)
    do: Callable[[int], object] = getattr(books, act)
    with pytest.raises(IntegrityError, match="account_not_overdrawn"), transaction.atomic():
        do(amount)
    do(amount - 1)


@pytest.mark.parametrize("act", ["pay_out", "release"])
def test_money_cannot_leave_an_account_that_is_not_open(books: Books, act: str) -> None:
    with pytest.raises(AccountNotOpen), transaction.atomic():
        getattr(books, act)(1)
    assert not Journal.objects.exists()


def test_refused_posting_writes_nothing(books: Books) -> None:
    books.credit(100)
    with pytest.raises(InsufficientFunds):
        books.reserve(101)
    assert Journal.objects.count() == 1
    assert books.balance() == (100, 0, 0)


def test_roll_up_handles_all_accounts_in_batches(books: Books) -> None:
    for _ in range(3):
        Books(books.at).credit(100)
    assert ledger.roll_up_due(now=books.at, batch=2) == 6  # two lines of each posting
    assert not PendingEntry.objects.exists()
    assert ledger.roll_up_due(now=books.at) == 0


def test_task_rolls_up_pending_entries(books: Books) -> None:
    books.credit(100)
    tasks.roll_up_due()
    assert not PendingEntry.objects.exists()


@pytest.mark.parametrize(
    ("act", "most"), [("credit", 1), ("balance", 1), ("release", 1), ("pay_out", 1), ("reserve", 3)]
)
def test_a_posting_takes_few_statements(
    books: Books, act: str, most: int, django_assert_num_queries: Any
) -> None:
    books.credit(100)
    books.reserve(20)
    do: Callable[..., object] = getattr(books, act)
    with django_assert_num_queries(most):
        do(*([] if act == "balance" else [20]))
