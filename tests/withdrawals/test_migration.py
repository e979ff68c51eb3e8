"""What staff decided about withdrawals before `approvals` is kept there, and what waited still waits."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from approvals.models import Approval
from core import clock, ids, vault
from tests.approvals.cast import decide_approval
from tests.conftest import Shop
from tests.withdrawals.cast import ACCOUNT
from transfers.models import Step, Transfer
from withdrawals.models import Withdrawal

pytestmark = pytest.mark.django_db(transaction=True)
BEFORE = ("withdrawals", "0002_guard_moves")


@pytest.fixture
def old_withdrawal(shop: Shop) -> Iterator[Any]:
    """The table as it was before."""
    executor = MigrationExecutor(connection)
    newest = executor.loader.graph.leaf_nodes()
    executor.migrate([BEFORE])
    yield executor.loader.project_state([BEFORE]).apps.get_model("withdrawals", "Withdrawal")
    MigrationExecutor(connection).migrate(newest)


def made(old_withdrawal: Any, shop: Shop, *steps: dict[str, Any], needs_approval: bool = True) -> str:
    now = clock.now()
    withdrawal_id = ids.new("wd_", now)
    old_withdrawal.objects.create(
        id=withdrawal_id,
        merchant_id=shop.merchant.id,
        amount=150_000,
        currency="THB",
        bank="sandbox",
        bank_code="014",
        account_sealed=vault.seal(ACCOUNT, context=withdrawal_id),
        account_last4=ACCOUNT[-4:],
        account_name="Somchai",
        needs_approval=needs_approval,
        created_at=now,
        updated_at=now,
    )
    for step in steps:
        old_withdrawal.objects.filter(pk=withdrawal_id).update(**step)
    return withdrawal_id


def test_decisions_of_before_are_kept_and_what_waited_waits(shop: Shop, old_withdrawal: Any) -> None:
    decided = {"decided_by": "malee", "decided_at": clock.now()}
    rejected = {"status": "failed", "failure_code": "rejected_by_staff", **decided}
    expected = {
        made(old_withdrawal, shop, needs_approval=False): ("within_limits", "", False),
        (waits := made(old_withdrawal, shop)): ("waiting", "", True),
        made(old_withdrawal, shop, decided, {"status": "processing"}): ("approved", "staff:malee", False),
        made(old_withdrawal, shop, rejected): ("rejected", "staff:malee", False),
        made(old_withdrawal, shop, {"status": "canceled"}): ("canceled", "", False),
    }
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())
    waiting = dict(Withdrawal.objects.values_list("id", "awaiting_approval"))
    found = {
        row.subject_id: (row.status, row.decided_by, waiting[row.subject_id])
        for row in Approval.objects.all()
    }
    assert found == expected
    order = Transfer.objects.get(pk=waits)
    assert (order.state, order.account, order.route) == ("held", ACCOUNT, "bank:sandbox")
    decide_approval(waits, "approve")
    assert list(Step.objects.filter(transfer=waits).order_by("id").values_list("what", flat=True)) == [
        "held",
        "queued",
    ]
