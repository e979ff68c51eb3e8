"""Lists, filters, searches and orders of the console never read a whole table that grows with payments."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest
import time_machine
from django.contrib import admin
from django.contrib.admin.views.main import ORDER_VAR, ChangeList
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Model
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from audit_trail.pages import ReadOnlyAdmin
from core.console import admin_lists
from core.console.admin_filters import AmountFilter, OwnerFilter
from core.console.admin_lists import NewestValuesFilter
from payments.models import Payment
from tests.conftest import Shop
from tests.console.lists.query_plans import unbounded
from tests.factories import MerchantFactory, PaymentFactory

pytestmark = pytest.mark.slow

# These grow with merchants, staff, banks, days or exceptions, not with payments.
SMALL = frozenset({
    "payments_feeterms",
    "merchants_merchant", "merchants_bankconnection", "merchants_apikey", "webhooks_endpoint",
    "webhooks_endpointaction", "webhooks_endpointhealth", "operations_heartbeat",
    "operations_dailyclose", "operations_jobrun", "operations_monthclose",
    "reconciliation_statement",
    "reconciliation_reconciliationexception",
    "settlements_acquirertransfer", "settlements_openquestion", "settlements_settlement",
    "ledger_account", "transfers_circuitbreaker",
    "transfers_transfercontradiction", "approvals_payoutaccount", "approvals_payoutpolicy",
    "withdrawals_payoutnight", "withdrawals_payoutschedule",
})  # fmt: skip
LISTS = {
    model: found
    for model, found in admin.site._registry.items()
    if isinstance(found, ReadOnlyAdmin) and model._meta.db_table not in SMALL
}
# In the form of an id: the console does not search ids for other texts.
SOUGHT = "pay_" + 27 * "0"


def opened(model_admin: ReadOnlyAdmin, user: User, query: str) -> ChangeList:
    """The change list with its rows."""
    request = RequestFactory().get(query)
    request.user = user
    changes: ChangeList = model_admin.get_changelist_instance(request)
    list(changes.result_list)
    return changes


def offers(model_admin: ReadOnlyAdmin, changes: ChangeList) -> Iterator[str]:
    """Queries for the search, each filter and each order of a list, and for orders that it does not offer."""
    yield f"?q={SOUGHT}"
    for column in range(len(model_admin.list_display) + 1):
        yield f"?{ORDER_VAR}=-{column}"
    for spec in changes.filter_specs:
        yield from (str(choice["query_string"]) for choice in spec.choices(changes))
    yield from typed(changes)
    yield "?mode=live"
    for given in changes.list_filter:
        if isinstance(given, tuple) and given[1] is NewestValuesFilter:
            yield f"?{given[0]}=x"


def typed(changes: ChangeList) -> Iterator[str]:
    """Queries for the filters that staff type into, alone and with others."""
    kinds = {type(spec) for spec in changes.filter_specs}
    if any(issubclass(kind, AmountFilter) for kind in kinds):
        yield "?amount_from=1&amount_to=2"
    for kind in kinds:
        if issubclass(kind, OwnerFilter):
            yield "?merchant=Somtam"
            yield "?merchant=Somtam&mode=live"
            if kind.newest_first:
                yield "?merchant=Somtam&amount_from=1"
                yield "?merchant=Somtam&date=today"
                yield "?merchant=Somtam&date=last-month&amount_to=5"


@pytest.fixture
def many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each list behaves as if its table had more rows than filters read."""

    def newest(rows: Any, order: Sequence[str], kind_columns: Sequence[str] = ()) -> tuple[Any, bool]:
        return rows.filter(pk__gt=rows.model._meta.pk.get_prep_value("5")), True

    monkeypatch.setattr(admin_lists, "newest", newest)


@pytest.mark.parametrize("model", LISTS, ids=lambda model: model._meta.label_lower)
def test_admin_filters_searches_and_orders_use_an_index(
    admin_user: User, many_rows: None, model: type[Model]
) -> None:
    model_admin = LISTS[model]
    MerchantFactory(mode="test")  # so that `?mode=live` narrows the list
    with CaptureQueriesContext(connection) as captured:
        first = opened(model_admin, admin_user, "/")
        for query in offers(model_admin, first):
            opened(model_admin, admin_user, f"/{query}")
    meta = model._meta
    queries = {each["sql"] for each in captured.captured_queries if meta.db_table in each["sql"]}
    # The newest rows can be found by their keys, so any other plan that PostgreSQL chooses reads less.
    bounded = f'"{meta.db_table}"."{meta.pk.column}" > '
    queries = {sql for sql in queries if bounded not in sql}
    found = [part for sql in sorted(queries) for part in unbounded(sql, small=SMALL)]
    assert found == []
    assert len(queries) > 1


def test_admin_facets_are_not_counted(admin_client: Client, shop: Shop) -> None:
    shop.qr_code()
    plain, queries = (
        queries_of(admin_client, f"/admin/payments/payment/{query}") for query in ("", "?_facets=True")
    )
    assert len(queries) <= len(plain) + 1
    assert not any("FILTER (WHERE" in sql for sql in queries)


def queries_of(client: Client, path: str) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(path, follow=True).status_code == 200
    return [each["sql"] for each in captured.captured_queries]


def shown(client: Client, query: str) -> str:
    response = client.get(f"/admin/payments/payment/?{query}", follow=True)
    assert response.status_code == 200
    return str(response.content.decode())


