"""The list of exceptions: reason, age, amount and best candidate; and the page of one exception."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
import time_machine
from django.contrib.admin.utils import quote
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from banks import ReportedTransfer, TransferResult
from core import clock, ids
from core.console import admin_lists
from reconciliation.exceptions import admin
from reconciliation.matching.order_completion import HANDLERS
from reconciliation.models import (
    BankNotification,
    BankTransaction,
    ReconciliationException,
    listing,
)
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import (
    EXCEPTIONS_URL,
    Seller,
    decide,
    exception_url,
    get_page,
    reversal_of,
    staff_client,
)
from tests.refunds.builders import RefundShop, send_due_refunds
from tests.transfers.builders import Bank
from transfers import services as transfers

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(seconds=-5), "less than a second"),
        (timedelta(), "less than a second"),
        (timedelta(milliseconds=999), "less than a second"),
        (timedelta(seconds=1), "1 second"),
        (timedelta(seconds=59), "59 seconds"),
        (timedelta(minutes=4, seconds=59), "4 minutes"),
        (timedelta(hours=3, minutes=59), "3 hours"),
        (timedelta(days=1), "1 day"),
        (timedelta(days=400), "400 days"),
    ],
)
def test_format_duration_uses_the_largest_unit(length: timedelta, words: str) -> None:
    assert clock.format_duration(length) == words


def test_exception_list_explains_each_exception(seller: Seller, viewer: Client) -> None:
    paid = seller.shop.qr_code()
    first = seller.report(paid)
    seller.report(paid)
    seller.unmatched()
    seller.mismatch(149_900)
    seller.mismatch(150_001)
    seller.late()
    seller.report(seller.shop.qr_code(), type="reversal")
    page = get_page(viewer, EXCEPTIONS_URL)
    for sentence in (
        f"Paid twice: first paid by {first.bank_reference} on ",
        "Unknown reference.",
        "1.00 THB too little, 1,500.00 THB expected.",
        "0.01 THB too much, 1,500.00 THB expected.",
        "Paid after expiry: 4 minutes after the code had expired.",
        "Reversed by the bank, but the money is no longer here.",
    ):
        assert sentence in page


def test_money_for_a_failed_payment_is_explained(seller: Seller, viewer: Client) -> None:
    code = seller.shop.qr_code()
    seller.report(code, type="decline")
    seller.report(code)
    text = "Paid after the payment had failed: the bank declined the payment."
    assert text in get_page(viewer, EXCEPTIONS_URL)


def test_reversal_of_a_manual_return_is_explained(seller: Seller, viewer: Client) -> None:
    credit = seller.duplicate()
    decide("record_manual_return", credit.id, bank_reference="V-77", note="counter")
    seller.bank.post(reversal_of(credit))
    reversal = BankTransaction.objects.get(kind="reversal")
    assert "was sent back manually" in get_page(viewer, EXCEPTIONS_URL)
    assert "(V-77). If the bank means that, dismiss this" in get_page(viewer, exception_url(reversal.id))


def test_bank_messages_are_exceptions_until_dismissed(seller: Seller, viewer: Client) -> None:
    notification = seller.bank.notification(seller.shop.qr_code())
    seller.bank.post(notification)
    seller.bank.post(notification | {"amount": "1.00"})
    seller.bank.post(b"garbage")
    page = get_page(viewer, EXCEPTIONS_URL)
    assert f"The bank reported transaction {notification['transaction_id']} differently before." in page
    assert "A bank message that cannot be read." in page
    for waiting in BankNotification.objects.exclude(result="new"):
        decide("dismiss", waiting.id)
    assert "0 exceptions" in get_page(viewer, EXCEPTIONS_URL)


def test_returned_refunds_are_exceptions(
    shop: Shop, bank: SandboxBankClient, viewer: Client, served_by: Callable[..., Bank]
) -> None:
    served_by(sends=[TransferResult("succeeded")])
    refund_shop = RefundShop(shop, bank)
    refund = refund_shop.refund(refund_shop.paid())
    send_due_refunds()
    back = ReportedTransfer(refund["refund_id"], "returned")
    transfers.apply_notification(back, HANDLERS["ref"], now=clock.now())
    assert "A refund of 1,500.00 THB came back from the bank." in get_page(viewer, EXCEPTIONS_URL)
    assert "Returned at" in get_page(viewer, exception_url(refund["refund_id"]))


def test_exception_list_shows_oldest_first_and_red_after_a_day(
    seller: Seller, viewer: Client, noon: datetime
) -> None:
    with time_machine.travel(noon, tick=False) as now:
        old = seller.unmatched()
        now.move_to(noon + timedelta(days=2))
        new = seller.mismatch()
        now.move_to(noon + timedelta(days=2, hours=3))
        viewer = staff_client("malee", "view_banktransaction")
        page = get_page(viewer, EXCEPTIONS_URL)
    assert page.index(exception_url(old.id)) < page.index(exception_url(new.id))
    assert 'color: var(--error-fg)">2 days</span>' in page
    assert page.count("var(--error-fg)") == 1
    assert ">3 hours<" in page


def test_exception_row_shows_merchant_amount_and_best_candidate(seller: Seller, viewer: Client) -> None:
    code = seller.shop.qr_code(amount=1_234_500)
    seller.report(code, reference1="NOBODYKNOWSTHIS00000")
    page = get_page(viewer, EXCEPTIONS_URL)
    for shown in ("12,345.00 THB", "Somtam House", "sandbox", code["payment_id"], "same amount, code made"):
        assert shown in page


def listed(client: Client, **query: str) -> set[str]:
    page = get_page(client, EXCEPTIONS_URL, **query)
    return {row.id for row in ReconciliationException.objects.all() if exception_url(row.id) in page}


def test_exception_list_filters_by_reason_merchant_bank_and_age(
    seller: Seller, other_shop: Shop, bank: SandboxBankClient, noon: datetime
) -> None:
    with time_machine.travel(noon, tick=False) as now:
        late, theirs = seller.late(), Seller(other_shop, bank).mismatch()
        now.move_to(noon + timedelta(hours=2))
        unmatched = seller.unmatched()
        client = staff_client("malee", "view_banktransaction")
        assert listed(client, reason__exact="late") == {late.id}
        assert listed(client, merchant=other_shop.merchant.id) == {theirs.id}
        assert listed(client, bank="scb") == set()
        assert listed(client, bank="sandbox") == listed(client) == {late.id, theirs.id, unmatched.id}
        assert listed(client, age="hour") == {late.id, theirs.id}
        assert listed(client, age="day") == set()


def test_exception_search_finds_references_ids_and_amounts(seller: Seller, viewer: Client) -> None:
    unmatched, mismatch = seller.unmatched(), seller.mismatch(123_456)
    for text in ("knowsthis", unmatched.bank_reference, unmatched.id, "1,500.00", "1500", "1500 thb"):
        assert listed(viewer, q=text) == {unmatched.id}, text
    for text in ("1234.56", "1,234.56 THB", mismatch.payment_id):
        assert listed(viewer, q=text) == {mismatch.id}, text
    assert listed(viewer, q="nothing like it") == set()


def test_exception_search_reads_the_texts_of_the_newest_exceptions_only(
    seller: Seller, viewer: Client, noon: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin, "FILTERED_ROWS", 1)
    with time_machine.travel(noon, tick=False) as now:
        older = seller.mismatch(123_456)
        now.move_to(noon + timedelta(minutes=1))
        newer = seller.unmatched()
        assert listed(viewer, q=newer.bank_reference[:12]) == {newer.id}
        assert listed(viewer, q=older.bank_reference) == set()
        for text in (older.id, "1234.56"):
            assert listed(viewer, q=text) == {older.id}, text
        assert "newest 1 exceptions" in get_page(viewer, EXCEPTIONS_URL, q="x")


def test_exception_search_finds_the_reference_of_the_merchant(seller: Seller, viewer: Client) -> None:
    first, second = seller.shop.qr_code(reference="Order-17"), seller.shop.qr_code(reference="order-18")
    bank_transaction, stranger = seller.report(first, satang=100), seller.unmatched()
    assert listed(viewer, q="order-17") == {bank_transaction.id}
    decide("attach", stranger.id, payment_id=second["payment_id"], note="She called.")
    assert listed(viewer, q="order-18") == set()
    assert listed(viewer, q="order") == {bank_transaction.id}


def test_longer_exception_list_takes_no_more_queries(seller: Seller, viewer: Client) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as asked:
            get_page(viewer, EXCEPTIONS_URL)
        return len(asked)

    def one_of_each() -> None:
        seller.unmatched()
        seller.mismatch()
        seller.duplicate()
        seller.late()
        seller.bank.post(b"garbage")

    one_of_each()
    few = statements()
    for _ in range(6):
        one_of_each()
    assert statements() == few
    assert few <= 21


def test_row_without_its_subject_shows_its_reason_and_amount(seller: Seller, malee: Client) -> None:
    """A fault of our own: the other rows and their actions must stay usable."""
    bank_transaction = seller.late()
    now = clock.now()
    lost = ReconciliationException(
        id=ids.new("btx_", now), reason="late", amount=12_345, bank="sandbox", opened_at=now
    )
    listing.show([lost])
    assert "123.45 THB" in get_page(malee, EXCEPTIONS_URL)
    chosen = {"action": "accept", "_selected_action": [bank_transaction.id, lost.id], "index": "0"}
    page = malee.post(EXCEPTIONS_URL, chosen, follow=True).content.decode()
    assert all(part in page for part in ("1,500.00 THB", "123.45 THB", "It does not exist."))
    listing.close(lost.id)


def test_exception_list_is_paginated(seller: Seller, viewer: Client) -> None:
    for _ in range(60):
        seller.bank.post(b"garbage")
    first, second = get_page(viewer, EXCEPTIONS_URL), get_page(viewer, EXCEPTIONS_URL, p="2")
    assert first.count("cannot be read") == 50
    assert second.count("cannot be read") == 10


def test_matched_money_is_not_an_exception(seller: Seller, viewer: Client) -> None:
    seller.report(seller.shop.qr_code())
    seller.report(seller.shop.qr_code(), type="decline")
    assert not ReconciliationException.objects.exists()
    assert "0 exceptions" in get_page(viewer, EXCEPTIONS_URL)


def test_exception_page_shows_all_details(seller: Seller, viewer: Client) -> None:
    bank_transaction = seller.mismatch()
    page = get_page(viewer, exception_url(bank_transaction.id))
    for shown in (
        "1.00 THB too little", "1,499.00 THB", "1,500.00 THB", bank_transaction.bank_reference,
        bank_transaction.reference1, bank_transaction.biller_id, "Somchai Jaidee",
        "014 Siam Commercial Bank", "xxxxxx7890",
        "callback", "same reference", bank_transaction.payment_id, "Somtam House",
    ):  # fmt: skip
        assert shown in page, shown
    assert "1234567890" not in page


def test_exception_page_shows_the_merchant_reference_of_payments(seller: Seller, viewer: Client) -> None:
    first, second = seller.shop.qr_code(reference="order-17"), seller.shop.qr_code(reference="order-18")
    page = get_page(viewer, exception_url(seller.report(first, satang=100).id))
    assert page.count("order-17") == 2  # what it named, and what is known of that
    assert "order-18" in get_page(
        viewer, exception_url(seller.report(second, reference1="NOBODYKNOWSTHIS00000").id)
    )


def test_exception_pages_of_reversal_and_credit_have_mutual_links(seller: Seller, viewer: Client) -> None:
    credit = seller.report(seller.shop.qr_code())
    seller.bank.post(reversal_of(credit, 150_001))
    reversal = BankTransaction.objects.get(kind="reversal")
    assert f'{exception_url(credit.id)}">1,500.00 THB, paid its payment</a>' in get_page(
        viewer, exception_url(reversal.id)
    )
    assert f'{exception_url(reversal.id)}">1,500.01 THB, unknown reference</a>' in get_page(
        viewer, exception_url(credit.id)
    )


def test_exception_times_are_shown_in_bangkok_time(seller: Seller, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False):
        bank_transaction = seller.mismatch()
        page = get_page(staff_client("malee", "view_banktransaction"), exception_url(bank_transaction.id))
    assert "2026-11-21 12:00:00, less than a second ago" in page


def test_raw_bank_message_is_shown_without_account_numbers(seller: Seller, viewer: Client) -> None:
    seller.bank.post(b'{"account": "1234567890", "hello": "world"}')
    page = get_page(viewer, exception_url(BankNotification.objects.get().id))
    assert "world" in page
    assert "1234567890" not in page


def test_conflicting_bank_message_is_shown_next_to_the_earlier_one(seller: Seller, viewer: Client) -> None:
    notification = seller.bank.notification(seller.shop.qr_code())
    seller.bank.post(notification)
    seller.bank.post(notification | {"amount": "1.23"})
    page = get_page(viewer, exception_url(BankNotification.objects.get(result="conflict").id))
    assert "1500.00" in page
    assert "1.23" in page


def test_payer_text_is_escaped_in_the_exception_list(seller: Seller, viewer: Client) -> None:
    hostile = "<script>alert(1)</script>"
    bank_transaction = seller.unmatched(payer_name=hostile, reference1=hostile, transaction_id="<img/src=x>")
    seller.bank.post(b"<script>alert(2)</script>")
    pages = [get_page(viewer, EXCEPTIONS_URL), get_page(viewer, EXCEPTIONS_URL, q=hostile)]
    pages += [get_page(viewer, exception_url(row.pk)) for row in ReconciliationException.objects.all()]
    for page in pages:
        assert "<script>alert" not in page
        assert "<img/src" not in page
    assert "&lt;script&gt;alert(1)" in get_page(viewer, exception_url(bank_transaction.id))


def test_view_permission_shows_the_list(seller: Seller) -> None:
    bank_transaction = seller.mismatch()
    client = staff_client("malee", "view_banktransaction")
    assert exception_url(bank_transaction.id) in get_page(client, EXCEPTIONS_URL)
    assert bank_transaction.id in get_page(client, exception_url(bank_transaction.id))
    assert "exceptions" in get_page(client, "/admin/").lower()


def test_first_page_shows_the_number_of_open_exceptions(
    seller: Seller, viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "<span>Exceptions</span><strong>none</strong>" in get_page(viewer, "/admin/")
    seller.mismatch()
    assert "<strong>1 waits, the oldest for" in get_page(viewer, "/admin/")
    seller.unmatched()
    assert f'href="{EXCEPTIONS_URL}?mode=test"><span>Exceptions</span><strong>2 wait, ' in get_page(
        viewer, "/admin/"
    )
    monkeypatch.setattr(admin_lists, "MAX_COUNTED", 2)
    assert "<strong>2+ wait, " in get_page(viewer, "/admin/")


def test_staff_without_permission_see_no_exceptions(seller: Seller, client: Client) -> None:
    bank_transaction = seller.mismatch()
    nobody = staff_client("nobody", "view_payment")
    assert "Exceptions" not in get_page(nobody, "/admin/")
    for path in (EXCEPTIONS_URL, exception_url(bank_transaction.id)):
        assert nobody.get(path).status_code == 403
        assert client.get(path).status_code == 302


@pytest.mark.parametrize("unknown", ["btx_" + "0" * 27, "x", "<script>"])
def test_unknown_exception_is_not_found(viewer: Client, unknown: str) -> None:
    assert viewer.get(exception_url(unknown)).status_code == 404


def test_matched_bank_transaction_has_a_page(seller: Seller, viewer: Client) -> None:
    bank_transaction = seller.report(seller.shop.qr_code())
    assert "Paid its payment." in get_page(viewer, exception_url(bank_transaction.id))
    record = get_page(viewer, f"/admin/reconciliation/banktransaction/{quote(bank_transaction.id)}/change/")
    assert exception_url(bank_transaction.id) in record


def test_open_exceptions_are_counted_up_to_a_limit(
    seller: Seller, viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        seller.unmatched()
        seller.bank.post(b"garbage")
    assert "or more" not in get_page(viewer, EXCEPTIONS_URL)
    monkeypatch.setattr(admin_lists, "MAX_COUNTED", 2)
    monkeypatch.setattr(admin.ReconciliationExceptionAdmin, "list_per_page", 1)
    page = get_page(viewer, EXCEPTIONS_URL)
    assert "The first 2 rows." in page
    assert "2 exceptions" in page
    shown = viewer.get("/metrics").content.decode()
    assert 'bank_transaction_exceptions{money="sandbox"} 2.0' in shown
    assert 'notification_exceptions{money="sandbox"} 2.0' in shown
