"""One search for all of the console: ids, references, amounts in baht, and ids of banks and slips."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import (
    display_for_field,
    display_for_value,
    label_for_field,
    lookup_field,
    quote,
)
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from console.people.roles import SECTIONS
from core import ids, money, plain_text
from core.console import admin_lists

# Rows of one list that the page shows.
MAX_ROWS = 10
MAX_LENGTH = 200
# Lists that are searched, in the order of the menu. Each searches its own fields by index.
SEARCHED = [
    label
    for section in SECTIONS
    for label in section.lists
    if label not in ("reconciliation.reconciliationexception", "auth.user", "auth.group")
]
# Lists in which an amount finds rows. Amounts have no index, so only the newest rows are read.
WITH_AMOUNTS = (
    "payments.payment",
    "refunds.refund",
    "withdrawals.withdrawal",
    "reconciliation.banktransaction",
)
EMPTY = "-"


@dataclass(frozen=True, slots=True)
class Found:
    """Rows of one list: titles of its columns, a link and the cells of each row, and a link to all."""

    label: str
    titles: list[str]
    rows: list[tuple[str, list[Any]]]
    all_url: str


def view(site: admin.AdminSite, request: HttpRequest) -> HttpResponse:
    """The page of results, or the page of the only row that was found."""
    query = plain_text.visible(request.GET.get("q", ""))[:MAX_LENGTH]
    with transaction.atomic():  # many small statements: each alone would be a transaction of its own
        found, is_limited = _search(site, request, query) if query and "\0" not in query else ([], False)
    urls = [url for each in found for url, _cells in each.rows]
    if len(urls) == 1:
        return HttpResponseRedirect(urls[0])
    context = {
        **site.each_context(request),
        "title": _("Search"),
        "query": query,
        "found": found,
        "is_limited": is_limited,
        "newest": f"{admin_lists.FILTERED_ROWS:,}",
    }
    return TemplateResponse(request, "admin/search.html", context)


def _search(site: admin.AdminSite, request: HttpRequest, query: str) -> tuple[list[Found], bool]:
    """What was found, and whether older rows with this amount may exist."""
    searched = [
        model_admin for model_admin in _admins(site, SEARCHED) if model_admin.has_view_permission(request)
    ]
    exact = [found for each in searched if (found := _by_text(each, request, query))]
    # Other lists find rows that belong to this id. The first list of the menu has the row itself.
    key = quote(ids.of_payment(query))
    own = [found for found in exact if any(key in url for url, _cells in found.rows)]
    if own:
        return own[:1], False
    satang = money.parse(query)
    if satang is None:
        return exact, False
    with_amounts = [each for each in _admins(site, WITH_AMOUNTS) if each.has_view_permission(request)]
    by_amount = [_by_amount(each, request, satang) for each in with_amounts]
    return [*exact, *(found for found, _limited in by_amount if found)], any(
        limited for _found, limited in by_amount
    )


def _admins(site: admin.AdminSite, labels: Iterable[str]) -> list[Any]:
    return [site._registry[apps.get_model(label)] for label in labels]


def _by_text(model_admin: Any, request: HttpRequest, query: str) -> Found | None:
    rows, _may_repeat = model_admin.get_search_results(request, model_admin.get_queryset(request), query)
    return _found(model_admin, request, rows, urlencode({"q": query}))


def _by_amount(model_admin: Any, request: HttpRequest, satang: int) -> tuple[Found | None, bool]:
    rows, is_limited = admin_lists.newest(model_admin.get_queryset(request))
    return _found(model_admin, request, rows.filter(amount=satang), ""), is_limited


def _found(model_admin: Any, request: HttpRequest, rows: Any, query: str) -> Found | None:
    meta = model_admin.opts
    related = model_admin.get_list_select_related(request)
    shown = rows.select_related(*related) if isinstance(related, list | tuple) and related else rows
    newest = list(shown.order_by("-pk")[:MAX_ROWS])
    if not newest:
        return None
    model_admin.prepare_rows(newest)
    columns = list(model_admin.get_list_display(request))
    page = f"admin:{meta.app_label}_{meta.model_name}"
    return Found(
        label=capfirst(meta.verbose_name_plural),
        titles=[capfirst(str(label_for_field(each, model_admin.model, model_admin))) for each in columns],
        rows=[
            (
                reverse(f"{page}_change", args=[quote(row.pk)]),
                [_cell(each, row, model_admin) for each in columns],
            )
            for row in newest
        ],
        all_url=f"{reverse(f'{page}_changelist')}?{query}" if query and len(newest) == MAX_ROWS else "",
    )


def _cell(column: str | Callable[[Any], Any], row: Any, model_admin: Any) -> Any:
    field, attribute, value = lookup_field(column, row, model_admin)
    if column == "baht":
        return format_html('<span class="nowrap">{}</span>', value)
    if field is None:
        return display_for_value(value, EMPTY, getattr(attribute, "boolean", False))
    return display_for_field(value, field, EMPTY)
