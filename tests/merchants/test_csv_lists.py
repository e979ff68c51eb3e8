"""Lists as CSV: the same filters and rows as JSON, safe cells, files of a bounded size."""

import csv
import io
from typing import Any

import pytest

from config.urls import API_ROUTES
from core.http.openapi import operation_of
from merchants import csv_lists
from merchants.csv_lists import Columns
from tests.conftest import SandboxBankClient, Shop
from tests.error_messages import check_error
from tests.factories import PaymentFactory
from tests.withdrawals.builders import withdrawn

pytestmark = pytest.mark.django_db
LISTS = {
    path: operation
    for path, viewset, actions in API_ROUTES
    if "get" in actions
    and (operation := operation_of(getattr(viewset, actions["get"]))) is not None
    and operation.is_list
}


def download(shop: Shop, path: str) -> tuple[list[dict[str, str]], Any]:
    response = shop.get(path, accept="text/csv")
    assert response.status_code == 200, response.content
    assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(response.content.decode("utf-8-sig"), newline=""))), response


def next_path(response: Any) -> str | None:
    link: str | None = response.headers.get("Link")
    if link is None:
        return None
    url, rel = link.split("; ")
    assert rel == 'rel="next"'
    return "/" + url.strip("<>").split("/", 3)[3]


@pytest.mark.parametrize("path", [path for path in LISTS if "<" not in path])
def test_every_list_is_available_as_csv(shop: Shop, path: str) -> None:
    rows, response = download(shop, f"/Thai/v1/{path}")
    assert rows == []
    quoted = [f'"{name}"' for name, _, _ in Columns(LISTS[path]).plan]
    assert response.content.decode("utf-8-sig").strip().split(",") == quoted
    assert shop.get(f"/Thai/v1/{path}").headers["Content-Type"] == "application/json"


def test_csv_has_the_rows_and_filters_of_the_list(shop: Shop, bank: SandboxBankClient) -> None:
    paid = shop.qr_code(amount=150_050, reference="=1+1", metadata={"table": 4})
    shop.qr_code()
    bank.notify(paid)
    [row], response = download(shop, "/v1/payments?status=succeeded")
    assert (row["payment_id"], row["amount"], row["amount_baht"]) == (paid["payment_id"], "150050", "1500.50")
    assert "amount_display" not in row
    assert row["reference"] == "'=1+1"
    assert (row["metadata"], row["livemode"], row["card.last4"]) == ('{"table":4}', "false", "")
    assert (row["refunds.remaining"], row["refunds.remaining_baht"]) == ("150050", "1500.50")
    assert next_path(response) is None


def test_json_in_a_cell_is_no_formula(shop: Shop) -> None:
    """Spreadsheets of many countries separate cells by a semicolon, also inside quotes."""
    shop.qr_code(metadata={"note": "a;=1+1"})
    [row], _ = download(shop, "/v1/payments")
    assert row["metadata"] == """{"note":"a;'=1+1"}"""


def test_amount_that_left_is_a_negative_number(shop: Shop, bank: SandboxBankClient) -> None:
    bank.notify(shop.qr_code(amount=150_000))
    withdrawn(shop, amount=20_050)
    rows, _ = download(shop, "/v1/balance/transactions")
    assert [(row["amount"], row["amount_baht"]) for row in rows] == [
        ("-20050", "-200.50"),
        ("150000", "1500.00"),
    ]


@pytest.mark.parametrize("limits", [{"MAX_ROWS": 100}, {"MAX_BYTES": 1}, {"MAX_SECONDS": -1.0}])
@pytest.mark.slow
def test_long_list_continues_in_the_next_file(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, limits: dict[str, float]
) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(csv_lists, name, value)
    made = {PaymentFactory(merchant=shop.merchant).id for _ in range(150)}
    found, sizes, path = [], [], "/v1/payments?status=pending"
    following: str | None = path
    while following is not None:
        rows, response = download(shop, following)
        sizes.append(len(rows))
        found += [row["payment_id"] for row in rows]
        following = next_path(response)
    assert sizes == [100, 50]
    assert len(found) == 150 and set(found) == made


@pytest.mark.slow
def test_whole_list_is_one_file(shop: Shop) -> None:
    for _ in range(120):
        PaymentFactory(merchant=shop.merchant)
    rows, response = download(shop, "/v1/payments?offset=10")
    assert (len(rows), next_path(response)) == (110, None)


def test_limit_asks_for_one_page(shop: Shop) -> None:
    codes = [shop.qr_code()["payment_id"] for _ in range(3)]
    rows, response = download(shop, "/v1/payments?limit=2")
    assert [row["payment_id"] for row in rows] == codes[:0:-1]
    rest, last = download(shop, str(next_path(response)))
    assert ([row["payment_id"] for row in rest], next_path(last)) == (codes[:1], None)


def test_invalid_filter_is_refused_in_json(shop: Shop) -> None:
    refused = shop.get("/v1/payments?status=nope", accept="text/csv")
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "status")


def test_merchant_writes_one_file_at_once(shop: Shop, other_shop: Shop) -> None:
    with csv_lists._files.hold(shop.merchant.id, total=2, share=1):
        refused = shop.get("/v1/payments", accept="text/csv")
        assert refused.status_code == 429
        check_error(refused.json(), "too_many_exports")
        assert refused.headers["Retry-After"] == "1"
        assert shop.get("/v1/payments").status_code == 200
        assert download(other_shop, "/v1/payments")[0] == []
    assert download(shop, "/v1/payments")[0] == []
