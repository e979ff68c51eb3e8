"""Search payments by what the merchant, the payer and the bank know; the payer in the payment object."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine

from core import clock
from payments import search
from tests.conftest import SandboxBankClient, Shop
from tests.factories import PaymentFactory
from tests.refunds.builders import PAYEE

pytestmark = pytest.mark.django_db
PATH = "/Thai/v1/payments"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def found(shop: Shop, query: str, path: str = PATH, name: str = "payment") -> list[str]:
    response = shop.get(f"{path}?{query}")
    assert response.status_code == 200, response.content
    page: dict[str, Any] = response.json()
    assert page["total"] == len(page[f"{name}s"])
    return [row[f"{name}_id"] for row in page[f"{name}s"]]


@pytest.fixture
def sold(shop: Shop, other_shop: Shop) -> dict[str, Any]:
    """One payment among others that differ in one field each, and the same one of another shop."""
    fields = {"amount": 12_300, "reference": "order 1", "metadata": {"table": 4, "hall": "ก"}}
    other_shop.qr_code(**fields)
    shop.qr_code(**fields | {"amount": 12_301})
    shop.qr_code(**fields | {"reference": "order 2", "metadata": {"table": 5, "hall": "ก"}})
    return shop.qr_code(**fields)


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("amount=12300", 2),
        ("amount=12302", 0),
        ("metadata[table]=4", 2),
        ("metadata[table]=4&amount=12300", 1),
        ("metadata[table]=4&metadata[hall]=ก&amount=12300", 1),
        ("metadata[table]=40", 0),
        ("metadata[chair]=4", 0),
        ("metadata[]=4", 0),
        ("reference=order 1&amount=12300", 1),
        ("reference=order 2&metadata[table]=5", 1),
        ("amount=12300&status=pending", 2),
        ("amount=12300&status=succeeded", 0),
        ("amount=12300&start_date=2000-01-01&end_date=2000-01-02", 0),
    ],
)
def test_payments_are_found_by_amount_and_metadata(
    shop: Shop, sold: dict[str, Any], query: str, count: int
) -> None:
    ids = found(shop, query)
    assert len(ids) == count
    assert count == 0 or "order 2" in query or ids[0] == sold["payment_id"]


@pytest.mark.slow
def test_payment_is_found_by_the_transaction_id_of_the_bank(shop: Shop, bank: SandboxBankClient) -> None:
    paid, other = shop.qr_code(), shop.qr_code()
    bank.notify(other)
    notification = bank.notification(paid)
    bank.post(notification)
    transaction_id = notification["transaction_id"]
    assert shop.payment(paid["payment_id"])["bank_reference"] == transaction_id
    assert found(shop, f"bank_reference={transaction_id}") == [paid["payment_id"]]
    assert found(shop, "bank_reference=unknown") == []


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("amount=0", "amount"),
        ("amount=1.5", "amount"),
        ("amount=99999999999999", "amount"),
        ("metadata=4", "metadata"),
        ("metadata[table=4", "metadata"),
        ("metadata[table]x=4", "metadata"),
        ("metadata[table]=4&metadata[table]=5", "metadata"),
        ("metadata[table]=%00", "metadata"),
        ("metadata[%00]=4", "metadata"),
        ("&".join(f"metadata[{number}]=1" for number in range(6)), "metadata"),
        ("bank_reference=", "bank_reference"),
        ("amount=100&after=pay_unknown", "after"),
        ("timezone=Bangkok", "timezone"),
    ],
)
def test_invalid_search_is_refused(shop: Shop, query: str, param: str) -> None:
    refused = shop.get(f"{PATH}?{query}")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_parameters")
    assert refused.json()["error"]["param"] == param


@pytest.mark.parametrize("direction", ["after", "before"])
def test_search_reads_a_bounded_number_of_payments(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, direction: str
) -> None:
    monkeypatch.setattr(search, "SEARCHED", 4)
    made = [
        PaymentFactory(
            merchant=shop.merchant,
            amount=500 if number % 3 == 0 else 100,
            created_at=NOON - timedelta(seconds=number // 2),
        )
        for number in range(10)
    ]
    wanted = {payment.id for payment in made if payment.amount == 500}
    ordered = sorted(made, key=lambda payment: (payment.created_at, payment.id), reverse=True)
    edge = ordered[-1] if direction == "before" else ordered[0]
    query, ids, pages = f"amount=500&{direction}={edge.id}", [], 0
    while query:
        page = shop.get(f"{PATH}?{query}").json()
        ids += [row["payment_id"] for row in page["payments"]]
        pages += 1
        query = f"amount=500&{direction}={page['searched_to']}" if "searched_to" in page else ""
    assert pages == 3
    assert len(ids) == len(set(ids)) and set(ids) == wanted - {edge.id}


def test_search_without_older_payments_does_not_say_so(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SEARCHED", 2)
    codes = [shop.qr_code() for _ in range(2)]
    assert "searched_to" not in shop.get(f"{PATH}?amount=150000").json()
    shop.qr_code()
    page = shop.get(f"{PATH}?amount=150000").json()
    assert (page["total"], page["searched_to"]) == (2, codes[1]["payment_id"])
    assert found(shop, f"amount=150000&after={page['searched_to']}") == [codes[0]["payment_id"]]


def test_payer_and_refunds_are_shown(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code(amount=10_000)
    before = shop.payment(code["payment_id"])
    assert (before["payer"], before["bank_reference"], before["livemode"]) == (None, None, False)
    assert before["refunds"] == {"completed": 0, "pending": 0, "remaining": 0}
    bank.notify(code)
    shop.post("/v1/refunds", {"payment_id": code["payment_id"], "amount": 4_000, "destination": PAYEE})
    for form in ("/Thai/v1", "/v1"):
        shown = shop.get(f"{form}/payments/{code['payment_id']}").json()
        assert shown["refunds"] == {"completed": 0, "pending": 4_000, "remaining": 6_000}
        assert set(shown["payer"]) == {"name", "bank_code", "bank_name", "bank_account"}
        assert shown["payer"]["bank_account"].startswith("x")
    assert shown.pop("unmatched_money") is None  # lists do not have it
    assert shop.get(PATH).json()["payments"] == [shown]


@pytest.mark.slow
def test_qr_codes_are_listed_and_filtered(shop: Shop, other_shop: Shop, bank: SandboxBankClient) -> None:
    other_shop.qr_code()
    codes = [shop.qr_code(reference=f"order {number}") for number in range(3)]
    PaymentFactory(merchant=shop.merchant, qr_code_id=None)  # by card
    bank.notify(codes[1])
    ids = [code["qr_code_id"] for code in codes[::-1]]
    for form in ("/Thai/v1", "/v1"):
        assert found(shop, "", f"{form}/qr-codes", "qr_code") == ids
    path = "/v1/qr-codes"
    assert found(shop, "status=succeeded", path, "qr_code") == [ids[1]]
    assert found(shop, "reference=order 2", path, "qr_code") == [ids[0]]
    assert found(shop, "end_date=2000-01-01", path, "qr_code") == []
    page = shop.get(f"{path}?after={ids[0]}&limit=1").json()
    assert ([row["qr_code_id"] for row in page["qr_codes"]], "offset" in page) == ([ids[1]], False)
    assert shop.get(f"{path}?before={ids[2]}&limit=1").json()["qr_codes"][0]["qr_code_id"] == ids[1]
    assert shop.get(f"{path}?limit=1").json()["qr_codes"] == [shop.get(f"{path}/{ids[0]}").json()]
    assert shop.get(f"{path}?after=qr_unknown").status_code == 400
    assert shop.get(f"/v1/payments?after={ids[0]}").status_code == 400


def test_list_of_qr_codes_continues_after_card_payments(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SEARCHED", 2)
    with time_machine.travel(clock.now(), tick=False) as moved:  # rows of one millisecond have no order
        first = shop.qr_code()
        moved.shift(1)
        second = shop.qr_code()
        moved.shift(1)
        card_payment = PaymentFactory(merchant=shop.merchant, qr_code_id=None).id
        moved.shift(1)
        third = shop.qr_code()["qr_code_id"]
    page = shop.get("/v1/qr-codes").json()
    assert ([row["qr_code_id"] for row in page["qr_codes"]], page["searched_to"]) == ([third], card_payment)
    rest = found(shop, f"after={card_payment}", "/v1/qr-codes", "qr_code")
    assert rest == [second["qr_code_id"], first["qr_code_id"]]


def test_dates_of_a_list_are_days_in_bangkok(shop: Shop) -> None:
    made = PaymentFactory(merchant=shop.merchant, created_at=datetime(2026, 11, 20, 18, tzinfo=UTC))
    day = "start_date=2026-11-21&end_date=2026-11-21"
    assert found(shop, day) == []
    assert found(shop, f"{day}&timezone=Asia/Bangkok") == [made.id]
