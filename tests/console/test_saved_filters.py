"""A member of staff saves the filters of a list under a name, uses them again, and deletes them."""

from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, transaction
from django.test import Client

from console import saved_filters
from console.models import SavedFilter
from tests.concurrency import run_concurrently
from tests.conftest import Shop
from tests.reconciliation.builders import staff_client

pytestmark = pytest.mark.slow

PAYMENTS = "/admin/payments/payment/"
QUERY = "status=succeeded&amount_from=1000"


def save(client: Client, name: str = "Large", query: str = QUERY, label: str = "payments.payment") -> Any:
    form = {"list": label, "name": name, "query": query}
    return client.post("/admin/filters/save/", form, follow=True)


def shown(client: Client, path: str = PAYMENTS) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def test_saved_filter_is_a_chip_above_its_list(admin_client: Client, shop: Shop) -> None:
    paid = shop.qr_code(amount=200_000)["payment_id"]
    answer = save(admin_client)
    assert "The filter “Large” is saved." in unescape(answer.content.decode())
    assert answer.redirect_chain == [(f"{PAYMENTS}?{QUERY}", 302)]
    page = shown(admin_client)
    assert f'<a href="?{QUERY}">Large</a>' in page
    assert paid in page
    assert paid not in shown(admin_client, f"{PAYMENTS}?{QUERY}")
    assert "Large" not in shown(admin_client, "/admin/refunds/refund/")


def test_filter_in_use_is_marked_and_can_be_saved(admin_client: Client, db: None) -> None:
    assert "Save this filter" not in shown(admin_client)
    assert "Save this filter" in shown(admin_client, f"{PAYMENTS}?{QUERY}")
    save(admin_client)
    assert 'aria-current="true">Large</a>' in shown(admin_client, f"{PAYMENTS}?{QUERY}")


def test_filters_are_of_their_owner_only(admin_client: Client, admin_user: User) -> None:
    save(admin_client)
    other = staff_client("somsri", "view_payment")
    assert "Large" not in shown(other)
    saved = SavedFilter.objects.get()
    assert saved.user == admin_user
    assert other.post(f"/admin/filters/{saved.pk}/delete/").status_code == 404
    assert SavedFilter.objects.count() == 1


def test_deleted_filter_is_gone(admin_client: Client, db: None) -> None:
    save(admin_client)
    number = SavedFilter.objects.get().pk
    answer = admin_client.post(f"/admin/filters/{number}/delete/", follow=True)
    assert answer.redirect_chain == [(PAYMENTS, 302)]
    assert "The filter “Large” is deleted." in unescape(answer.content.decode())
    assert not SavedFilter.objects.exists()
    assert admin_client.post(f"/admin/filters/{number}/delete/").status_code == 404


def test_same_name_replaces_the_filter(admin_client: Client, db: None) -> None:
    save(admin_client)
    save(admin_client, query="status=failed")
    assert list(SavedFilter.objects.values_list("name", "query")) == [("Large", "status=failed")]


def test_search_page_and_order_are_not_saved(admin_client: Client, db: None) -> None:
    save(admin_client, query="q=Somchai&status=failed&p=3&o=1&all=&e=1&merchant=")
    assert SavedFilter.objects.get().query == "status=failed"
    answer = save(admin_client, name="Only a search", query="q=Somchai&p=3")
    assert "Choose a filter first" in answer.content.decode()
    assert SavedFilter.objects.count() == 1


def test_filter_by_an_empty_text_is_saved_and_an_empty_field_is_not() -> None:
    assert saved_filters.filters_of("match_result__exact=&amount_from=") == "match_result__exact="


@pytest.mark.parametrize("name", ["", " ", "x" * 61, "\0"])
def test_name_is_required_and_short(admin_client: Client, name: str) -> None:
    assert "Give the filter a name" in save(admin_client, name=name).content.decode()
    assert not SavedFilter.objects.exists()


def test_list_must_exist_and_be_visible(db: None) -> None:
    client = staff_client("somsri", "view_payment")
    assert save(client, label="refunds.refund").status_code == 403
    for label in ("", "payments.nothing", "console.savedfilter", "\0"):
        assert save(client, label=label).status_code == 404
    assert client.get("/admin/filters/save/").status_code == 405
    assert not SavedFilter.objects.exists()


def test_number_of_filters_is_limited(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_filters, "MAX_SAVED", 2)
    for name in ("one", "two", "three"):
        answer = save(admin_client, name=name)
    assert "You have 2 saved filters. Delete one first." in answer.content.decode()
    save(admin_client, name="one", query="status=failed")  # to replace one is possible
    assert set(SavedFilter.objects.values_list("name", "query")) == {("one", "status=failed"), ("two", QUERY)}


@pytest.mark.django_db(transaction=True)
def test_limit_holds_for_requests_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_filters, "MAX_SAVED", 3)
    user = User.objects.create_user("somsri", is_staff=True)

    def saving(number: int) -> Any:
        def run() -> bool:
            try:
                saved_filters.save(user, "payments.payment", f"n{number}", QUERY)
            except saved_filters.TooMany:
                return False
            return True

        return run

    assert sum(run_concurrently(*(saving(number) for number in range(8)))) == 3
    assert SavedFilter.objects.count() == 3


@pytest.mark.parametrize("values", [{"name": ""}, {"query": ""}])
def test_database_refuses_an_empty_filter(admin_user: User, values: dict[str, str]) -> None:
    saved = saved_filters.save(admin_user, "payments.payment", "Large", QUERY)
    with pytest.raises(DatabaseError), transaction.atomic():
        SavedFilter.objects.filter(pk=saved.pk).update(**values)


def test_name_of_a_filter_is_escaped(admin_client: Client, db: None) -> None:
    save(admin_client, name="<b>big</b>")
    assert "<b>big</b>" not in admin_client.get(PAYMENTS).content.decode()
