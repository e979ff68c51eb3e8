"""Payments whose callbacks were lost: matching a batch gives the same results as one by one."""

import io
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
import time_machine
from django.db import connection, reset_queries
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from core import clock, ids
from core.clock import BANGKOK
from core.database import rows
from ledger.models import Entry
from payments import expiry_sweep
from payments.models import Payment
from qrcodes import services as qrcodes
from reconciliation.matching import services as matching
from reconciliation.models import BankTransaction
from reconciliation.statements import importing, statement_file
from reconciliation.statements.line_storage import store_lines
from reconciliation.statements.lines import FileProblems
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop, new_client
from tests.context import acting_as
from tests.reconciliation.statements.statement_files import (
    bot_file,
    credit_line,
    detail,
    import_file,
    open_shop_with_biller,
)
from tests.sqlstates import setting
from transactions.models import Transaction
from webhooks.models import Endpoint, Event

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("audit_is_clean"),
]
CLIENT = {"client_name": "Malee", "client_bank_name": "SCB", "client_bank_account": "4051234567"}
# For each kind: the fields of the code, the changes of its line, and the seconds until it is paid.
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any], float]] = {
    "plain": ({}, {}, 0),
    "by somebody else": (CLIENT, {"name": "SOMCHAI"}, 0),
    "with all that a code may have": ({"metadata": {"z": 1, "a": [None]}, "reference": "order 17"}, {}, 1),
    "for a biller who did not make it": ({}, {"biller": "099400016550199"}, 0),
    "too little": ({}, {"amount": 100}, 0),
    "too late": ({"expiry_minutes": 1}, {}, 90),
    "in time, for a code that has expired since": ({"expiry_minutes": 1}, {}, 30),
}
COLUMNS = (
    "status", "payer_name", "payer_bank_code", "payer_account_sealed", "payer_matches", "bank_reference",
    "amount_received", "completed_at", "updated_at",
)  # fmt: skip


def test_batch_and_single_application_have_the_same_result(settings: Settings) -> None:
    settings.EXPIRY_EVENTS = True
    shop = open_shop_with_biller("Lost")
    listen(shop)
    with time_machine.travel(clock.now().replace(microsecond=0), tick=False) as travel:
        alone, together = ([create_sale(shop, kind) for kind in KINDS] for _ in range(2))
        travel.shift(timedelta(minutes=2))
        store_unmatched_lines(bot_file(*(line for _, line in alone)))
        travel.shift(matching.UNAPPLIED_AFTER)
        assert matching.apply_unapplied(now=clock.now()) == len(KINDS)
        import_file(bot_file(*(line for _, line in together)))
    results = dict(zip(KINDS, [stored_result_of(payment_id) for payment_id, _ in together], strict=True))
    assert results == dict(zip(KINDS, [stored_result_of(payment_id) for payment_id, _ in alone], strict=True))
    assert [status for (status, *_), *_ in results.values()] == [
        "succeeded", "succeeded", "succeeded", "pending", "pending", "expired", "succeeded"
    ]  # fmt: skip


@pytest.mark.logs_errors
def test_payment_that_cannot_succeed_does_not_block_the_batch() -> None:
    shop = open_shop_with_biller("Lost")
    sales = [create_sale(shop, "by somebody else") for _ in range(5)]
    spoilt = sales[2][0]
    sealed = Payment.objects.get(pk=spoilt).client_bank_account_sealed
    with setting("resealing"):
        token = "sealed: as if its key were lost"
        Payment.objects.filter(pk=spoilt).update(client_bank_account_sealed=token)
    body = bot_file(*(line for _, line in sales))
    import_file(body)
    assert set(Payment.objects.filter(status="pending").values_list("id", flat=True)) == {spoilt}
    assert BankTransaction.objects.not_matched().count() == 1
    with setting("resealing"):
        Payment.objects.filter(pk=spoilt).update(client_bank_account_sealed=sealed)
    import_file(body)
    assert set(Payment.objects.values_list("status", flat=True)) == {"succeeded"}


def test_two_lines_of_one_code_are_a_payment_and_a_duplicate() -> None:
    shop = open_shop_with_biller("Lost")
    sales = [create_sale(shop, "plain") for _ in range(3)]
    import_file(bot_file(*(line for _, line in sales), sales[1][1]))
    outcomes = sorted(BankTransaction.objects.values_list("match_result", flat=True))
    assert outcomes == ["applied", "applied", "applied", "duplicate"]


