"""Money of the sandbox bank waits, and is lost, in accounts of its own, apart from live money."""

from datetime import datetime

import pytest

from ledger import accounts, services as ledger
from ledger.models import Entry


def entries() -> list[tuple[str, int]]:
    """The lines of suspense accounts, the oldest first."""
    lines = Entry.objects.filter(account__type="suspense").order_by("id")
    return list(lines.values_list("account_id", "amount"))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("outside", "expected"),
    [
        ("bank:sandbox", "suspense:sandbox"),
        ("acquirer:sandbox", "suspense:sandbox"),
        ("bank:scb", "suspense"),
        ("acquirer:omise", "suspense"),
    ],
)
def test_sandbox_money_is_held_in_a_separate_suspense_account(
    noon: datetime, outside: str, expected: str
) -> None:
    ledger.hold({"one": 70, "two": 50}, source=outside, now=noon)
    ledger.send_back(subject_id="three", amount=30, to=outside, now=noon)
    assert entries() == [(expected, 70), (expected, 50), (expected, -30)]
    assert accounts.suspense_for(outside) == expected


@pytest.mark.django_db
@pytest.mark.parametrize(("owner", "lost"), [("sandbox", "write_offs:sandbox"), ("omise", "write_offs")])
def test_losses_of_the_sandbox_are_not_those_of_the_operator(noon: datetime, owner: str, lost: str) -> None:
    acquirer = accounts.acquirer(owner)
    ledger.receive_transfer(
        subject_id="one", acquirer=owner, received=100, cost=30, fee=ledger.NO_FEE, now=noon
    )
    ledger.book_difference(subject_id="two", account=acquirer, difference=-20, now=noon)
    lines = Entry.objects.filter(account__type="write_offs").order_by("id")
    assert list(lines.values_list("account_id", "amount")) == [(lost, each) for each in (-30, -20)]
