"""Money of the sandbox bank waits in an account of its own, apart from live money."""

from collections.abc import Iterator
from datetime import datetime

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from tests.conftest import open_shop
from transactions import accounts, bulk, ledger
from transactions.ledger_models import Account, Entry, Fact, Unfolded

BEFORE = ("transactions", "0012_fold_in_batches")


def entries() -> list[tuple[str, int]]:
    """The lines of suspense accounts, the oldest first."""
    lines = Entry.objects.filter(account__kind="suspense").order_by("id")
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
def test_money_waits_in_the_suspense_account_of_its_bank(noon: datetime, outside: str, expected: str) -> None:
    ledger.hold(subject_id="one", amount=70, source=outside, at=noon)
    bulk.hold_all({"two": 50}, source=outside, at=noon)
    ledger.send_back(subject_id="three", amount=30, to=outside, at=noon)
    assert entries() == [(expected, 70), (expected, 50), (expected, -30)]
    assert accounts.suspense_of(outside) == expected


@pytest.fixture
def before() -> Iterator[None]:
    """The tables as they were when all money waited in one account."""
    MigrationExecutor(connection).migrate([BEFORE])
    yield
    migrate()


def migrate() -> None:
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_migration_moves_sandbox_money_and_leaves_live_money(
    before: None, noon: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    test, live = open_shop("Test").merchant.id, open_shop("Live", mode="live").merchant.id
    # As the code was then.
    monkeypatch.setattr(accounts, "SANDBOX_SUSPENSE", accounts.SUSPENSE)
    for number, (bank, merchant_id) in enumerate((("bank:sandbox", test), ("bank:scb", live))):
        for subject, amount in (("folded", 70), ("credited", 60)):
            ledger.hold(subject_id=f"{subject}{number}", amount=amount, source=bank, at=noon)
        ledger.fold_due(now=noon)
        ledger.credit(
            merchant_id=merchant_id,
            fact=Fact.ACCEPTED,
            subject_id=f"credited{number}",
            amount=60,
            source=accounts.SUSPENSE,
            at=noon,
        )
    for bank in ("bank:sandbox", "bank:scb"):
        ledger.hold(subject_id=f"waiting at {bank}", amount=5, source=bank, at=noon)
    monkeypatch.undo()
    assert {code for code, _ in entries()} == {"suspense"}
    for _ in range(2):
        migrate()
        assert sorted(entries()) == [
            (code, amount) for code in ("suspense", "suspense:sandbox") for amount in (-60, 5, 60, 70)
        ]
        settled = Account.objects.filter(kind="suspense").order_by("id").values_list("id", "settled")
        assert list(settled) == [("suspense", 70), ("suspense:sandbox", 70)]
        waiting = Unfolded.objects.filter(account_id__startswith="suspense").order_by("account_id")
        assert list(waiting.values_list("account_id", "amount")) == [
            ("suspense", 5),
            ("suspense:sandbox", 5),
        ]
        MigrationExecutor(connection).migrate([BEFORE])
        assert list(Account.objects.filter(kind="suspense", settled__gt=0).values_list("id", "settled")) == [
            ("suspense", 140)
        ]
