"""The list of all that waits for a person: live money first, and the oldest first."""

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.html import format_html

from core import clock, money, rows
from merchants.models import Merchant
from receipts import case_page, cases
from receipts.acting_admin import ActingAdmin, case_of
from receipts.cases import Case
from receipts.looking import may_look
from receipts.models import Waiting
from receipts.sentences import span

OLD = timedelta(days=1)
"""After this an exception is shown in red."""
LIVE_FIRST = ("is_sandbox", "since", "id")
OFFERED = 100
"""Merchants, or banks, that a filter offers; a page of thousands helps nobody."""
# The index is asked for one value after the other, so that nothing else of the list is read.
VALUES = """
WITH RECURSIVE found (value) AS (
    SELECT min({0}) FROM receipts_waiting
    UNION ALL
    SELECT (SELECT min({0}) FROM receipts_waiting WHERE {0} > value) FROM found WHERE value IS NOT NULL
)
SELECT value FROM found WHERE value IS NOT NULL LIMIT %s
"""
AGES = {
    "hour": ("more than an hour", timedelta(hours=1)),
    "day": ("more than a day", OLD),
    "week": ("more than a week", timedelta(days=7)),
}


class Age(admin.SimpleListFilter):
    title = parameter_name = "age"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [(key, words) for key, (words, _) in AGES.items()]

    def queryset(self, request: Any, queryset: Any) -> Any:
        value = self.value()
        return queryset.filter(since__lt=clock.now() - AGES[value][1]) if value in AGES else queryset


class Money(admin.SimpleListFilter):
    title = parameter_name = "money"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [("live", "Live"), ("sandbox", "Sandbox")]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(is_sandbox=self.value() == "sandbox") if self.value() else queryset


class Bank(admin.SimpleListFilter):
    title = parameter_name = "bank"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [(bank, bank) for bank in _found("bank")]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(bank=self.value()) if self.value() else queryset


class Whose(admin.SimpleListFilter):
    title, parameter_name = "merchant", "merchant__id__exact"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        merchants = Merchant.objects.filter(pk__in=_found("merchant_id"))
        return [(merchant.id, str(merchant)) for merchant in merchants.order_by("name", "id")]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(merchant=self.value()) if self.value() else queryset


class Told(ChangeList):
    """Tells of each row on the page what staff want to know, by statements for the page as a whole."""

    def get_ordering(self, request: HttpRequest, queryset: Any) -> list[Any]:
        """As chosen; among equals by age in the same direction, as the indexes are."""
        ordering: list[Any] = super().get_ordering(request, queryset)
        # Behind what was chosen Django puts the list's own order.
        if not (chosen := ordering[: -len(LIVE_FIRST)]):
            return ordering
        sign = "-" if chosen[0].startswith("-") else ""
        return list(dict.fromkeys([*chosen, f"{sign}since", f"{sign}id"]))

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        told = cases.of([row.pk for row in self.result_list])
        for row in self.result_list:
            row.case = told.get(row.pk)


class ExceptionsAdmin(ActingAdmin):
    list_display = ["age", "baht", "reason", "nearest", "merchant", "bank"]
    list_display_links = ["reason"]
    list_filter = [Money, "why", Age, Bank, Whose]
    list_select_related = ["merchant"]
    ordering = LIVE_FIRST
    search_fields = ["words"]
    search_help_text = "Reference, the merchant's own, the bank's id, amount in baht, or one of our ids."
    sortable_by = None

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_look(request)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return Told

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        """What has all of the words in its ids and references, or is over that amount."""
        meant = Q(*(Q(words__contains=word) for word in search_term.upper().split()))
        if (amount := _amount(search_term)) is not None:
            meant |= Q(amount=amount)
        return queryset.filter(meant), False

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        return super().changelist_view(request, {"title": "What waits for a person"} | (extra_context or {}))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The page of an exception, also after it was decided."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        case = case_of(unquote(object_id))
        self.record_view(case.subject.pk)
        context = case_page.context(case) | self.buttons(request, case) | {"title": case.title}
        context |= self.admin_site.each_context(request)
        return TemplateResponse(request, "admin/receipts/case.html", context)

    @admin.display(ordering="since")
    def age(self, row: Waiting) -> str:
        waited = clock.now() - row.since
        color = "; font-weight: bold; color: var(--error-fg)" if waited > OLD else ""
        return format_html('<span style="white-space: nowrap{}">{}</span>', color, span(waited))

    @admin.display(ordering="why")
    def reason(self, row: Any) -> str:
        case: Case | None = row.case
        return case.sentence if case else row.get_why_display()

    @admin.display(description="amount", ordering="amount")
    def baht(self, row: Waiting) -> str | None:
        if row.amount is None:
            return None
        return format_html('<span style="white-space: nowrap">{}</span>', money.display(row.amount))

    @admin.display(description="nearest payment")
    def nearest(self, row: Any) -> str | None:
        case: Case | None = row.case
        near = next((near for near in case.nearest if near.is_unpaid), None) if case else None
        if near is None:
            return None
        return format_html("{}<br><small>{}</small>", near.words, near.payment.id)


def _found(column: str) -> list[str]:
    """What stands in a column of the list, each value once."""
    return [value for (value,) in rows.run(VALUES.format(column), [OFFERED]).fetchall()]


def _amount(text: str) -> int | None:
    """Satang of what a person types, such as "1,500" or "1500.00 THB"; None if it is no amount."""
    try:
        return money.satang(text.upper().removesuffix(money.CURRENCY).strip().replace(",", ""))
    except ValueError:
        return None
