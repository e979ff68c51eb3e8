"""Nobody sees rows of another merchant: a filter narrows the pages, and the role that reads has no others."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from config.deployment import postgresql
from config.deployment.findings import Level
from console.people.roles import ShopRole
from core.database import merging, rows
from operations.data_protection import shop_fence
from payments.models import Payment
from request_log.models import RequestRecord
from shop.narrowing import NEWEST_FIRST
from shop.site import site
from tests.conftest import SandboxBankClient, Shop
from tests.settlements.conftest import acquirer
from tests.shop.people import FullShop, labels, list_url, person_of, row_url
from tests.sqlstates import NOT_ALLOWED, sqlstate
from transactions.models import Transaction

__all__ = ["acquirer"]  # a fixture
pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("acquirer")]


@pytest.fixture
def own(shop: Shop, bank: SandboxBankClient) -> FullShop:
    return FullShop(shop, bank)


@pytest.fixture
def rival(other_shop: Shop, bank: SandboxBankClient) -> FullShop:
    return FullShop(other_shop, bank)


@pytest.fixture
def owner(own: FullShop) -> Client:
    return person_of(own.shop)


@pytest.fixture
def without_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first fence is off."""
    monkeypatch.setattr(shop_fence, "narrowed", lambda found, merchant_id: found)


def test_owner_sees_each_own_row_and_no_row_of_a_rival(own: FullShop, rival: FullShop, owner: Client) -> None:
    _sees_only(owner, own, rival)


def test_without_the_filter_postgresql_still_hides_the_rival(
    own: FullShop, rival: FullShop, owner: Client, without_filter: None
) -> None:
    _sees_only(owner, own, rival)


def test_other_methods_than_get_read_behind_the_second_fence_too(
    own: FullShop, rival: FullShop, owner: Client, without_filter: None
) -> None:
    for label in labels():
        for method in ("HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE"):
            page = owner.generic(method, list_url(label))
            rows = {row.pk for row in page.context["cl"].result_list} if page.context else set()
            assert rival.rows[label].pk not in rows, (label, method)


def _sees_only(owner: Client, own: FullShop, rival: FullShop) -> None:
    for label in labels():
        page = owner.get(list_url(label))
        assert page.status_code == 200, label
        keys = {row.pk for row in page.context["cl"].result_list}
        assert own.rows[label].pk in keys, label
        assert rival.rows[label].pk not in keys, label
        assert owner.get(row_url(own.rows[label])).status_code == 200, label
        hidden = owner.get(row_url(rival.rows[label]))
        assert hidden.status_code == 302, label  # Django leads to the index for an unknown id
        assert rival.shop.merchant.name not in page.content.decode(), label


def test_role_of_shops_reads_only_rows_of_its_merchant(own: FullShop, rival: FullShop) -> None:
    with shop_fence.reading_for(own.shop.merchant.pk), connection.cursor() as cursor:
        for label in own.rows:
            model = type(own.rows[label])
            assert model._base_manager.filter(pk=own.rows[label].pk).exists(), label
            assert not model._base_manager.filter(pk=rival.rows[label].pk).exists(), label
        cursor.execute(
            """SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace
                   AND relkind IN ('r', 'p', 'v', 'm') AND has_table_privilege(oid, 'SELECT')"""
        )
        assert cursor.fetchall() == [("django_content_type",)]
        assert sqlstate("SELECT * FROM public.payments_payment") == NOT_ALLOWED
        assert sqlstate("UPDATE webhooks_endpoint SET url = ''") == NOT_ALLOWED
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('thaiqr.merchant_id', true), current_user = session_user")
        assert cursor.fetchone() == ("", True)


@pytest.mark.parametrize("role", [ShopRole.CASHIER])
def test_cashier_sees_no_list_and_no_row(own: FullShop, role: ShopRole) -> None:
    cashier = person_of(own.shop, role)
    for label in labels():
        assert cashier.get(list_url(label)).status_code == 403, label
        assert cashier.get(row_url(own.rows[label])).status_code == 403, label
    home = cashier.get("/shop/").content.decode()
    assert "Received today" in home
    assert "Balance" not in home


def test_nobody_reaches_the_console_from_a_shop(own: FullShop, owner: Client) -> None:
    assert owner.get("/admin/").status_code == 403
    for label, row in own.rows.items():
        page = owner.get(row_url(row)).content.decode()
        assert '"/admin/' not in page, label


def test_lists_take_no_filter_that_is_not_declared(own: FullShop, rival: FullShop, owner: Client) -> None:
    for query in (
        f"merchant={rival.shop.merchant.pk}",
        f"merchant__id={rival.shop.merchant.pk}",
        "mode=live",
        "payer_name__startswith=S",
    ):
        page = owner.get(f"{list_url('payments.payment')}?{query}")
        assert page.status_code in (302, 400), query


def test_login_without_the_role_of_shops_gets_no_page(own: FullShop, owner: Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER ROLE thaiqr_shop RENAME TO thaiqr_gone")
    assert owner.get("/shop/").status_code == 503
    assert postgresql.rights_of_shops().level == Level.WARNING


def test_shop_is_closed_without_the_views(own: FullShop, owner: Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute(shop_fence.DROP)
    for path in ("/shop/", list_url("payments.payment"), row_url(own.rows["payments.payment"])):
        assert owner.get(path).status_code == 503, path


@pytest.mark.parametrize(
    ("model", "index"),
    [
        (Payment, "payment_filtered"),
        (Transaction, "transaction_filtered"),
        (RequestRecord, "merchant_id_created_at_idx"),
    ],
)
def test_list_of_a_merchant_is_read_by_its_index(shop: Shop, model: Any, index: str) -> None:
    page: Any = site._registry[model]
    with shop_fence.reading_for(shop.merchant.pk):
        for each in ("seqscan", "sort", "bitmapscan"):  # the tables of the test are small
            rows.run(f"SET LOCAL enable_{each} = off", [])
        own = shop_fence.narrowed(model.objects.all(), shop.merchant.pk).order_by(*NEWEST_FIRST)
        with CaptureQueriesContext(connection) as captured:
            merging.keys(own, page.kind_columns, 50, 100)
        found = rows.run(f"EXPLAIN {captured.captured_queries[0]['sql']}", [])
        plan = "\n".join(line for (line,) in found.fetchall())
    assert index in plan, plan
    assert "->  Sort " not in plan, plan