def test_admin_list_filter_searches_the_newest_rows_and_shows_a_note(
    admin_client: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch, noon: datetime
) -> None:
    monkeypatch.setattr(admin_lists, "FILTERED_ROWS", 2)
    with time_machine.travel(noon, tick=False) as clock:
        codes = []
        for _ in range(3):
            codes.append(shop.qr_code()["payment_id"])
            clock.shift(timedelta(seconds=1))
        for query in ("status=pending", "payer_matches__isnull=True", "amount_from=1"):
            page = shown(admin_client, query)
            assert [code in page for code in codes] == [False, True, True], query
            assert "the newest 2 rows" in page
        for query in ("", f"q={codes[0]}", f"q={codes[0]}&status=pending"):
            page = shown(admin_client, query)
            assert codes[0] in page, query
            assert "newest 2 rows" not in page


def test_filter_beside_an_indexed_date_looks_at_the_newest_rows_of_the_day(
    admin_client: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch, noon: datetime
) -> None:
    monkeypatch.setattr(admin_lists, "FILTERED_ROWS", 1)
    monkeypatch.setattr(admin.site._registry[Payment], "indexed_filters", frozenset({"date"}))
    with time_machine.travel(noon, tick=False) as clock:
        older = shop.qr_code()["payment_id"]
        clock.shift(timedelta(seconds=1))
        newest = shop.qr_code()["payment_id"]
        page = shown(admin_client, "date=today&status=pending")
    assert (older in page, newest in page) == (False, True)


def test_list_of_a_day_is_narrowed_before_other_filters(
    admin_client: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch, noon: datetime
) -> None:
    monkeypatch.setattr(admin_lists, "FILTERED_ROWS", 2)
    codes: list[str] = []
    for days in (0, 0, 1, 2, 2, 2):
        with time_machine.travel(noon + timedelta(days=days, seconds=len(codes)), tick=False):
            codes.append(shop.qr_code()["payment_id"])
    first, second = (f"{noon + timedelta(days=days):%Y-%m-%d}" for days in (0, 1))
    month = f"{noon:%Y-%m}"
    with time_machine.travel(noon + timedelta(days=1), tick=False):
        for query, expected in {
            f"date={first}": [0, 1],
            f"date={first}&payer_matches__isnull=True": [0, 1],
            "date=today": [2],
            "date=yesterday": [0, 1],
            f"date={second}&status=pending": [2],
            f"date={month}": [0, 1, 2, 3, 4, 5],
            "date=2020-01-01": [],
            "date=x": [],
        }.items():
            page = shown(admin_client, query)
            assert [number for number, code in enumerate(codes) if code in page] == expected, query


def test_pages_of_a_merchant_have_all_statuses_in_order(
    admin_client: Client, shop: Shop, other_shop: Shop, monkeypatch: pytest.MonkeyPatch, noon: datetime
) -> None:
    """No index has all payments of a merchant in order, so a page merges those of each status."""
    monkeypatch.setattr(admin.site._registry[Payment], "list_per_page", 2)
    own = []
    statuses: tuple[dict[str, str], ...]
    statuses = ({}, {"status": "failed", "failure_code": "payment_declined"}, {"status": "expired"}, {}, {})
    for number, (ended, whose) in enumerate(product(statuses, (shop, other_shop))):
        # Pairs of one instant are in the order of their ids.
        at = noon + timedelta(seconds=number // 4)
        payment = PaymentFactory(merchant=whose.merchant, created_at=at)
        Payment.objects.filter(pk=payment.pk).update(updated_at=at, **ended)
        own += [payment] if whose is shop else []
    newest = [each.pk for each in sorted(own, key=lambda each: (each.created_at, each.pk), reverse=True)]
    for query in ("", "&amount_from=1", f"&date={noon:%Y-%m-%d}", "&payer_matches__isnull=True"):
        for page in (0, 1, 2):
            found = shown(admin_client, f"merchant={shop.merchant.pk}{query}&p={page + 1}")
            links = re.findall(r"payment/(pay_5F\w{27})/change", found)
            assert list(dict.fromkeys(links)) == [
                each.replace("_", "_5F") for each in newest[2 * page : 2 * page + 2]
            ], (query, page)


def test_unsupported_admin_sort_order_is_ignored(admin_client: Client, shop: Shop, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        older = shop.qr_code(amount=300)["payment_id"]
        clock.shift(timedelta(seconds=1))
        newer = shop.qr_code(amount=100)["payment_id"]
        for query in ("", "o=5", "o=-5", "o=x", "o=99"):
            page = shown(admin_client, query)
            assert page.index(newer) < page.index(older), query


def test_admin_search_matches_whole_values_and_beginnings(admin_client: Client, shop: Shop) -> None:
    one = shop.qr_code(reference="order 17")["payment_id"]
    other = shop.qr_code(reference="order 18")["payment_id"]
    for query in ("q=order+17", f"q={one}", f"q=+{one}+"):
        assert one in (page := shown(admin_client, query)), query
        assert other not in page, query
    for query in ("q=order", f"q={one[:7]}"):
        assert one in (page := shown(admin_client, query)), query
        assert other in page, query
    for query in ("q=rder", "q=or", "q=17"):
        assert one not in shown(admin_client, query), query


def test_admin_list_count_stops_at_the_limit(
    admin_client: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_lists, "MAX_COUNTED", 2)
    for _ in range(3):
        shop.qr_code()
    assert "The first 2 rows." in shown(admin_client, "")
