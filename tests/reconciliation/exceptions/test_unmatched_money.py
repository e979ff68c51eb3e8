"""Money with an unknown reference shows on the payments that its exception names as candidates."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from html import unescape
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from core import clock, ids
from core.clock import iso
from reconciliation.exceptions import candidates
from reconciliation.exceptions.unmatched_money import IS_POSSIBLE, MAX_COMPARED
from reconciliation.models import BankTransaction, ReconciliationException
from tests.conftest import Shop
from tests.reconciliation.builders import Seller, decide, exception_url, get_page

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
SENTENCE = "A payment of the same amount arrived with an unknown reference."
UNKNOWN = "NOBODYKNOWSTHIS00000"


@pytest.fixture
def now(noon: datetime) -> Iterator[Any]:
    with time_machine.travel(noon, tick=False) as machine:
        yield machine


def shown(shop: Shop, code: dict[str, Any]) -> Any:
    """What the payment says of such money, equal under both paths."""
    thai, plain = (shop.get(f"{path}/payments/{code['payment_id']}").json() for path in ("/Thai/v1", "/v1"))
    assert thai == plain
    return thai["unmatched_money"]


def timeline(shop: Shop, code: dict[str, Any]) -> list[dict[str, Any]]:
    entries = shop.get(f"/v1/payments/{code['payment_id']}/timeline").json()["timeline"]
    return [each for each in entries if each["summary"] == SENTENCE]


def page(client: Client, code: dict[str, Any]) -> str:
    return unescape(get_page(client, f"/admin/payments/payment/{code['payment_id']}/change/"))


def lead(client: Client, code: dict[str, Any]) -> str:
    """The first sentence of the payment's page."""
    found = re.search(r'<p class="lead \w+">(.*?)</p>', page(client, code))
    assert found
    return found[1]


def candidates_of(bank_transaction: BankTransaction) -> list[str]:
    return [each.payment.id for each in candidates.find([bank_transaction])[bank_transaction.id]]


@pytest.mark.usefixtures("audit_is_clean")
def test_unpaid_payment_names_money_with_an_unknown_reference(
    seller: Seller, admin_client: Client, now: Any
) -> None:
    code = seller.shop.qr_code()
    assert shown(seller.shop, code) is None
    assert lead(admin_client, code).startswith("Not paid yet.")
    now.shift(timedelta(minutes=2))
    bank_transaction = seller.report(code, reference1=UNKNOWN)
    assert shown(seller.shop, code) == {
        "exception_id": bank_transaction.id,
        "message": SENTENCE,
        "at": iso(bank_transaction.received_at),
    }
    (entry,) = timeline(seller.shop, code)
    assert (entry["at"], entry["type"], entry["actor"]) == (
        iso(bank_transaction.received_at), "bank.notification", "bank:sandbox",
    )  # fmt: skip
    assert entry["details"] == {
        "source": "callback",
        "bank_transaction_id": bank_transaction.id,
        "amount": 150_000,
        "paid_at": iso(bank_transaction.paid_at),
        "match_result": "unmatched",
    }
    link = f'<a href="{exception_url(bank_transaction.id)}">See whether it is for this payment</a>'
    assert lead(admin_client, code) == f"{SENTENCE} {link}."
    # Once as the first sentence, once in the timeline with its link.
    assert page(admin_client, code).count(SENTENCE) == 2
    assert f'<a href="{exception_url(bank_transaction.id)}">{bank_transaction.id}</a>' in page(
        admin_client, code
    )


def test_expired_payment_names_it_too(seller: Seller, admin_client: Client, now: Any) -> None:
    code = seller.shop.qr_code(expiry_minutes=1)
    now.shift(timedelta(days=1))
    bank_transaction = seller.report(code, reference1=UNKNOWN)
    found = shown(seller.shop, code)
    assert found["exception_id"] == bank_transaction.id
    assert lead(admin_client, code).startswith(SENTENCE)


@pytest.mark.parametrize("decision", ["this", "another", "returned"])
def test_sentence_disappears_when_the_money_is_decided_about(
    seller: Seller, admin_client: Client, now: Any, decision: str
) -> None:
    code, other = seller.shop.qr_code(), seller.shop.qr_code()
    bank_transaction = seller.report(code, reference1=UNKNOWN)
    assert shown(seller.shop, code) and shown(seller.shop, other)
    if decision == "returned":
        decide("record_manual_return", bank_transaction, bank_reference="counter 7")
    else:
        decide("attach", bank_transaction, payment_id=(code if decision == "this" else other)["payment_id"])
    for each in (code, other):
        assert shown(seller.shop, each) is None
        assert timeline(seller.shop, each) == []
        assert SENTENCE not in page(admin_client, each)


def test_paid_payment_does_not_say_it(seller: Seller, admin_client: Client) -> None:
    code = seller.shop.qr_code()
    seller.report(code, reference1=UNKNOWN)
    seller.report(code)
    assert (shown(seller.shop, code), timeline(seller.shop, code)) == (None, [])
    assert SENTENCE not in page(admin_client, code)


