"""A page of the list costs what is on the page, however many wait and however many were ever decided."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from threading import Event
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client

from core import clock, ids, lists, rows
from merchants.models import Merchant
from receipts import acts
from receipts.models import Act, Deed, Kind, Notice, Outcome, Receipt, Waiting
from receipts.templatetags import exceptions
from tests.audit import differences
from tests.conftest import BankCaller, Shop, new_client, open_shop
from tests.receipts.cast import WHY, Till, decide
from tests.receipts.staff import LIST, page_of, read, staff
from tests.stack import wait_until
from tests.threads import at_once

pytestmark = pytest.mark.django_db
MANY, COUNTED, ON_A_PAGE = 3_000, 100, 50
READ = """
SELECT coalesce(sum(seq_tup_read + idx_tup_fetch), 0) FROM pg_stat_xact_user_tables
WHERE relname ~ '^(receipts|refunds|merchants)_'
"""


@pytest.fixture
def onlooker(db: None) -> Client:
    return staff("onlooker", "view_receipt")


@pytest.fixture
def counting_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (lists, exceptions):
        monkeypatch.setattr(module, "COUNTED", COUNTED)


def rows_read() -> int:
    """Of the tables behind the list, in this transaction so far."""
    with connection.cursor() as cursor:
        cursor.execute(READ)
        return int(cursor.fetchone()[0])


def reading(client: Client, path: str, **query: str) -> int:
    """How many rows a page reads."""
    before = rows_read()
    read(client, path, **query)
    return rows_read() - before


def learn() -> None:
    """What the statistics would know an hour later. Of so few rows the planner may read all by choice; here
    it does so only where it has no index."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        cursor.execute("SET LOCAL enable_seqscan = off")


def one_by_one(count: int) -> list[str]:
    return [ids.random_text(20) for _ in range(count)]


def crowd(merchant: Merchant) -> None:
    """MANY that wait, and as many messages about which somebody has decided."""
    now = clock.now()
    Receipt.objects.bulk_create(
        Receipt(
            id=ids.new("rcp_", now),
            bank="sandbox",
            bank_transaction_id=name,
            kind=Kind.CREDIT,
            biller_id=merchant.biller_id,
            reference1="NOBODYKNOWSTHIS00000",
            amount=150_000,
            paid_at=now - timedelta(days=2),
            received_at=now - timedelta(days=2),
            merchant=merchant,
            outcome=Outcome.DUPLICATE,
            judged_at=now,
        )
        for name in one_by_one(MANY)
    )
    told = [
        Notice(
            id=ids.new("ntc_", now),
            bank="sandbox",
            verdict="unreadable",
            body_sealed="x",
            received_at=now - timedelta(days=9),
        )
        for _ in range(MANY)
    ]
    Notice.objects.bulk_create(told)
    Act.objects.bulk_create(
        Act(subject_id=notice.id, deed=Deed.DISMISSED, by="malee", why=WHY, at=now) for notice in told
    )
    learn()


@pytest.mark.usefixtures("counting_ends_early")
def test_a_page_reads_what_it_shows(shop: Shop, onlooker: Client) -> None:
    crowd(shop.merchant)
    assert Waiting.objects.count() == MANY
    asked: list[dict[str, str]] = [
        {}, {"p": "2"}, {"age": "day"}, {"age": "week"}, {"bank": "sandbox"}, {"bank": "scb"},
        {"money": "sandbox"}, {"money": "live"},
        {"why__exact": "duplicate"}, {"why__exact": "late"}, {"merchant__id__exact": shop.merchant.id},
        *({"o": order} for order in ("0", "-0", "1", "-1", "2", "-2")),
    ]  # fmt: skip
    for query in asked:
        assert reading(onlooker, LIST, **query) < 10 * ON_A_PAGE, query
    assert reading(onlooker, "/admin/") < 10 * ON_A_PAGE


def test_the_list_of_few_is_found_among_many_that_were_decided(till: Till, onlooker: Client) -> None:
    crowd(till.shop.merchant)
    waiting = Waiting.objects.values_list("pk", flat=True)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM receipts_waiting")  # as if all of it were decided too
    late = till.late()
    assert list(waiting) == [late.id]
    assert reading(onlooker, LIST) < 10 * ON_A_PAGE
    assert page_of(late.id) in read(onlooker, LIST, q=late.bank_transaction_id[3:12].lower())


