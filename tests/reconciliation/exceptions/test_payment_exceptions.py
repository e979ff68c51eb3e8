"""A payment with money in suspense says so: in its API object, on its page and in its timeline."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from core import clock, money
from payments import services as payments
from payments.models import PaymentException
from reconciliation.models import BankTransaction
from tests.reconciliation.cast import Till, decide
from tests.reconciliation.console import get_page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]


def exceptions_of(till: Till, code: dict[str, Any]) -> list[tuple[str, int, str]]:
    """Under both path forms, read and listed."""
    payment_id = code["payment_id"]
    found = [till.shop.get(f"{path}/payments/{payment_id}").json() for path in ("/Thai/v1", "/v1")]
    for path in ("/Thai/v1", "/v1"):
        listed = till.shop.get(f"{path}/payments").json()["payments"]
        found += [each for each in listed if each["payment_id"] == payment_id]
    assert [each["exceptions"] for each in found] == [found[0]["exceptions"]] * 4
    return [(each["reason"], each["amount"], each["status"]) for each in found[0]["exceptions"]]


@pytest.mark.slow
def test_overpaid_and_expired_payment_shows_its_exceptions(till: Till, admin_client: Client) -> None:
    """The issue: double the amount comes, and then the code expires."""
    with time_machine.travel(clock.now(), tick=False) as machine:
        code = till.shop.qr_code(expiry_minutes=1)
        movement = till.told(code, satang=300_000)
        machine.shift(timedelta(minutes=2))
        payments.expire_due(now=clock.now())
        told = till.shop.payment(code["payment_id"])
        assert (told["status"], told["amount_received"]) == ("expired", None)
        assert exceptions_of(till, code) == [("amount_mismatch", 300_000, "open")]
        timeline = till.shop.get(f"/v1/payments/{code['payment_id']}/timeline").json()
        assert timeline["sources"] == ["callback"]
        notification = next(entry for entry in timeline["timeline"] if entry["type"] == "bank.notice")
        assert notification["details"]["amount"] == 300_000
        page = get_page(admin_client, f"/admin/payments/payment/{code['payment_id']}/change/")
    assert "<strong>callback ✓</strong>" in page
    assert money.display(300_000) in page and "in suspense" in page.lower()
    assert f"/admin/reconciliation/reconciliationexception/{movement.id}/change/" in page.replace("_5F", "_")


@pytest.mark.slow
def test_status_of_an_exception_follows_its_resolution(till: Till) -> None:
    code = till.shop.qr_code()
    till.told(code)
    first, second, third = (till.told(code) for _ in range(3))
    assert exceptions_of(till, code) == [("duplicate", 150_000, "open")] * 3
    decide("record_manual_return", first, bank_reference="counter 7")
    other = till.shop.qr_code()
    decide("attach", second, payment_id=other["payment_id"])
    till.takes_back(third)
    assert [status for *_, status in exceptions_of(till, code)] == ["sent_back", "attached", "taken_back"]
    assert exceptions_of(till, other) == []


def test_accepted_late_money_stays_on_its_payment(till: Till) -> None:
    late = till.late()
    code = {"payment_id": late.payment_id}
    assert exceptions_of(till, code) == [("late", 150_000, "open")]
    decide("accept", late)
    assert exceptions_of(till, code) == [("late", 150_000, "accepted")]


def test_payment_without_exceptions_takes_no_extra_query(till: Till) -> None:
    plain, odd = till.shop.qr_code(), till.shop.qr_code()
    till.told(odd, satang=1)
    counts = []
    for code in (plain, odd):
        till.shop.payment(code["payment_id"])
        with CaptureQueriesContext(
            connection,
        ) as asked:
            till.shop.payment(code["payment_id"])
        counts.append(sum("paymentexception" in each["sql"] for each in asked))
    assert counts == [0, 1]


def test_unmatched_money_is_not_an_exception_of_a_payment(till: Till) -> None:
    till.unmatched()
    assert not PaymentException.objects.exists()
    assert BankTransaction.objects.get().match_result == "unmatched"
