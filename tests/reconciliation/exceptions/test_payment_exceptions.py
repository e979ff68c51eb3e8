"""A payment shows its exceptions: in the API, on its page and in its timeline."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from core import clock, money
from payments import expiry_sweep, shapes
from payments.models import PaymentException
from reconciliation.models import BankTransaction
from tests.reconciliation.builders import Seller, decide, get_page

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]


def exceptions_of(seller: Seller, code: dict[str, Any]) -> list[tuple[str, int, str]]:
    """Return the exceptions of a payment, equal under both paths, read and listed."""
    payment_id = code["payment_id"]
    found = [seller.shop.get(f"{path}/payments/{payment_id}").json() for path in ("/Thai/v1", "/v1")]
    for path in ("/Thai/v1", "/v1"):
        listed = seller.shop.get(f"{path}/payments").json()["payments"]
        found += [each for each in listed if each["payment_id"] == payment_id]
    assert [each["exceptions"] for each in found] == [found[0]["exceptions"]] * 4
    return [(each["reason"], each["amount"], each["status"]) for each in found[0]["exceptions"]]


def test_overpaid_or_expired_payment_shows_the_exceptions(seller: Seller, admin_client: Client) -> None:
    """Double the amount arrives, and then the code expires."""
    with time_machine.travel(clock.now(), tick=False) as machine:
        code = seller.shop.qr_code(expiry_minutes=1)
        bank_transaction = seller.report(code, satang=300_000)
        machine.shift(timedelta(minutes=2))
        expiry_sweep.expire_due(now=clock.now())
        reported = seller.shop.payment(code["payment_id"])
        assert (reported["status"], reported["amount_received"]) == ("expired", 300_000)
        assert exceptions_of(seller, code) == [("amount_mismatch", 300_000, "open")]
        timeline = seller.shop.get(f"/v1/payments/{code['payment_id']}/timeline").json()
        assert timeline["sources"] == ["callback"]
        notification = next(entry for entry in timeline["timeline"] if entry["type"] == "bank.notification")
        assert notification["details"]["amount"] == 300_000
        page = get_page(admin_client, f"/admin/payments/payment/{code['payment_id']}/change/")
    assert "<strong>callback ✓</strong>" in page
    assert money.display(300_000) in page and "in suspense" in page.lower()
    assert f"/admin/reconciliation/reconciliationexception/{bank_transaction.id}/change/" in page.replace(
        "_5F", "_"
    )


def test_exception_status_follows_the_resolution(seller: Seller) -> None:
    code = seller.shop.qr_code()
    seller.report(code)
    first, second, third = (seller.report(code) for _ in range(3))
    assert exceptions_of(seller, code) == [("duplicate", 150_000, "open")] * 3
    decide("record_manual_return", first, bank_reference="counter 7")
    other = seller.shop.qr_code()
    decide("attach", second, payment_id=other["payment_id"])
    seller.reverse(third)
    assert [status for *_, status in exceptions_of(seller, code)] == ["sent_back", "attached", "taken_back"]
    assert seller.shop.payment(code["payment_id"])["amount_received"] is None
    assert exceptions_of(seller, other) == []


def test_money_held_for_an_unpaid_payment_is_its_amount_received(seller: Seller) -> None:
    code = seller.shop.qr_code()
    seen = [seller.shop.payment(code["payment_id"])["amount_received"]]
    for satang in (50_000, 70_000):
        seller.report(code, satang=satang)
        seen.append(seller.shop.payment(code["payment_id"])["amount_received"])
    assert seen == [None, 50_000, 120_000]


def test_money_that_came_twice_is_not_in_amount_received(seller: Seller) -> None:
    """`amount_received` of a paid payment is what history, balance and refunds use."""
    bank_transaction = seller.duplicate()
    shown = seller.shop.payment(str(bank_transaction.payment_id))
    assert (shown["status"], shown["amount_received"]) == ("succeeded", None)
    assert [each["exception_id"] for each in shown["exceptions"]] == [bank_transaction.id]


def test_accepted_late_money_stays_on_the_payment(seller: Seller) -> None:
    late = seller.late()
    code = {"payment_id": late.payment_id}
    assert exceptions_of(seller, code) == [("late", 150_000, "open")]
    decide("accept", late)
    assert exceptions_of(seller, code) == [("late", 150_000, "accepted")]


def test_payment_without_exceptions_takes_no_extra_query(seller: Seller) -> None:
    plain, mismatched = seller.shop.qr_code(), seller.shop.qr_code()
    seller.report(mismatched, satang=1)
    counts = []
    for code in (plain, mismatched):
        seller.shop.payment(code["payment_id"])
        with CaptureQueriesContext(connection) as asked:
            seller.shop.payment(code["payment_id"])
        counts.append(sum("paymentexception" in each["sql"] for each in asked))
    assert counts == [0, 1]


def test_list_of_payments_reads_all_exceptions_with_one_statement(seller: Seller) -> None:
    for _ in range(3):
        seller.mismatch()
    with CaptureQueriesContext(connection) as asked:
        listed = seller.shop.get("/v1/payments").json()["payments"]
    assert [len(each["exceptions"]) for each in listed] == [1, 1, 1]
    assert sum("paymentexception" in each["sql"] for each in asked) == 1


def test_payment_shows_its_newest_exceptions_and_counts_all_money(
    seller: Seller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shapes, "MAX_SHOWN", 2)
    code = seller.shop.qr_code()
    for satang in (1, 2):
        seller.report(code, satang=satang)
    assert exceptions_of(seller, code) == [("amount_mismatch", 1, "open"), ("amount_mismatch", 2, "open")]
    assert seller.shop.payment(code["payment_id"])["exceptions_has_more"] is False
    decide("record_manual_return", seller.report(code, satang=4), bank_reference="counter 7")
    seller.report(code, satang=8)
    assert [satang for _, satang, _ in exceptions_of(seller, code)] == [4, 8]
    shown = seller.shop.payment(code["payment_id"])
    assert (shown["exceptions_has_more"], shown["amount_received"]) == (True, 11)
    assert seller.shop.get(f"/v1/payments/{code['payment_id']}/exceptions").json()["total"] == 4


def test_exceptions_of_a_payment_are_listed_newest_first(seller: Seller) -> None:
    code = seller.shop.qr_code()
    for satang in (1, 2, 3):
        seller.report(code, satang=satang)
    for prefix in ("/v1", "/Thai/v1"):
        page = seller.shop.get(f"{prefix}/payments/{code['payment_id']}/exceptions?limit=2&offset=1").json()
        assert [each["amount"] for each in page["exceptions"]] == [2, 1]
        assert (page["total"], page["limit"], page["offset"]) == (3, 2, 1)
    shown = seller.shop.payment(code["payment_id"])["exceptions"]
    assert page["exceptions"] == shown[1::-1]


def test_unmatched_money_is_not_an_exception_of_a_payment(seller: Seller) -> None:
    seller.unmatched()
    assert not PaymentException.objects.exists()
    assert BankTransaction.objects.get().match_result == "unmatched"
