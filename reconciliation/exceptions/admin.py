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
from reconciliation.exceptions import detail_page, summaries
from reconciliation.exceptions.action_admin import ExceptionActionAdmin, get_summary_or_404
from reconciliation.exceptions.explanations import format_duration
from reconciliation.exceptions.permissions import may_view_exceptions
from reconciliation.exceptions.summaries import ExceptionSummary
from reconciliation.models import ReconciliationException

OVERDUE_AGE = timedelta(days=1)
"""After this an exception is shown in red."""
DEFAULT_ORDERING = ("is_sandbox", "opened_at", "id")
MAX_FILTER_CHOICES = 100
"""Merchants, or banks, that a filter offers; a page of thousands helps nobody."""
# The index is asked for one value after the other, so that nothing else of the list is read.
DISTINCT_VALUES = """
WITH RECURSIVE found (value) AS (
    SELECT min({0}) FROM reconciliation_reconciliationexception
    UNION ALL
    SELECT (SELECT min({0}) FROM reconciliation_reconciliationexception WHERE {0} > value) FROM found WHERE
    value IS NOT NULL
)
SELECT value FROM found WHERE value IS NOT NULL LIMIT %s
"""
AGES = {
    "hour": ("more than an hour", timedelta(hours=1)),
    "day": ("more than a day", OVERDUE_AGE),
    "week": ("more than a week", timedelta(days=7)),
}


class AgeFilter(admin.SimpleListFilter):
    title = parameter_name = "age"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [(key, label) for key, (label, _) in AGES.items()]

    def queryset(self, request: Any, queryset: Any) -> Any:
        value = self.value()
        return queryset.filter(opened_at__lt=clock.now() - AGES[value][1]) if value in AGES else queryset


class LiveOrSandboxFilter(admin.SimpleListFilter):
    title = parameter_name = "money"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [("live", "Live"), ("sandbox", "Sandbox")]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(is_sandbox=self.value() == "sandbox") if self.value() else queryset


class BankFilter(admin.SimpleListFilter):
    title = parameter_name = "bank"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [(bank, bank) for bank in _distinct_values("bank")]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(bank=self.value()) if self.value() else queryset


class MerchantFilter(admin.SimpleListFilter):
    title, parameter_name = "merchant", "merchant__id__exact"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        merchants = Merchant.objects.filter(pk__in=_distinct_values("merchant_id"))
        return [(merchant.id, str(merchant)) for merchant in merchants.order_by("name", "id")]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(merchant=self.value()) if self.value() else queryset


class ExceptionChangeList(ChangeList):
    """Tells of each row on the page what staff want to know, by statements for the page as a whole."""

    def get_ordering(self, request: HttpRequest, queryset: Any) -> list[Any]:
        """As chosen; among equals by age in the same direction, as the indexes are."""
        ordering: list[Any] = super().get_ordering(request, queryset)
        # Behind what was chosen Django puts the list's own order.
        if not (chosen := ordering[: -len(DEFAULT_ORDERING)]):
            return ordering
        sign = "-" if chosen[0].startswith("-") else ""
        return list(dict.fromkeys([*chosen, f"{sign}opened_at", f"{sign}id"]))

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        found = summaries.by_id([row.pk for row in self.result_list])
        for row in self.result_list:
            row.summary = found.get(row.pk)


class ReconciliationExceptionAdmin(ExceptionActionAdmin):
    list_display = ["age", "amount_in_baht", "explanation", "candidate", "merchant", "bank"]
    list_display_links = ["explanation"]
    list_filter = [LiveOrSandboxFilter, "reason", AgeFilter, BankFilter, MerchantFilter]
    list_select_related = ["merchant"]
    ordering = DEFAULT_ORDERING
    search_fields = ["search_text"]
    search_help_text = "Search by reference, bank transaction id, amount or id."
    sortable_by = None

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_view_exceptions(request)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return ExceptionChangeList

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        """What has all of the words in its ids and references, or is over that amount."""
        condition = Q(*(Q(search_text__contains=result) for result in search_term.upper().split()))
        if (amount := _parse_amount(search_term)) is not None:
            condition |= Q(amount=amount)
        return queryset.filter(condition), False

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        return super().changelist_view(request, {"title": "Exceptions"} | (extra_context or {}))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The page of an exception, also after it was decided."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        summary = get_summary_or_404(unquote(object_id))
        self.record_view(summary.subject.pk)
        context = detail_page.context(summary) | self.buttons(request, summary) | {"title": summary.title}
        context |= self.admin_site.each_context(request)
        return TemplateResponse(request, "admin/reconciliation/exception.html", context)

    @admin.display(ordering="opened_at")
    def age(self, row: ReconciliationException) -> str:
        open_time = clock.now() - row.opened_at
        color = "; font-weight: bold; color: var(--error-fg)" if open_time > OVERDUE_AGE else ""
        return format_html('<span style="white-space: nowrap{}">{}</span>', color, format_duration(open_time))

    @admin.display(description="reason", ordering="reason")
    def explanation(self, row: Any) -> str:
        summary: ExceptionSummary | None = row.summary
        return summary.explanation if summary else row.get_reason_display()

    @admin.display(description="amount", ordering="amount")
    def amount_in_baht(self, row: ReconciliationException) -> str | None:
        if row.amount is None:
            return None
        return format_html('<span style="white-space: nowrap">{}</span>', money.display(row.amount))

    @admin.display(description="possible payment")
    def candidate(self, row: Any) -> str | None:
        summary: ExceptionSummary | None = row.summary
        best = next((each for each in summary.candidates if each.is_unpaid), None) if summary else None
        if best is None:
            return None
        return format_html("{}<br><small>{}</small>", best.explanation, best.payment.id)


def _distinct_values(column: str) -> list[str]:
    """What stands in a column of the list, each value once."""
    return [value for (value,) in rows.run(DISTINCT_VALUES.format(column), [MAX_FILTER_CHOICES]).fetchall()]


def _parse_amount(text: str) -> int | None:
    """Satang of what a person types, such as "1,500" or "1500.00 THB"; None if it is no amount."""
    try:
        return money.satang(text.upper().removesuffix(money.CURRENCY).strip().replace(",", ""))
    except ValueError:
        return None
