"""Payments whose callbacks were lost, told by a statement: judged together, each as if it were alone."""

import io
import signal
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.db import connection, reset_queries
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from core import clock, ids, rows
from core.clock import BANGKOK
from payments import services as payments
from payments.models import Payment
from qrcodes import services as qrcodes
from receipts import services
from receipts.models import Receipt
from receipts.statements import importing, reading
from receipts.statements.lines import Complaints
from receipts.statements.storing import Entry as Told
from receipts.statements.storing import store
from tests.conftest import BankCaller, Shop, new_client
from tests.receipts.statements.cast import bot, detail, header, line_of, load, lost_by, open_billed, trailer
from tests.receipts.statements.test_races import is_stored, start
from tests.receipts.statements.test_size import GROWTH, imported
from tests.stack import wait_until
from tests.threads import at_once
from transactions.models import Entry, Journal, Transaction
from webhooks.models import Delivery, Endpoint, Event

MANY = 30_000
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("books_are_right")]
CLIENT = {"client_name": "Malee", "client_bank_name": "SCB", "client_bank_account": "4051234567"}
# How a code is made, what its line says, and how many seconds after it is paid.
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
    "status", "payer_name", "payer_bank_code", "payer_account_sealed", "payer_differs", "bank_transaction_id",
    "amount_received", "completed_at", "updated_at",
)  # fmt: skip


def test_together_each_becomes_what_it_becomes_alone(settings: Settings) -> None:
    settings.EXPIRY_EVENTS = True
    shop = open_billed("Lost")
    listen(shop)
    with time_machine.travel(clock.now().replace(microsecond=0), tick=False) as travel:
        alone, together = ([sold(shop, kind) for kind in KINDS] for _ in range(2))
        travel.shift(timedelta(minutes=2))
        keep(bot(*(line for _, line in alone)))
        travel.shift(services.LEFT_OVER)
        assert services.apply_left(now=clock.now()) == len(KINDS)
        load(bot(*(line for _, line in together)))
    became = dict(zip(KINDS, [became_of(payment_id) for payment_id, _ in together], strict=True))
    assert became == dict(zip(KINDS, [became_of(payment_id) for payment_id, _ in alone], strict=True))
    assert [status for (status, *_), *_ in became.values()] == [
        "succeeded", "succeeded", "succeeded", "pending", "pending", "expired", "succeeded"
    ]  # fmt: skip


def test_a_payment_that_cannot_succeed_holds_up_none_of_its_neighbours() -> None:
    shop = open_billed("Lost")
    sales = [sold(shop, "by somebody else") for _ in range(5)]
    spoilt = sales[2][0]
    sealed = Payment.objects.get(pk=spoilt).client_bank_account_sealed
    Payment.objects.filter(pk=spoilt).update(client_bank_account_sealed="as if its key were lost")
    body = bot(*(line for _, line in sales))
    load(body)
    assert set(Payment.objects.filter(status="pending").values_list("id", flat=True)) == {spoilt}
    assert Receipt.objects.not_judged().count() == 1
    Payment.objects.filter(pk=spoilt).update(client_bank_account_sealed=sealed)
    load(body)
    assert set(Payment.objects.values_list("status", flat=True)) == {"succeeded"}


def test_two_lines_of_one_code_among_others_are_one_payment_and_a_duplicate() -> None:
    shop = open_billed("Lost")
    sales = [sold(shop, "plain") for _ in range(3)]
    load(bot(*(line for _, line in sales), sales[1][1]))
    outcomes = sorted(Receipt.objects.values_list("outcome", flat=True))
    assert outcomes == ["applied", "applied", "applied", "duplicate"]


def test_callbacks_and_files_of_the_same_payments_at_once_make_each_succeed_once() -> None:
    shop, count = open_billed("Race"), 40
    codes, paid_at = [shop.qr_code() for _ in range(count)], clock.now()
    lines = [line_of(code, paid_at) for code in codes]
    callers = [partial(knock, codes[number::4], paid_at) for number in range(4)]
    at_once(*callers, partial(load, bot(*lines)), partial(load, bot(*lines[::-1])))
    services.apply_left(now=clock.now() + services.LEFT_OVER * 2)
    assert set(Payment.objects.values_list("status", flat=True)) == {"succeeded"}
    assert Receipt.objects.count() == Transaction.objects.count() == count


def test_many_lost_callbacks_take_few_statements() -> None:
    shop = open_billed("Lost")
    load(bot(*(line for _, line in sell(shop, 10))))
    body = bot(*(line for _, line in sell(shop, 500)))
    reset_queries()
    with CaptureQueriesContext(connection) as asked:
        load(body)
    assert len(asked) <= 45
    assert Payment.objects.filter(status="succeeded").count() == 510


