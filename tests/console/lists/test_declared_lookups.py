"""A list of the console takes only the look-ups that it declares, so nobody guesses what it does not show."""

from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.auth.models import User
from django.db.models import CharField, TextField
from django.test import RequestFactory
from django.urls import reverse

from core.console import personal_data
from core.console.admin_lists import MODE
from payments.models import Payment
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import staff_client

pytestmark = pytest.mark.slow

NAME, ACCOUNT = "Malee Srisuk", "4051234567"
PERSONAL = personal_data.NAME_FIELDS | personal_data.ACCOUNT_FIELDS
GUESSES = ("{}__icontains", "{}__regex", "{}__gte", "{}__in", "{}__isnull", "{}")
LISTS: list[Any] = list(admin.site._registry.values())


def page_of(model: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def guesses(model: Any) -> Iterator[str]:
    """Letter by letter for each text, and one of the other ways in turn."""
    for text, other in zip(texts_of(model), cycle(GUESSES), strict=False):
        yield from (f"{text}__startswith", other.format(text))


def texts_of(model: Any, depth: int = 1) -> Iterator[str]:
    """The look-up of each text of a row, and of the rows to which it refers."""
    for field in model._meta.concrete_fields:
        if field.is_relation and depth:
            yield from (f"{field.name}__{each}" for each in texts_of(field.related_model, depth - 1))
        elif isinstance(field, CharField | TextField):
            yield field.name


def test_no_list_takes_a_lookup_that_it_does_not_declare(admin_user: User) -> None:
    request = RequestFactory().get("/")
    request.user = admin_user
    for page in LISTS:
        named = {getattr(each, "parameter_name", None) for each in page.get_list_filter(request)}
        specs = page.get_changelist_instance(request).filter_specs
        declared = named.union(page.indexed_filters, {MODE}, *(each.expected_parameters() for each in specs))
        for lookup in guesses(page.model):
            if lookup in declared:
                assert PERSONAL.isdisjoint(lookup.split("__")), (page, lookup)
                continue
            guessed = RequestFactory().get("/", {lookup: "M"})
            guessed.user = admin_user
            with pytest.raises(DisallowedModelAdminLookup):
                page.get_changelist_instance(guessed)


def test_no_list_searches_or_sorts_by_names_and_accounts(admin_user: User) -> None:
    request = RequestFactory().get("/")
    request.user = admin_user
    for page in LISTS:
        searched = {part for each in page.get_search_fields(request) for part in each.lstrip("=").split("__")}
        assert PERSONAL.isdisjoint(searched), page
        columns = range(len(page.get_list_display(request)) + 1)
        sorted_by = RequestFactory().get("/", {"o": ".".join(map(str, columns))})
        sorted_by.user = admin_user
        order = page.get_changelist_instance(sorted_by).queryset.query.order_by
        assert PERSONAL.isdisjoint(str(each).lstrip("-") for each in order), page


@pytest.mark.parametrize("sees", [False, True])
def test_name_is_not_guessed_letter_by_letter(shop: Shop, bank: SandboxBankClient, sees: bool) -> None:
    code = shop.qr_code(client_name=NAME, client_bank_account=ACCOUNT)
    bank.notify(code, payer_name=NAME, payer_account=ACCOUNT)
    permissions = ["view_payment", "view_banktransaction"]
    client = staff_client("somsri", *permissions, *(["view_personal_data"] if sees else []))
    for lookup in ("client_name__startswith", "payer_name__startswith", "qr_code__payment__client_name"):
        assert client.get(page_of(Payment), {lookup: "M"}).status_code == 400, lookup
    # A form that Django has for select boxes: it searches as the list does.
    complete = {"app_label": "payments", "model_name": "payment", "field_name": "payment", "term": "Malee"}
    assert client.get("/admin/autocomplete/", complete).status_code in (200, 403)
    for query in ("Mal", "Malee", NAME, ACCOUNT, ACCOUNT[-4:], ACCOUNT[:4]):
        found = client.get("/admin/reconciliation/banktransaction/", {"q": query}).content.decode()
        is_found = sees and (query[0] == "M" or query == ACCOUNT[-4:])
        assert (code["payment_id"] in found) == is_found, query
