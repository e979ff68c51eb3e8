"""The search of the header, in the console and in a shop: what the lists find, also while somebody types."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.apps import apps
from django.contrib.admin.utils import (
    display_for_field,
    display_for_value,
    label_for_field,
    lookup_field,
    quote,
)
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from console.people import page_limits
from console.people.roles import SECTIONS
from core import plain_text, request_context
from core.console import admin_columns, admin_search, sites
from core.http import rate_limits
from core.http.rate_limits import RateLimit

# Rows of one list that the page shows, and that are shown while somebody types.
MAX_ROWS, MAX_TYPED = 10, 4
MAX_LENGTH = 200
# Of one person. Somebody who types asks three times a second.
RATE = RateLimit(per_second=3, burst=40)
# Lists that are searched, in the order of the menu.
NOT_SEARCHED = ("reconciliation.reconciliationexception", "auth.group")
SEARCHED = [label for section in SECTIONS for label in section.lists if label not in NOT_SEARCHED]
# Those that are searched while somebody types.
TYPED = {
    *("payments.payment", "links.paymentlink", "refunds.refund", "withdrawals.withdrawal"),
    *("settlements.settlement", "merchants.merchant", "reconciliation.banktransaction", "auth.user"),
}
EMPTY = "-"


@dataclass(frozen=True, slots=True)
class Found:
    """Rows of one list: titles of its columns, a link and the cells of each row, and a link to all."""

    label: str
    titles: list[str]
    rows: list[tuple[str, list[Any]]]
    all_url: str


def lists(site: Any, request: HttpRequest) -> list[Any]:
    found = (site._registry[apps.get_model(label)] for label in site.searched)
    return [each for each in found if each.has_view_permission(request)]


def view(request: HttpRequest, is_typed: bool = False) -> HttpResponse:
    """The page of results, or the page of the only row that was found. `is_typed`: the first rows as options.

    What somebody types finds nobody by name or account, because each such search is recorded.
    """
    searched = lists(sites.site_of(request), request)
    if not searched:
        raise PermissionDenied
    room = rate_limits.consume(f"search:{request.user.pk}", RATE)
    if room is not None and not room.allowed:
        return page_limits.later(request, 429, room.retry_after, page_limits.TOO_MANY_SEARCHES)
    if is_typed:
        request_context.hide_personal_data()
        searched = [each for each in searched if each.opts.label_lower in TYPED]
    query = plain_text.visible(request.GET.get("q", ""))[:MAX_LENGTH]
    with transaction.atomic():  # many small statements: each alone would be a transaction of its own
        is_sought = query and "\0" not in query
        found = _search(searched, request, query, MAX_TYPED if is_typed else MAX_ROWS) if is_sought else []
    urls = [url for each in found for url, _cells in each.rows]
    if is_typed:
        context = {"found": found, "count": len(urls), "query": query}
        return TemplateResponse(request, "admin/search_options.html", context)
    if len(urls) == 1:
        return HttpResponseRedirect(urls[0])
    note = admin_search.limit_note() if getattr(request, "is_search_limited", False) else ""
    return sites.page(request, "admin/search.html", _("Search"), query=query, found=found, note=note)


def _search(searched: list[Any], request: Any, query: str, limit: int) -> list[Found]:
    found = [each for page in searched if (each := _found(page, request, query, limit))]
    # Other lists find rows that belong to this id. The first list of the menu has the row itself.
    keys = {key for each in request.__dict__.get("searched_ids", {}).values() for key in each}
    own = [each for each in found if len(keys) == 1 and any(quote(*keys) in url for url, _cells in each.rows)]
    return own[:1] or found


def _found(model_admin: Any, request: HttpRequest, query: str, limit: int) -> Found | None:
    rows, _may_repeat = model_admin.get_search_results(request, model_admin.get_queryset(request), query)
    meta, related = model_admin.opts, model_admin.get_list_select_related(request)
    shown = rows.select_related(*related) if isinstance(related, list | tuple) and related else rows
    newest = list(shown.order_by("-pk")[:limit])
    if not newest:
        return None
    model_admin.prepare_rows(newest)
    names = getattr(model_admin, "search_columns", ()) or model_admin.get_list_display(request)
    columns = admin_columns.columns(model_admin.model, names)
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
        all_url=f"{reverse(f'{page}_changelist')}?{urlencode({'q': query})}" if len(newest) == limit else "",
    )


def _cell(column: str | Callable[[Any], Any], row: Any, model_admin: Any) -> Any:
    field, attribute, value = lookup_field(column, row, model_admin)
    if column == "baht":
        return format_html('<span class="nowrap">{}</span>', value)
    if field is None:
        return display_for_value(value, EMPTY, getattr(attribute, "boolean", False))
    return display_for_field(value, field, EMPTY)