@pytest.mark.slow
def test_what_a_killed_import_left_is_found_by_the_next_or_by_the_sweep(tmp_path: Path) -> None:
    shop, count = open_billed("Killed"), 3_000
    path = tmp_path / "day.txt"
    path.write_bytes(bot(*(line for _, line in sell(shop, count))))
    for stored in (500, 1_500):
        importer = start(path)
        wait_until(partial(is_stored, stored), 60)
        importer.send_signal(signal.SIGKILL)
        importer.wait()
    assert Payment.objects.filter(status="succeeded").count() < count
    services.apply_left(now=clock.now() + services.LEFT_OVER * 2)
    assert start(path).wait(120) == 0
    assert Payment.objects.filter(status="succeeded").count() == Transaction.objects.count() == count
    assert Event.objects.filter(type="payment.succeeded").count() == Receipt.objects.count() == count


@pytest.mark.slow
def test_many_lost_callbacks_take_flat_memory_and_few_statements(tmp_path: Path) -> None:
    shop, path, asked = open_billed("Busy"), tmp_path / "day.txt", [0]
    listen(shop)
    load(bot(*(line for _, line in sell(shop, 10))))
    with path.open("wb") as file:
        file.write(header() + b"\r\n")
        for line in lost_by(shop, MANY):
            file.write(line + b"\r\n")
        file.write(trailer(credit=150_000 * MANY, credits=MANY) + b"\r\n")
    with connection.execute_wrapper(partial(count, asked)):
        counts, seconds, grown = imported(path)
    sys.stdout.write(f"lost: {seconds:.1f} s, {grown} kB more\n")
    assert counts == {"new": MANY}
    assert asked[0] <= 25 * MANY / importing.BATCH
    assert grown < GROWTH
    assert Payment.objects.filter(status="succeeded").count() == 10 + MANY
    assert Journal.objects.count() == Transaction.objects.count() == 10 + MANY
    assert Event.objects.filter(type="payment.succeeded").count() == 10 + MANY
    assert Delivery.objects.filter(event__type="payment.succeeded").count() == 10 + MANY


def sold(shop: Shop, kind: str) -> tuple[str, bytes]:
    """The payment of a code of this kind, and the line that tells of its money."""
    fields, changes, seconds = KINDS[kind]
    code = shop.qr_code(**fields)
    return code["payment_id"], line_of(code, clock.now() + timedelta(seconds=seconds), **changes)


def sell(shop: Shop, count: int) -> "list[tuple[str, bytes]]":
    """Many plain ones, which expired a while ago."""
    made_at, sales = clock.now() - timedelta(minutes=30), []
    at = made_at.astimezone(BANGKOK)
    for _ in range(count):
        made = qrcodes.generate(merchant=shop.merchant, now=made_at, amount=150_000, expiry_minutes=15)
        rows.insert_together(made.rows)
        line = detail(date=f"{at:%d%m%Y}", time=f"{at:%H%M%S}", ref1=made.qr_code.reference1)
        sales.append((made.payment.id, line))
    payments.expire_due(now=clock.now())
    return sales


def count(asked: list[int], execute: Callable[..., Any], *told: Any) -> Any:
    asked[0] += 1
    return execute(*told)


def keep(body: bytes) -> None:
    """Import a file as far as a process comes that dies before it judges."""
    file = reading.open_file(io.BytesIO(body), "day.txt")
    statement, occurrences = importing.begin(file, bank="sandbox", by="malee", now=clock.now())
    entries = [Told(row, occurrences.count(row.digest)) for row in file.rows(Complaints())]
    store(statement, entries, now=clock.now())


def became_of(payment_id: str) -> Any:
    """A payment, its receipts, its rows in the history, the events told and the entries of the ledger."""
    payment = Payment.objects.get(pk=payment_id)
    receipts = Receipt.objects.filter(payment=payment).values_list("outcome", "merchant", "judged_at")
    history = Transaction.objects.filter(payment_id=payment_id)
    events = Event.objects.filter(subject_id=payment_id).order_by("created_at", "type")
    told = events.values_list("type", "actor", "created_at", "deliveries__endpoint", "deliveries__due_at")
    posted = Entry.objects.filter(journal__subject_id=payment_id).order_by("amount")
    return (
        [getattr(payment, name) for name in COLUMNS],
        list(receipts),
        list(history.values_list("merchant", "type", "status", "amount", "currency", "created_at")),
        list(told),
        list(posted.values_list("journal__fact", "journal__amount", "account_id", "amount", "created_at")),
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


def knock(codes: list[dict[str, Any]], paid_at: datetime) -> None:
    caller = BankCaller(new_client())
    for code in codes:
        assert caller.tell(code, paid_at=paid_at).status_code == 200
