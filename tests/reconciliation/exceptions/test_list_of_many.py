"""A page of the list reads only its own rows, however many exceptions are open or resolved."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client

from core import clock, ids
from core.console import admin_lists
from merchants.models import Merchant
from reconciliation.models import (
    BankNotification,
    BankTransaction,
    BankTransactionKind,
    MatchResult,
    ReconciliationException,
    Resolution,
    ResolutionType,
    listing,
)
from tests.audit import differences
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop, new_client, open_shop
from tests.reconciliation.builders import (
    EXCEPTIONS_URL,
    NOTE,
    Seller,
    decide,
    exception_url,
    get_page,
)

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
MANY, COUNTED, ON_A_PAGE = 1_000, 100, 50
READ = """
SELECT coalesce(sum(seq_tup_read + idx_tup_fetch), 0) FROM pg_stat_xact_user_tables
WHERE relname ~ '^(reconciliation|refunds|merchants)_'
"""


@pytest.fixture
def counting_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_lists, "MAX_COUNTED", COUNTED)


def rows_read() -> int:
    """Rows read so far in this transaction, of the tables behind the list."""
    with connection.cursor() as cursor:
        cursor.execute(READ)
        return int(cursor.fetchone()[0])


def rows_read_by(client: Client, path: str, **query: str) -> int:
    """Return the number of rows that a page reads."""
    before = rows_read()
    get_page(client, path, **query)
    return rows_read() - before


def analyze() -> None:
    """Update the statistics. Without seqscan, PostgreSQL reads a whole table only if it has no index."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        cursor.execute("SET LOCAL enable_seqscan = off")


def random_names(count: int) -> list[str]:
    return [ids.random_text(20) for _ in range(count)]


def add_many(merchant: Merchant) -> None:
    """Add MANY open exceptions and as many dismissed messages."""
    now = clock.now()
    held = BankTransaction.objects.bulk_create(
        BankTransaction(
            id=ids.new("btx_", now),
            bank="sandbox",
            bank_reference=name,
            kind=BankTransactionKind.CREDIT,
            biller_id=merchant.biller_id,
            reference1="NOBODYKNOWSTHIS00000",
            amount=150_000,
            paid_at=now - timedelta(days=2),
            received_at=now - timedelta(days=2),
            merchant=merchant,
            match_result=MatchResult.DUPLICATE,
            matched_at=now,
        )
        for name in random_names(MANY)
    )
    listing.show([each.listed() for each in held])
    reported = [
        BankNotification(
            id=ids.new("ntf_", now),
            bank="sandbox",
            result="unreadable",
            body_sealed="x",
            received_at=now - timedelta(days=9),
        )
        for _ in range(MANY)
    ]
    BankNotification.objects.bulk_create(reported)
    Resolution.objects.bulk_create(
        Resolution(
            subject_id=notification.id,
            type=ResolutionType.DISMISSED,
            actor="staff:malee",
            note=NOTE,
            created_at=now,
        )
        for notification in reported
    )
    analyze()


@pytest.mark.usefixtures("counting_ends_early")
def test_exception_list_page_reads_only_the_shown_rows(shop: Shop, viewer: Client) -> None:
    add_many(shop.merchant)
    assert ReconciliationException.objects.count() == MANY
    asked: list[dict[str, str]] = [
        {}, {"p": "2"}, {"age": "day"}, {"age": "week"}, {"bank": "sandbox"}, {"bank": "scb"},
        {"mode": "test"}, {"mode": "live"},
        {"reason__exact": "duplicate"}, {"reason__exact": "late"}, {"merchant": shop.merchant.id},
        *({"o": order} for order in ("0", "-0", "1", "-1", "2", "-2")),
    ]  # fmt: skip
    for query in asked:
        assert rows_read_by(viewer, EXCEPTIONS_URL, **query) < 10 * ON_A_PAGE, query
    assert rows_read_by(viewer, "/admin/") < 10 * ON_A_PAGE


def test_open_exceptions_are_found_by_index_among_many_resolved(seller: Seller, viewer: Client) -> None:
    add_many(seller.shop.merchant)
    waiting = ReconciliationException.objects.values_list("pk", flat=True)
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM reconciliation_reconciliationexception"
        )  # as if all of it were decided too
    late = seller.late()
    assert list(waiting) == [late.id]
    assert rows_read_by(viewer, EXCEPTIONS_URL) < 10 * ON_A_PAGE
    assert exception_url(late.id) in get_page(viewer, EXCEPTIONS_URL, q=late.bank_reference[3:12].lower())


