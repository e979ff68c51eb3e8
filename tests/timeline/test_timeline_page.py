"""The timeline on the payment's page in the console, and the plans of its statements."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.test import Client
from django.urls import reverse

from banks import TransferResult
from core import clock
from payments.models import Payment
from reconciliation.models import BankTransaction
from tests.conftest import SandboxBankClient, Shop
from tests.console.lists.query_plans import unbounded
from tests.reconciliation.exceptions.test_complete_orders_in_console import overdue_transfer, run_action
from tests.refunds.builders import RefundShop, send_due_refunds
from tests.timeline.builders import (
    CLERK,
    WHY,
    add_attempts,
    bank_inquiry,
    only_entry,
    report_by_statement,
    resolve,
)
from tests.webhooks.builders import PAYMENT_SUCCEEDED, make_endpoint
from timeline import pages
from timeline.entries import PaymentContext

pytestmark = pytest.mark.slow
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def code(shop: Shop, bank: SandboxBankClient) -> dict[str, Any]:
    """A code that was paid."""
    make_endpoint(shop, events=[PAYMENT_SUCCEEDED])
    code = shop.qr_code()
    bank.notify(code)
    return code


@pytest.fixture
def paid(code: dict[str, Any]) -> str:
    """Its payment."""
    return str(code["payment_id"])


def address(payment_id: str) -> str:
    """Return the URL of the payment page, escaped as in the console's lists."""
    return reverse("admin:payments_payment_change", args=[quote(payment_id)])


def read(client: Client, payment_id: str, query: str = "") -> str:
    response = client.get(address(payment_id) + query)
    assert response.status_code == 200
    return response.content.decode()


def test_staff_see_actor_and_note_but_no_account_number(admin_client: Client, paid: str) -> None:
    resolve(BankTransaction.objects.get(), "accepted", payment_id=paid)
    text = read(admin_client, paid)
    assert CLERK in text and WHY in text and "1,500.00 THB" in text
    assert "xxxxxx7890" in text and "1234567890" not in text


def test_manual_completion_has_staff_as_actor(
    admin_client: Client, shop: Shop, bank: SandboxBankClient, served_by: Callable[..., Any]
) -> None:
    served_by(sends=[TransferResult("unknown")], inquiries=[TransferResult("unknown")])
    refund_shop = RefundShop(shop, bank)
    paid = refund_shop.paid()
    refund = refund_shop.refund(paid)
    send_due_refunds()
    run_action(admin_client, "never_arrived", overdue_transfer())
    failed = only_entry(shop, paid, "refund.failed")
    assert (failed["actor"], failed["details"]["refund_id"]) == ("staff", refund["refund_id"])
    assert failed["request_id"] in read(admin_client, paid)
    assert "staff:admin" in read(admin_client, paid)


def test_timeline_marks_the_sources_that_reported(
    admin_client: Client, code: dict[str, Any], paid: str
) -> None:
    report_by_statement(code)
    text = read(admin_client, paid)
    assert "<strong>callback ✓</strong>, no inquiry, <strong>statement ✓</strong>." in text


def test_unpaid_payment_has_no_source(admin_client: Client, shop: Shop) -> None:
    text = read(admin_client, shop.qr_code()["payment_id"])
    assert "no callback, no inquiry, no statement." in text and "✓" not in text


def test_bank_entry_links_to_transaction_page(admin_client: Client, paid: str) -> None:
    (page,) = set(
        re.findall(r'href="(/admin/reconciliation/reconciliationexception/[^"]+)"', read(admin_client, paid))
    )
    assert paid in admin_client.get(page).content.decode()


def test_timeline_amounts_are_shown_in_baht(admin_client: Client, paid: str) -> None:
    text = read(admin_client, paid)
    timeline = text[text.index('id="timeline"') :]  # the page also shows messages as they were sent
    assert "150000" not in timeline and "Satang" not in text
    assert text.count("1,500.00 THB") >= 3 and "0.00 THB" in text


def test_timeline_times_are_bangkok_time_newest_first(admin_client: Client, paid: str) -> None:
    bank_inquiry(
        paid,
        "nothing",
        answered_at=clock.now().replace(year=2025, month=12, day=31, hour=17, minute=0, second=1),
    )
    text = read(admin_client, paid)
    assert "2026-01-01 00:00:01" in text
    assert text.index("payment.succeeded") < text.index("payment.pending") < text.index("bank.inquiry")


def test_staff_notes_are_escaped_on_the_timeline(admin_client: Client, paid: str) -> None:
    resolve(BankTransaction.objects.get(), "accepted", by=SCRIPT, payment_id=paid)
    text = read(admin_client, paid)
    assert SCRIPT not in text and "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_long_timelines_are_paged(admin_client: Client, paid: str) -> None:
    add_attempts(paid, 60)
    first, second = read(admin_client, paid), read(admin_client, paid, "?from=50")
    assert "63 entries." in first and 'href="?from=50#timeline"' in first
    assert 'href="?from=0#timeline"' in second and "payment.pending" in second
    assert "payment.pending" not in first.partition('id="timeline"')[2].partition("</fieldset>")[0]
    for nonsense in ("?from=x", "?from=-1", "?from=" + "9" * 30):
        assert read(admin_client, paid, nonsense).count('<small class="quiet">number:</small>') == 50


def test_timeline_needs_view_payment_permission(client: Client, paid: str) -> None:
    client.force_login(User.objects.create_user("visitor", is_staff=True))
    assert client.get(address(paid)).status_code == 403


def test_unknown_payment_redirects_to_index(admin_client: Client) -> None:
    assert admin_client.get(address("pay_x")).status_code == 302


BANK_TRANSACTION, REFUND, RETURN = (
    f"{prefix}_0oDFPazyVRoGTTDIuRe7QK7m3b4" for prefix in ("btx", "ref", "rtn")
)


def drop_delivery_queues() -> None:
    """Drop, until the test ends, the indexes by the state of a delivery.

    If other tests left statistics of many events and few deliveries, PostgreSQL would read them whole.
    """
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX delivery_due, delivery_due_manual, delivery_held, delivery_filtered")


@pytest.mark.slow
def test_timeline_queries_use_an_index(shop: Shop) -> None:
    drop_delivery_queues()
    payment = Payment(pk=shop.qr_code()["payment_id"], merchant=shop.merchant, status="refunded", amount=1)
    payment.created_at = payment.expires_at = clock.now()
    ids = ([BANK_TRANSACTION], [REFUND], [RETURN], [BANK_TRANSACTION])
    subject = PaymentContext(payment, *ids, clock.now(), with_notes=True)
    sources = pages.entry_sources(subject)
    assert len(sources) > 30
    for source in sources:
        try:
            sql, params = source.rows.order_by().query.sql_with_params()
        except EmptyResultSet:  # it asks the database nothing
            continue
        assert unbounded(sql, params=params) == [], source