def test_concurrent_callbacks_and_files_pay_each_payment_once() -> None:
    shop, count = open_shop_with_biller("Race"), 40
    codes, paid_at = [shop.qr_code() for _ in range(count)], clock.now()
    lines = [credit_line(code, paid_at) for code in codes]
    callers = [partial(send_callbacks, codes[number::4], paid_at) for number in range(4)]
    run_concurrently(
        *callers, partial(import_file, bot_file(*lines)), partial(import_file, bot_file(*lines[::-1]))
    )
    matching.apply_unapplied(now=clock.now() + matching.UNAPPLIED_AFTER * 2)
    assert set(Payment.objects.values_list("status", flat=True)) == {"succeeded"}
    assert BankTransaction.objects.count() == Transaction.objects.count() == count


def test_many_lost_callbacks_take_few_queries() -> None:
    shop = open_shop_with_biller("Lost")
    import_file(bot_file(*(line for _, line in sell(shop, 10))))
    body = bot_file(*(line for _, line in sell(shop, 500)))
    reset_queries()
    with CaptureQueriesContext(connection) as asked:
        import_file(body)
    assert len(asked) <= 45
    assert Payment.objects.filter(status="succeeded").count() == 510


def create_sale(shop: Shop, kind: str) -> tuple[str, bytes]:
    """Create a payment of this kind. Return its id and its statement line."""
    fields, changes, seconds = KINDS[kind]
    code = shop.qr_code(**fields)
    return code["payment_id"], credit_line(code, clock.now() + timedelta(seconds=seconds), **changes)


def sell(shop: Shop, count: int) -> "list[tuple[str, bytes]]":
    """Create plain payments that have expired. Return their ids and statement lines."""
    made_at, sales = clock.now() - timedelta(minutes=30), []
    at = made_at.astimezone(BANGKOK)
    for _ in range(count):
        made = qrcodes.generate(
            merchant=shop.merchant, subscriptions=[], now=made_at, amount=150_000, expiry_minutes=15
        )
        rows.insert_together(made.rows)
        line = detail(date=f"{at:%d%m%Y}", time=f"{at:%H%M%S}", ref1=made.qr_code.reference1)
        sales.append((made.payment.id, line))
    expiry_sweep.expire_due(now=clock.now())
    return sales


def count(asked: list[int], execute: Callable[..., Any], *reported: Any) -> Any:
    asked[0] += 1
    return execute(*reported)


def store_unmatched_lines(body: bytes) -> None:
    """Store the lines of a file and do not match them, as after a crash."""
    file = statement_file.open_file(io.BytesIO(body), "day.txt")
    with acting_as("staff:malee"):
        statement = importing.begin(file, bank="sandbox", now=clock.now())
    store_lines(statement, list(file.read_lines(FileProblems())), now=clock.now())


def stored_result_of(payment_id: str) -> Any:
    """Return a payment with its bank transactions, history rows, events and ledger entries."""
    payment = Payment.objects.get(pk=payment_id)
    bank_transactions = BankTransaction.objects.filter(payment=payment).values_list(
        "match_result", "merchant", "matched_at"
    )
    history = Transaction.objects.filter(payment_id=payment_id)
    events = Event.objects.filter(subject_id=payment_id).order_by("created_at", "type")
    reported = events.values_list("type", "actor", "created_at", "deliveries__endpoint", "deliveries__due_at")
    posted = Entry.objects.filter(journal__subject_id=payment_id).order_by("amount")
    return (
        [getattr(payment, name) for name in COLUMNS],
        list(bank_transactions),
        list(history.values_list("merchant", "type", "status", "amount", "currency", "created_at")),
        list(reported),
        list(posted.values_list("journal__type", "journal__amount", "account_id", "amount", "created_at")),
    )


def listen(shop: Shop) -> None:
    now = clock.now()
    Endpoint.objects.create(
        id=ids.new("wh_", now),
        merchant=shop.merchant,
        url="https://shop.example/hook",
        events=["payment.succeeded", "payment.failed"],
        secret_sealed="sealed",
        created_at=now,
        updated_at=now,
    )


def send_callbacks(codes: list[dict[str, Any]], paid_at: datetime) -> None:
    caller = SandboxBankClient(new_client())
    for code in codes:
        assert caller.notify(code, paid_at=paid_at).status_code == 200
