"""Exceptions in the console: the list, and the page of one exception."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy as _

import banks
from audit_trail.bulk_acts import BulkActPages, ChosenRow
from audit_trail.notes.acts import note_acts
from audit_trail.notes.pages import HandedOverFilter, NotedPages
from core import clock, ids, money
from core.console import admin_columns, personal_data
from core.console.admin_filters import AmountFilter
from core.console.admin_lists import FILTERED_ROWS, MAX_FOUND, DeclaredChangeList
from core.console.admin_search import texts_of
from core.database.columns import same
from merchants.admin_filters import MerchantFilter
from payments.models import Payment
from reconciliation import models
from reconciliation.exceptions import detail_page, explanations, payer_names, summaries
from reconciliation.exceptions.exception_acts import EXCEPTION_ACTS, VIEW_PERMISSION

OVERDUE_AGE = timedelta(days=1)  # older exceptions are red
DEFAULT_ORDERING = ("is_sandbox", "opened_at", "id")
AGES = {
    "hour": (_("more than an hour"), timedelta(hours=1)),
    "day": (_("more than a day"), OVERDUE_AGE),
    "week": (_("more than a week"), timedelta(days=7)),
}


class AgeFilter(admin.SimpleListFilter):
    title, parameter_name = _("age"), "age"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [(key, str(label)) for key, (label, _age) in AGES.items()]

    def queryset(self, request: Any, queryset: Any) -> Any:
        value = self.value()
        return queryset.filter(opened_at__lt=clock.now() - AGES[value][1]) if value in AGES else queryset


class PayeeFilter(MerchantFilter):
    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        if not self.value("merchant"):
            return queryset
        theirs = Q(merchant__in=self.found)
        for each in self.found:
            for terms in each.all_terms:
                theirs |= Q(merchant=None, bank=terms.bank, biller_id=terms.biller_id)
        return queryset.filter(theirs)


class BankFilter(admin.SimpleListFilter):
    title, parameter_name = _("bank"), "bank"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [(bank, bank) for bank in sorted({"omise", "sandbox", *banks.LIVE_BANKS})]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(bank=self.value()) if self.value() else queryset


class ExceptionChangeList(DeclaredChangeList):
    """Orders by age.

    `BoundedChangeList` does not fit: ids of exceptions do not sort by age. Here every filter and order has an
    index instead.
    """

    def get_ordering(self, request: HttpRequest, queryset: Any) -> list[Any]:
        """The chosen column, then the age in the same direction, as in the indexes."""
        ordering: list[Any] = super().get_ordering(request, queryset)
        # Django appends the default ordering to the chosen one.
        if not (chosen := ordering[: -len(DEFAULT_ORDERING)]):
            return ordering
        sign = "-" if chosen[0].startswith("-") else ""
        return list(dict.fromkeys([*chosen, f"{sign}opened_at", f"{sign}id"]))

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.model_admin.prepare_rows(self.result_list)


class ReconciliationExceptionAdmin(NotedPages, BulkActPages):
    object_acts = EXCEPTION_ACTS + note_acts("reconciliation.reconciliationexception")
    returns_to_list = True
    explains_personal_data = True
    list_display = ["age", "amount", "explanation", "candidate", "merchant", "bank", "handed_to"]
    export_columns = ("id", "reason", "amount", "merchant", "bank", "opened_at")
    list_display_links = ["explanation"]
    list_filter = [PayeeFilter, "reason", AgeFilter, AmountFilter, BankFilter, HandedOverFilter]
    mode_column = "bank"
    list_select_related = ["merchant"]
    ordering = DEFAULT_ORDERING
    search_fields = ["search_text"]
    search_help_text = _("Search by reference, bank reference, amount, id, or the payer's name.")
    sortable_by = None

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm(VIEW_PERMISSION)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return ExceptionChangeList

    def rows_of_mode(self, rows: Any, mode: str) -> Any:
        return rows.filter(is_sandbox=mode == "test")  # by an index

    def prepare_rows(self, shown: Sequence[Any]) -> None:
        super().prepare_rows(shown)
        models.listing.name_merchants(shown)
        found = summaries.by_id([row.pk for row in shown])
        for row in shown:
            row.summary = found.get(row.pk)  # none if a row outlived its subject

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        """Exceptions with this id or amount, and newer ones with all words in their ids and references."""
        texts = texts_of(search_term)
        queryset = self.of_mode(request, queryset)
        if not texts:
            return queryset, False
        known = models.ReconciliationException.objects.all()
        newer = known.filter(opened_at__gt=older) if (older := _newest_not_searched()) else known
        if named := payer_names.find(texts[0]):
            self.record_search({"name": personal_data.masked_name(texts[0]), "rows": len(named)})
        sources = [known.filter(pk__in=[*texts, *named])]
        for text in texts:
            words = text.upper().split()
            sources.append(newer.filter(*(Q(search_text__contains=word) for word in words)))
        # The rows of messages do not name the payment of what they contradict, which can change.
        payments = Payment.objects.filter(
            reduce(or_, (Q(pk=text) | same("reference", text) for text in texts))
        )
        about = models.BankNotification.objects.filter(bank_transaction__payment__in=payments)
        sources.append(known.filter(pk__in=about.values("pk")))
        if (amount := money.parse(search_term)) is not None:
            sources.append(known.filter(amount=amount))
        found = {key for rows in sources for key in rows.values_list("pk", flat=True)[:MAX_FOUND]}
        return queryset.filter(pk__in=found), False

    def limit_note(self, changes: Any) -> str:
        if changes.query and _newest_not_searched():
            text = gettext("The search finds parts of texts in the newest %(count)s exceptions only.")
            return text % {"count": f"{FILTERED_ROWS:,}"}
        return super().limit_note(changes)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The page of an exception, also after it was resolved."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        summary = self.get_object(request, unquote(object_id))
        self.follow_mode(request, summary.pk)
        self.record_view(summary.pk)
        links = self.act_links(request, summary)
        context = {
            **self.admin_site.each_context(request),
            **detail_page.context(summary),
            "title": summary.title,
            "opts": self.opts,
            "preserved_filters": self.get_preserved_filters(request),
            "list_filters": request.GET.get("_changelist_filters", ""),
            **self.noted(request, summary),
            "can_attach": any(each.slug == "attach" for each in links),
            "act_links": [each for each in links if each.slug != "attach"],
        }
        return TemplateResponse(request, "admin/reconciliation/exception.html", context)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """What waits or has waited: a resolved exception is no row of the list. Raises Http404."""
        found = summaries.by_id([object_id]) if ids.looks_right(object_id, "") else {}
        if object_id not in found:
            raise Http404
        return found[object_id]

    def sentence_of(self, row: Any) -> str:
        """What was decided last, or why it waits."""
        decision = models.Resolution.latest(row.pk)
        return str(
            explanations.RESOLUTIONS[models.ResolutionType(decision.type)] if decision else row.explanation
        )

    def chosen_rows(self, ids_: Sequence[str]) -> list[ChosenRow]:
        known = [each for each in ids_ if ids.looks_right(each, "")]
        subjects = summaries.by_id(known)
        waiting = models.ReconciliationException.objects.select_related("merchant").in_bulk(known)
        models.listing.name_merchants(waiting.values())
        return [_chosen(each, subjects.get(each), waiting.get(each)) for each in ids_]

    def prepare_export(self, page: Sequence[Any]) -> None:
        models.listing.name_merchants(page)

    @admin.display(description=_("age"), ordering="opened_at")
    def age(self, row: models.ReconciliationException) -> str:
        open_time = clock.now() - row.opened_at
        color = "; font-weight: bold; color: var(--error-fg)" if open_time > OVERDUE_AGE else ""
        return format_html(
            '<span style="white-space: nowrap{}">{}</span>', color, clock.format_duration(open_time)
        )

    @admin.display(description=_("reason"), ordering="reason")
    def explanation(self, row: Any) -> str:
        return str(row.summary.explanation if row.summary else row.get_reason_display())

    @admin.display(description=_("possible payment"))
    def candidate(self, row: Any) -> str | None:
        possible = row.summary.candidates if row.summary else []
        best = next((each for each in possible if each.is_unpaid), None)
        if best is None:
            return None
        link = admin_columns.link_to(Payment, best.payment.id, admin_columns.copyable(best.payment.id))
        return format_html("<span>{}<br>{}</span>", best.explanation, link)


def _chosen(subject_id: str, summary: Any, row: models.ReconciliationException | None) -> ChosenRow:
    """As the list shows it. A row that was resolved meanwhile has left the list."""
    if row is None:
        return ChosenRow(subject_id, summary, summary.title if summary else "", None, None)
    return ChosenRow(subject_id, summary, row.get_reason_display(), row.merchant, row.amount)


def _newest_not_searched() -> datetime | None:
    """When the newest exception was opened whose text a search does not read. None if it reads all."""
    newest_first = models.ReconciliationException.objects.order_by("-opened_at", "-id")
    return newest_first.values_list("opened_at", flat=True)[FILTERED_ROWS : FILTERED_ROWS + 1].first()