def test_equals_stand_in_the_order_of_their_age(till: Till, onlooker: Client) -> None:
    first, second = till.late(), till.late()
    for order, expected in (("2", [first, second]), ("-2", [second, first]), ("-1", [second, first])):
        page = read(onlooker, LIST, o=order)
        places = [page.index(page_of(receipt.id)) for receipt in expected]
        assert places == sorted(places), order


def test_what_waits_is_listed_with_the_merchant_that_is_opened_for_its_biller_later(till: Till) -> None:
    odd = till.unmatched(biller_id="099400016550100")
    assert Waiting.objects.get(pk=odd.id).merchant is None
    later = open_shop("Later").merchant
    for biller_id, expected in (("099400016550100", later), ("099400016550101", None)):
        later.biller_id = biller_id
        later.save()
        assert Waiting.objects.get(pk=odd.id).merchant == expected
        assert not differences()


def test_a_message_that_contradicts_is_listed_with_the_payment_that_its_money_gets(till: Till) -> None:
    notice = till.bank.notice(till.shop.qr_code(), reference1="NOBODYKNOWSTHIS00000")
    till.bank.post(notice)
    till.bank.post(notice | {"amount": "1.23"})
    payment_id = till.shop.qr_code()["payment_id"]
    decide("attach", Receipt.objects.get(), payment_id=payment_id)
    listed = Waiting.objects.get()
    assert (listed.why, listed.payment_id, listed.merchant) == ("conflict", payment_id, till.shop.merchant)
    assert payment_id.upper() in listed.words


# --- at the same moment ------------------------------------------------------------------------------------

races = pytest.mark.django_db(transaction=True)
ROUNDS = 10
# Whether anybody waits to change the list.
LISTING = """
SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'receipts_waiting'::regclass AND NOT granted)
"""


def dismissing(notice: Notice) -> Callable[[], Any]:
    return partial(acts.dismiss, notice.id, by="malee", why=WHY, now=clock.now())


@races
def test_a_message_is_dismissed_as_its_money_gets_a_payment_and_is_listed_no_more() -> None:
    till = Till(open_shop("Race"), BankCaller(new_client()))
    for _ in range(ROUNDS):
        notice = till.bank.notice(till.shop.qr_code(), reference1="NOBODYKNOWSTHIS00000")
        for changes in ({}, {"amount": "1.23"}):
            till.bank.post(notice | changes)
        receipt = Receipt.objects.get(bank_transaction_id=notice["transaction_id"])
        payment_id = till.shop.qr_code()["payment_id"]
        at_once(
            partial(decide, "attach", receipt, payment_id=payment_id),
            dismissing(Notice.objects.get(receipt=receipt, verdict="conflict")),
        )
        assert not Waiting.objects.exists()
    assert not differences()


@races
def test_money_is_decided_about_as_its_biller_is_connected_and_is_listed_no_more() -> None:
    till = Till(open_shop("Race"), BankCaller(new_client()))
    later = open_shop("Later").merchant
    for number in range(ROUNDS):
        biller_id = f"0994000165502{number:02}"
        odd = till.unmatched(biller_id=biller_id)
        later.biller_id = biller_id
        at_once(later.save, partial(decide, "send_back_by_hand", odd, bank_reference="b"))
        assert not Waiting.objects.exists()
    assert not differences()


@races
def test_messages_that_contradict_each_other_at_once_are_listed_with_what_the_money_is_for() -> None:
    till = Till(open_shop("Race"), BankCaller(new_client()))
    for _ in range(ROUNDS):
        notice = till.bank.notice(till.shop.qr_code())
        at_once(*(partial(till.bank.post, notice | {"amount": f"{baht}.00"}) for baht in range(1, 5)))
        assert not differences()


@races
def test_money_that_comes_as_its_biller_is_connected_is_listed_with_the_merchant() -> None:
    till = Till(open_shop("Race"), BankCaller(new_client()))
    later = open_shop("Later").merchant
    later.biller_id = "099400016550300"
    notice = till.bank.notice(till.shop.qr_code(), biller_id=later.biller_id)
    saved, told = Event(), Event()

    def connect() -> None:
        with transaction.atomic():
            later.save()
            saved.set()
            wait_until(lambda: told.is_set() or rows.run(LISTING, []).fetchone() == (True,), 60)

    def tell() -> None:
        assert saved.wait(60)
        till.bank.post(notice)
        told.set()

    at_once(connect, tell)
    assert Waiting.objects.get().merchant == later
