"""What was paid before the bank kept books is in them."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from core import clock, ids
from sandbox.models import SandboxEntry, SandboxPayment

pytestmark = pytest.mark.django_db(transaction=True)
BEFORE, AFTER = ("sandbox", "0003_cards"), ("sandbox", "0004_entries_and_slips")


@pytest.fixture
def no_books_yet() -> Iterator[Any]:
    """The model of payments as it was."""
    executor = MigrationExecutor(connection)
    newest = executor.loader.graph.leaf_nodes()
    executor.migrate([BEFORE])
    yield executor.loader.project_state([BEFORE]).apps.get_model("sandbox", "SandboxPayment")
    MigrationExecutor(connection).migrate(newest)


def test_a_payment_gets_its_entry_and_a_slip_of_its_own(no_books_yet: Any) -> None:
    now = clock.now()
    for scenario in ("paid", "declined"):
        no_books_yet.objects.create(
            id=ids.new("sbp_", now),
            scenario=scenario,
            biller_id="010555000000001",
            reference1="A",
            amount=100,
            paid_at=now,
            created_at=now,
        )
    MigrationExecutor(connection).migrate([AFTER])
    entries = SandboxEntry.objects.select_related("payment").order_by("type")
    assert [(entry.type, entry.payment.scenario) for entry in entries] == [
        ("credit", "paid"),
        ("decline", "declined"),
    ]
    assert {(entry.at, entry.booked_at) for entry in entries} == {(now, now)}
    slips = set(SandboxPayment.objects.values_list("slip_reference", flat=True))
    assert [len(slip) for slip in slips] == [25, 25]
