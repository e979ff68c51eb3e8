"""Money that waited before it had an account of its own is judged again, and then it is in suspense."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from core import clock, ids, thaiqr
from payments.models import Payment
from receipts import services
from receipts.models import Receipt
from tests.conftest import Shop
from tests.receipts.cast import now_of, postings_of, suspense
from tests.refunds.cast import NOBODY, confirm

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("books_are_right")]
BEFORE = ("receipts", "0004_keep_whole")


@pytest.fixture
def old_receipt() -> Iterator[Any]:
    """The table as it was before."""
    executor = MigrationExecutor(connection)
    newest = executor.loader.graph.leaf_nodes()
    executor.migrate([BEFORE])
    yield MigrationExecutor(connection).loader.project_state([BEFORE]).apps.get_model("receipts", "Receipt")
    MigrationExecutor(connection).migrate(newest)


def migrate() -> None:
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


def told(old_receipt: Any, code: dict[str, Any], outcome: str, **changes: Any) -> str:
    """A receipt as it was judged then; its id."""
    now, qr = clock.now(), thaiqr.parse(code["qr_data"])
    fields = {
        "id": ids.new("rcp_", now),
        "bank": "sandbox",
        "bank_transaction_id": ids.random_text(20),
        "kind": "credit",
        "biller_id": qr.biller_id,
        "reference1": qr.reference1,
        "amount": code["amount"],
        "paid_at": now,
        "outcome": outcome,
        "received_at": now,
        "judged_at": now,
    }
    made = old_receipt.objects.create(**fields | changes)
    return str(made.id)


def test_what_waited_is_judged_again_and_posted(shop: Shop, old_receipt: Any) -> None:
    paid, open_code = shop.qr_code(), shop.qr_code()
    payment_id, merchant_id = paid["payment_id"], shop.merchant.id
    confirm(payment_id, NOBODY)
    ours = {"payment_id": payment_id, "merchant_id": merchant_id}
    paid_at = Payment.objects.get(pk=payment_id).completed_at
    applied = told(old_receipt, paid, "applied", bank_transaction_id="PAID", paid_at=paid_at, **ours)
    waited = {
        "unmatched": told(old_receipt, open_code, "unmatched", reference1="NOBODYKNOWSTHIS00000"),
        "duplicate": told(old_receipt, paid, "duplicate", **ours),
        "amount_mismatch": told(old_receipt, open_code, "amount_mismatch", amount=99),
        "late": told(old_receipt, open_code, "late", paid_at=clock.now() + timedelta(days=2)),
    }
    reversal = told(old_receipt, paid, "reversed", kind="reversal", bank_transaction_id="PAID", **ours)
    declined = told(old_receipt, open_code, "declined", kind="decline", reference1="NOBODYKNOWSTHIS00000")
    migrate()
    assert set(Receipt.objects.not_judged().values_list("pk", flat=True)) == {*waited.values(), reversal}
    assert suspense() == 0
    assert services.apply_left(now=clock.now() + timedelta(seconds=5)) == 5
    for outcome, receipt_id in waited.items():
        receipt = Receipt.objects.get(pk=receipt_id)
        assert (now_of(receipt), postings_of(receipt_id)) == ((outcome, ""), [("held", receipt.amount)])
    assert suspense() == 450_099
    assert [now_of(Receipt.objects.get(pk=each))[0] for each in (applied, reversal, declined)] == [
        "applied",
        "reversed",
        "declined",
    ]
    assert shop.payment(payment_id)["status"] == "refunded"