def test_exceptions_of_equal_amount_are_sorted_by_age(seller: Seller, viewer: Client) -> None:
    first, second = seller.late(), seller.late()
    for order, expected in (("2", [first, second]), ("-2", [second, first]), ("-1", [second, first])):
        page = get_page(viewer, EXCEPTIONS_URL, o=order)
        places = [page.index(exception_url(each.id)) for each in expected]
        assert places == sorted(places), order


def test_exception_gets_the_merchant_that_is_connected_later(seller: Seller, viewer: Client) -> None:
    held = seller.unmatched(biller_id="099400016550100")
    later = open_shop("Later").merchant
    for biller_id, is_theirs in (("", False), ("099400016550100", True), ("099400016550101", False)):
        later.biller_id = biller_id
        later.save()
        of_merchant = get_page(viewer, EXCEPTIONS_URL, merchant=later.id)
        assert (exception_url(held.id) in of_merchant) == is_theirs
        assert ("Later (test)" in get_page(viewer, EXCEPTIONS_URL)) == is_theirs
        assert not differences()


def test_search_for_a_payment_finds_the_message_that_contradicts_its_money(
    seller: Seller, viewer: Client
) -> None:
    notification = seller.bank.notification(seller.shop.qr_code(), reference1="NOBODYKNOWSTHIS00000")
    seller.bank.post(notification)
    seller.bank.post(notification | {"amount": "1.23"})
    payment_id = seller.shop.qr_code(reference="order 17")["payment_id"]
    decide("attach", BankTransaction.objects.get(), payment_id=payment_id)
    listed = ReconciliationException.objects.get()
    assert listed.reason == "conflict"
    found: list[dict[str, str]] = [
        {"q": payment_id}, {"q": "order 17"}, {"q": notification["transaction_id"]},
        {"merchant": seller.shop.merchant.id},
    ]  # fmt: skip
    for query in found:
        assert exception_url(listed.id) in get_page(viewer, EXCEPTIONS_URL, **query), query
    assert exception_url(listed.id) not in get_page(viewer, EXCEPTIONS_URL, q="order 18")


# --- at the same moment ------------------------------------------------------------------------------------

races = pytest.mark.django_db(transaction=True)
ROUNDS = 10


def dismissing(notification: BankNotification) -> Callable[[], Any]:
    return partial(decide, "dismiss", notification)


@races
def test_bank_message_dismissed_during_attach_leaves_the_exception_list() -> None:
    seller = Seller(open_shop("Race"), SandboxBankClient(new_client()))
    for _ in range(ROUNDS):
        notification = seller.bank.notification(seller.shop.qr_code(), reference1="NOBODYKNOWSTHIS00000")
        for changes in ({}, {"amount": "1.23"}):
            seller.bank.post(notification | changes)
        bank_transaction = BankTransaction.objects.get(bank_reference=notification["transaction_id"])
        payment_id = seller.shop.qr_code()["payment_id"]
        run_concurrently(
            partial(decide, "attach", bank_transaction, payment_id=payment_id),
            dismissing(BankNotification.objects.get(bank_transaction=bank_transaction, result="conflict")),
        )
        assert not ReconciliationException.objects.exists()
    assert not differences()


@races
def test_concurrent_conflicting_messages_are_listed() -> None:
    seller = Seller(open_shop("Race"), SandboxBankClient(new_client()))
    for _ in range(ROUNDS):
        notification = seller.bank.notification(seller.shop.qr_code())
        run_concurrently(
            *(partial(seller.bank.post, notification | {"amount": f"{baht}.00"}) for baht in range(1, 5))
        )
        assert not differences()


@races
def test_money_received_during_biller_connection_waits_for_nobody_and_gets_the_merchant(
    viewer: Client,
) -> None:
    seller = Seller(open_shop("Race"), SandboxBankClient(new_client()))
    later = open_shop("Later").merchant
    later.biller_id = "099400016550300"
    notification = seller.bank.notification(seller.shop.qr_code(), biller_id=later.biller_id)
    with transaction.atomic():
        later.save()
        run_concurrently(partial(seller.bank.post, notification))
        held = BankTransaction.objects.get()
        assert exception_url(held.id) in get_page(viewer, EXCEPTIONS_URL, merchant=later.id)
    assert not differences()
