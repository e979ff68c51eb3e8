"""Read payments: the object, the list and its filters."""

from datetime import datetime, timedelta

import pytest
import time_machine

from payments.openapi import PAYMENT
from tests.conftest import SandboxBankClient, Shop

KEYS_OF_THE_INTERFACE = {
    *("payment_id", "qr_code_id", "status", "amount", "currency", "reference", "created_at", "completed_at"),
    *("description", "updated_at", "card"),
}


@pytest.mark.parametrize("form", ["/Thai/v1", "/v1"])
def test_payment_object_has_all_keys(shop: Shop, form: str) -> None:
    payment = shop.get(f"{form}/payments/{shop.qr_code()['payment_id']}").json()
    assert payment.keys() >= KEYS_OF_THE_INTERFACE
    assert payment.keys() == PAYMENT.keys() | {"unmatched_money"}
    assert {payment[name] for name in ("completed_at", "reference", "description", "card")} == {None}


def test_completed_at_is_the_time_of_the_bank(shop: Shop, bank: SandboxBankClient, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        code = shop.qr_code()
        paid_at = noon + timedelta(seconds=20)
        clock.move_to(noon + timedelta(seconds=50))
        bank.notify(code, paid_at=paid_at)
        assert shop.payment(code["payment_id"])["completed_at"] == "2026-11-21T05:00:20.000Z"


@pytest.mark.parametrize(
    "payment_id", ["pay_unknown", "pay_000000000000000000000000000", "x", "qr_1", "%00", "%ff"]
)
def test_unknown_payment_is_not_found(shop: Shop, payment_id: str) -> None:
    answer = shop.get(f"/Thai/v1/payments/{payment_id}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "payment_not_found")


def test_payments_are_listed_newest_first_and_paged(shop: Shop, other_shop: Shop) -> None:
    other_shop.qr_code()
    made = [shop.qr_code()["payment_id"] for _ in range(5)]
    everything = shop.get("/Thai/v1/payments").json()
    assert (everything["total"], everything["limit"], everything["offset"]) == (5, 20, 0)
    ids = [payment["payment_id"] for payment in everything["payments"]]
    assert set(ids) == set(made)
    times = [payment["created_at"] for payment in everything["payments"]]
    assert times == sorted(times, reverse=True)
    page = shop.get("/Thai/v1/payments?limit=2&offset=3").json()
    assert [payment["payment_id"] for payment in page["payments"]] == ids[3:5]
    assert page["total"] == 5
    beyond = shop.get("/Thai/v1/payments?offset=999999").json()
    assert (beyond["payments"], beyond["total"]) == ([], 5)


@pytest.mark.slow
def test_payments_are_filtered_by_status_and_dates(
    shop: Shop, bank: SandboxBankClient, noon: datetime
) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        paid = shop.qr_code(reference="A-1")
        bank.notify(paid)
        clock.move_to(noon + timedelta(days=1))
        open_code = shop.qr_code(reference="A-2")

        def found(query: str) -> list[str]:
            return [row["payment_id"] for row in shop.get(f"/Thai/v1/payments?{query}").json()["payments"]]

        assert found("status=succeeded") == [paid["payment_id"]]
        assert found("status=refunded") == []
        assert found("reference=A-2") == [open_code["payment_id"]]
        assert found(f"qr_code_id={paid['qr_code_id']}") == [paid["payment_id"]]
        assert found("start_date=2026-11-22") == [open_code["payment_id"]]
        assert found("end_date=2026-11-21") == [paid["payment_id"]]


@pytest.mark.parametrize(
    "query",
    ["status=paid", "status=", "limit=0", "limit=101", "limit=x", "offset=-1", "limit=1&limit=2",
     "start_date=x", "start_date=2026-11-22&end_date=2026-11-21", "limit=%D9%A1"],
)  # fmt: skip
def test_payment_list_parameter_out_of_range_is_refused(shop: Shop, query: str) -> None:
    answer = shop.get(f"/Thai/v1/payments?{query}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_parameters")
    assert answer.json()["error"]["param"] == query.partition("=")[0]
