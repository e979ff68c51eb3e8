"""A bank that never answers about money out: staff ask it, and end the order by what it told them."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db import DatabaseError, transaction
from django.db.models import F
from django.test import Client

from banks import OrderNotice, Word
from core import clock
from receipts import orders
from tests.conftest import BankCaller, Shop
from tests.refunds.cast import PAYEE, Counter, carry_out
from tests.threads import at_once
from tests.transfers.cast import Bank
from tests.withdrawals import cast as withdrawals
from transfers import services as transfers
from transfers.models import State, Transfer
from transfers.schedule import OVERDUE
from webhooks.models import Event

Serving = Callable[..., Bank]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]
LISTED = "/admin/transfers/transfer/"


def staff(name: str, *permissions: str) -> Client:
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_transfer", *permissions]))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def malee(db: None) -> Client:
    return staff("malee", "settle_transfer")


@pytest.fixture
def counter(shop: Shop, bank: BankCaller) -> Counter:
    return Counter(shop, bank)


@pytest.fixture
def silent(served_by: Serving) -> Bank:
    """A bank that takes every order and never says what became of it."""
    return served_by(sends=[Word("unknown")], inquiries=[Word("unknown")])


def act(client: Client, action: str, transfer: Transfer) -> str:
    """Choose it in the list and click; the page that follows."""
    chosen = {"action": action, "_selected_action": [transfer.id]}
    answer = client.post(LISTED, chosen, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def told_ago(wait: timedelta = OVERDUE) -> Transfer:
    """The one transfer, after the bank was told of it so long ago."""
    Transfer.objects.update(told_at=F("told_at") - wait)
    transfer: Transfer = Transfer.objects.get()
    assert transfer.state == State.TOLD
    return transfer


def withdrawn(counter: Counter) -> dict[str, Any]:
    """A withdrawal of 1,000.00 of 1,500.00 THB that the bank was told of."""
    counter.paid()
    made = withdrawals.withdrawn(counter.shop)
    withdrawals.work(2)
    return made


def refunded(counter: Counter) -> dict[str, Any]:
    """A refund of 1,000.00 of 1,500.00 THB that the bank was told of."""
    made = counter.refund(counter.paid(), amount=100_000, destination=PAYEE)
    carry_out(2)
    return made


@pytest.mark.parametrize(
    ("action", "status", "code", "balance"),
    [
        ("never_arrived", "failed", "never_arrived", (150_000, 0)),
        ("arrived", "succeeded", None, (50_000, 0)),
    ],
)
def test_a_withdrawal_ends_as_the_bank_told_staff(
    counter: Counter, silent: Bank, malee: Client, action: str, status: str, code: str | None, balance: Any
) -> None:
    made = withdrawn(counter)
    assert counter.balance() == (50_000, 100_000)
    assert f"{status}." in act(malee, action, told_ago())
    ended = withdrawals.now_of(counter.shop, made)
    assert (ended["status"], ended["failure_code"], counter.balance()) == (status, code, balance)
    assert withdrawals.events_of(made)[-1] == f"withdrawal.{status}"
    assert (Transfer.objects.get().settled_by, len(silent.sent)) == ("malee", 1)
    entry = LogEntry.objects.get()
    assert (entry.user.username, entry.object_id) == ("malee", made["withdrawal_id"])


@pytest.mark.parametrize(
    ("action", "status", "code", "balance", "history"),
    [
        ("never_arrived", "failed", "never_arrived", (150_000, 0), "failed"),
        ("arrived", "completed", None, (50_000, 0), "succeeded"),
    ],
)
def test_a_refund_ends_as_the_bank_told_staff(
    counter: Counter,
    silent: Bank,
    malee: Client,
    action: str,
    status: str,
    code: str | None,
    balance: Any,
    history: str,
) -> None:
    made = refunded(counter)
    act(malee, action, told_ago())
    ended = counter.read(made)
    assert (ended["status"], ended["failure_code"], counter.balance()) == (status, code, balance)
    assert [entry[0] for entry in counter.history()] == [history]
    assert Event.objects.filter(subject_id=made["refund_id"], type=f"refund.{status}").count() == 1


@pytest.mark.parametrize(("first", "second"), [("arrived", "never_arrived"), ("never_arrived", "arrived")])
def test_a_second_click_changes_nothing(
    counter: Counter, silent: Bank, malee: Client, first: str, second: str
) -> None:
    made = withdrawn(counter)
    transfer = told_ago()
    act(malee, first, transfer)
    ended = withdrawals.now_of(counter.shop, made)
    somsak = staff("somsak", "settle_transfer")
    for again in (first, second):
        assert "nothing changed" in act(somsak, again, transfer)
    assert withdrawals.now_of(counter.shop, made) == ended
    assert (Transfer.objects.get().settled_by, LogEntry.objects.count()) == ("malee", 1)


def test_what_the_bank_was_not_told_of_is_refused(counter: Counter, silent: Bank, malee: Client) -> None:
    counter.paid()
    made = withdrawals.withdrawn(counter.shop)
    for action in ("arrived", "never_arrived"):
        assert "nothing changed" in act(malee, action, Transfer.objects.get())
    assert withdrawals.now_of(counter.shop, made) == made


def test_what_the_bank_has_answered_is_refused(counter: Counter, served_by: Serving, malee: Client) -> None:
    served_by(sends=[Word("succeeded", "b-1")])
    made = withdrawn(counter)
    Transfer.objects.update(told_at=F("told_at") - OVERDUE)
    assert "nothing changed" in act(malee, "never_arrived", Transfer.objects.get())
    assert withdrawals.now_of(counter.shop, made)["status"] == "succeeded"


def test_a_bank_that_may_still_answer_is_waited_for(counter: Counter, silent: Bank, malee: Client) -> None:
    made = withdrawn(counter)
    soon = told_ago(OVERDUE - timedelta(minutes=1))
    assert "nothing changed" in act(malee, "never_arrived", soon)
    assert withdrawals.now_of(counter.shop, made)["status"] == "processing"


@pytest.mark.parametrize("action", ["arrived", "never_arrived"])
def test_who_may_only_look_changes_nothing(counter: Counter, silent: Bank, action: str) -> None:
    made = withdrawn(counter)
    act(staff("intern", "change_transfer"), action, told_ago())
    assert withdrawals.now_of(counter.shop, made)["status"] == "processing"
    assert (Transfer.objects.get().settled_by, LogEntry.objects.count()) == ("", 0)


def test_a_bank_that_contradicts_afterwards_waits_for_staff(
    counter: Counter, silent: Bank, malee: Client
) -> None:
    made = withdrawn(counter)
    transfer = told_ago()
    act(malee, "never_arrived", transfer)
    assert transfers.weigh(OrderNotice(transfer.id, "succeeded"), bank="sandbox") == "conflict"
    withdrawals.work(2)
    assert withdrawals.now_of(counter.shop, made)["status"] == "failed"


def test_who_ended_it_is_kept(counter: Counter, silent: Bank, malee: Client) -> None:
    withdrawn(counter)
    transfer = told_ago()
    with pytest.raises(DatabaseError), transaction.atomic():
        Transfer.objects.update(settled_by="somsak")
    act(malee, "arrived", transfer)
    with pytest.raises(DatabaseError, match="said as it ends"), transaction.atomic():
        Transfer.objects.update(settled_by="somsak")


@pytest.mark.django_db(transaction=True)
def test_of_many_words_at_once_one_counts(counter: Counter, silent: Bank) -> None:
    withdrawn(counter)
    transfer = told_ago()

    def settle(word: Word) -> bool:
        try:
            orders.settle_by_hand(transfer.id, word, by="malee", now=clock.now())
        except transfers.NotOverdue:
            return False
        return True

    arrived = [lambda: settle(transfers.ARRIVED)] * 4
    assert sum(at_once(*arrived, *[lambda: settle(transfers.NEVER_ARRIVED)] * 4)) == 1
    assert counter.balance() in [(50_000, 0), (150_000, 0)]