def test_payment_says_it_exactly_if_the_exception_names_it(seller: Seller, now: Any) -> None:
    """More codes of one amount than an exception names, codes of another amount, and too old ones."""
    old = seller.shop.qr_code()
    now.shift(timedelta(days=8))
    codes = []
    for _ in range(candidates.MAX_CANDIDATES + 2):
        codes.append(seller.shop.qr_code())
        now.shift(timedelta(minutes=1))
    dearer = seller.shop.qr_code(amount=150_001)
    bank_transaction = seller.report(codes[0], reference1=UNKNOWN)
    now.shift(timedelta(minutes=11))
    later = seller.shop.qr_code()
    named = candidates_of(bank_transaction)
    assert len(named) == candidates.MAX_CANDIDATES
    for code in (old, *codes, dearer, later):
        assert bool(shown(seller.shop, code)) == (code["payment_id"] in named)
        assert bool(timeline(seller.shop, code)) == (code["payment_id"] in named)


def test_similar_reference_comes_before_the_same_amount_alone(seller: Seller, now: Any) -> None:
    code = seller.shop.qr_code()
    seller.report(code, reference1=UNKNOWN)
    meant = seller.report(code, reference1=_mistyped(seller, code))
    assert shown(seller.shop, code)["exception_id"] == meant.id
    assert len(timeline(seller.shop, code)) == 2


@pytest.mark.parametrize("spoil", [str.lower, lambda text: text[3:], lambda text: text[:6], None])
def test_money_of_others_does_not_hide_that_with_a_similar_reference(
    seller: Seller, now: Any, spoil: Any
) -> None:
    """More codes of one amount than an exception names, and more exceptions than are compared."""
    code = seller.shop.qr_code()
    now.shift(timedelta(minutes=20))
    for _ in range(candidates.MAX_CANDIDATES):
        seller.shop.qr_code()
    for _ in range(MAX_COMPARED + 1):
        assert code["payment_id"] not in candidates_of(seller.unmatched())
        now.shift(timedelta(seconds=1))
    assert shown(seller.shop, code) is None
    reference = seller.bank.notification(code)["reference1"]
    meant = seller.report(code, reference1=spoil(reference) if spoil else _mistyped(seller, code))
    assert shown(seller.shop, code)["exception_id"] == meant.id
    assert len(timeline(seller.shop, code)) == 1


def _mistyped(seller: Seller, code: dict[str, Any]) -> str:
    reference: str = seller.bank.notification(code)["reference1"]
    return reference[:9] + ("A" if reference[9] != "A" else "C") + reference[10:]


def test_merchant_sees_only_money_of_its_own_biller_id(
    seller: Seller, other_shop: Shop, admin_client: Client
) -> None:
    code = seller.shop.qr_code()
    theirs = other_shop.qr_code(amount=150_000)
    seller.report(theirs, reference1=UNKNOWN)
    assert shown(seller.shop, code) is None
    assert SENTENCE not in page(admin_client, code)
    assert shown(other_shop, theirs)["message"] == SENTENCE
    answer = seller.shop.get(f"/v1/payments/{theirs['payment_id']}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "payment_not_found")


def test_only_staff_see_money_of_no_known_merchant(seller: Seller, admin_client: Client) -> None:
    code = seller.shop.qr_code()
    bank_transaction = seller.report(code, biller_id="099999999999999")
    assert ReconciliationException.objects.get().merchant_id is None
    assert candidates_of(bank_transaction) == [code["payment_id"]]
    assert (shown(seller.shop, code), timeline(seller.shop, code)) == (None, [])
    assert lead(admin_client, code).startswith(SENTENCE)
    assert page(admin_client, code).count(SENTENCE) == 2


def test_lists_and_events_leave_it_out(seller: Seller) -> None:
    code = seller.shop.qr_code()
    seller.report(code, reference1=UNKNOWN)
    (listed,) = seller.shop.get("/v1/payments").json()["payments"]
    assert "unmatched_money" not in listed
    assert "unknown reference" not in Client().get(f"/pay/{code['qr_code_id']}").content.decode()


def test_payment_without_such_money_takes_no_extra_query(seller: Seller) -> None:
    plain, named = seller.shop.qr_code(amount=100_000), seller.shop.qr_code()
    seller.report(named, reference1=UNKNOWN)
    counts = []
    for code in (plain, named):
        seller.shop.payment(code["payment_id"])
        with CaptureQueriesContext(connection) as asked:
            seller.shop.payment(code["payment_id"])
        counts.append(sum(" FROM " in each["sql"] for each in asked))
    assert counts == [1, 4]


def test_cost_of_the_look_does_not_grow_with_exceptions(seller: Seller) -> None:
    """The index is used even with statistics from a day without exceptions."""
    code = seller.shop.qr_code()
    row = seller.unmatched()
    fields = {field.attname for field in ReconciliationException._meta.concrete_fields} - {"is_sandbox"}
    values = ReconciliationException.objects.values(*fields).get(pk=row.pk)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM reconciliation_reconciliationexception")
        cursor.execute("ANALYZE reconciliation_reconciliationexception")
        ReconciliationException.objects.bulk_create(
            ReconciliationException(**values | {"id": ids.new("btx_", clock.now())}) for _ in range(5_000)
        )
        cursor.execute(
            f"""EXPLAIN SELECT {IS_POSSIBLE} FROM payments_payment p
            JOIN merchants_merchant m ON m.id = p.merchant_id WHERE p.id = %s""",
            [code["payment_id"]],
        )
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Index Only Scan using exception_unmatched" in plan, plan
    assert "Filter: ((reason" not in plan, plan
