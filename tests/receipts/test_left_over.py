"""What cannot be applied at once is stored, answered, and applied by the sweep: nothing of it halfway."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Event, Thread

import pytest
from django.db import connection, transaction

from core import clock, rows
from payments.models import Payment
from receipts import services
from receipts.models import Notice, Receipt
from tests.conftest import BankCaller, new_client, open_shop
from tests.receipts.cast import Till, now_of, reversal_of, suspense
from tests.receipts.statements.cast import bot, line_of, load, minutes_ago
from transactions import accounts
from transactions.models import Account, Journal

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("books_are_right")]
LATER = timedelta(seconds=5)


@pytest.fixture
def till() -> Iterator[Till]:
    """Whoever waits for a lock here gives up soon."""
    rows.run("SET lock_timeout = '100ms'", [])
    yield Till(open_shop("Busy"), BankCaller(new_client()))
    connection.close()


@contextmanager
def held(table: str, row_id: str) -> Iterator[None]:
    """Somebody else has this row and does not let go of it."""
    has_it, may_go = Event(), Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                rows.run(f"SELECT FROM {table} WHERE id = %s FOR NO KEY UPDATE", [row_id])
                has_it.set()
                may_go.wait(timeout=60)
        finally:
            connection.close()

    holder = Thread(target=hold)
    holder.start()
    assert has_it.wait(timeout=60)
    try:
        yield
    finally:
        may_go.set()
        holder.join()


def test_money_whose_payment_is_busy_is_applied_by_the_sweep(till: Till) -> None:
    code = till.shop.qr_code()
    with held("payments_payment", code["payment_id"]):
        assert till.bank.tell(code).json() == {"status": "received"}
        assert services.apply_left(now=clock.now() + LATER) == 0
    receipt = Receipt.objects.get()
    assert (now_of(receipt), Journal.objects.count()) == (("", ""), 0)
    assert services.apply_left(now=clock.now() + LATER) == 1
    assert (now_of(receipt)[0], till.balance()) == ("applied", (150_000, 0))


@pytest.mark.parametrize("what", ["balance", "payment", "credit"])
def test_a_reversal_that_stops_midway_moved_nothing(till: Till, what: str) -> None:
    credit = till.sold()
    row = {
        "balance": (Account._meta.db_table, accounts.available(till.shop.merchant.id)),
        "payment": (Payment._meta.db_table, str(credit.payment_id)),
        "credit": (Receipt._meta.db_table, credit.id),
    }[what]
    with held(*row):
        reversal = till.takes_back(credit)
    assert (now_of(reversal), Payment.objects.get().status) == (("", ""), "succeeded")
    assert (till.held(), till.history()) == ({"available": 150_000, "reserved": 0}, [])
    assert services.apply_left(now=clock.now() + LATER) == 1
    assert (now_of(reversal)[0], till.held()) == ("reversed", {"available": 0, "reserved": 0})


def test_what_is_taken_out_of_suspense_waits_for_whoever_is_at_it(till: Till) -> None:
    credit = till.unmatched()
    with held(Account._meta.db_table, accounts.SANDBOX_SUSPENSE):
        reversal = till.takes_back(credit)
        till.unmatched()
    assert (now_of(reversal), now_of(credit)) == (("", ""), ("unmatched", ""))
    assert suspense() == 300_000
    services.apply_left(now=clock.now() + LATER)
    assert (now_of(reversal)[0], now_of(credit)[1], suspense()) == ("reversed", "taken_back", 150_000)


def test_of_a_credit_and_its_reversal_that_a_crash_left_nothing_is_left(till: Till) -> None:
    code = till.shop.qr_code()
    with held("payments_payment", code["payment_id"]):
        till.bank.tell(code)
        till.bank.post(reversal_of(Receipt.objects.get()))
    services.apply_left(now=clock.now() + LATER)
    assert sorted(Receipt.objects.values_list("outcome", flat=True)) == ["applied", "reversed"]
    assert (till.held(), Payment.objects.get().status) == ({"available": 0, "reserved": 0}, "refunded")


def test_what_no_sweep_would_find_is_told_again_by_the_bank(till: Till) -> None:
    """A message names the credit that a reversal has waited for, while its payment is busy."""
    code, paid_at = till.shop.qr_code(), clock.now().replace(microsecond=0)
    load(bot(line_of(code, minutes_ago(1)), line_of(code, paid_at)))
    second = Receipt.objects.get(outcome="duplicate")
    reversal = till.takes_back(second, transaction_id="THEBANKSOWNID0000000")
    named = till.bank.notice(code, paid_at=second.paid_at, transaction_id="THEBANKSOWNID0000000")
    with held("payments_payment", code["payment_id"]):
        assert till.bank.post(named).status_code == 503
    assert (now_of(reversal), Notice.objects.count()) == (("unmatched", ""), 2)
    assert till.bank.post(named).json() == {"status": "received"}
    assert (now_of(reversal), suspense()) == (("reversed", ""), 0)


def test_a_payer_that_is_told_while_the_receipt_is_busy_is_told_again(till: Till) -> None:
    code, paid_at = till.shop.qr_code(), clock.now().replace(microsecond=0)
    load(bot(line_of(code, paid_at, name="")))
    notice = till.bank.notice(code, paid_at=paid_at)
    till.bank.post(notice | {"payer_name": ""})
    receipt = Receipt.objects.get()
    with held("receipts_receipt", receipt.id):
        assert till.bank.post(notice).status_code == 503
    receipt.refresh_from_db()
    assert (receipt.payer_name, Notice.objects.count()) == ("", 2)
    till.bank.post(notice)
    receipt.refresh_from_db()
    assert receipt.payer_name == Payment.objects.get().payer_name == "Somchai Jaidee"
