"""The base class of all admin pages."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import PAGE_VAR, ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import BooleanField, Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy as _

from audit_trail import recording, values
from audit_trail.acts import Act
from core import clock, money
from core.console import admin_columns, admin_lists, personal_data, summaries
from core.console.admin_search import SearchedList, limit_note
from core.console.summaries import Summary
from core.database import replica
from core.observing import security_log
from core.observing.security_log import SecurityEvent

CAUSE_FIELDS = ("actor", "request_id")


class RecordedAdmin(admin.ModelAdmin[Any]):
    """Django's pages, with records in the audit trail instead of Django's own log."""

    admin_site: Any
    indexed_filters: ClassVar[frozenset[str]] = frozenset()
    """Names of filters, or look-ups of links, that find few rows by an index."""
    mode_column: ClassVar[str] = ""
    """What `admin_lists.of_mode` tells live and test rows by. Empty: the list shows both."""

    def prepare_rows(self, shown: Sequence[Any]) -> None:
        """Add what the columns need to rows that a page shows, by a fixed number of statements."""

    def construct_change_message(self, request: Any, form: Any, formsets: Any, add: bool = False) -> Any:
        names = form.changed_data
        before, after = values.of_form(form.initial, names), values.of_form(form.cleaned_data, names)
        return {"before": before, "after": after}

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        recording.write(Act.ADDED, obj, after=values.filled(message["after"]))

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        recording.write(Act.CHANGED, obj, **message)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        for row in queryset:
            recording.write(Act.DELETED, row, before=values.filled(values.of_row(row)))

    def of_mode(self, request: HttpRequest, rows: Any) -> Any:
        """The rows of the mode that the site shows; the same object if there is no other."""
        mode = self.mode_column and self.admin_site.narrowed_mode(request)
        return self.rows_of_mode(rows, mode) if mode else rows

    def rows_of_mode(self, rows: Any, mode: str) -> Any:
        return admin_lists.of_mode(rows, self.mode_column, mode)

    def follow_mode(self, request: HttpRequest, object_id: str) -> None:
        """Let the site show the mode of this row."""
        if not self.mode_column or (mode := self.admin_site.narrowed_mode(request)) is None:
            return
        row = self.get_object(request, object_id)
        rows = self.model._default_manager.filter(pk=getattr(row, "pk", None))
        other = "test" if mode == "live" else "live"
        if self.rows_of_mode(rows, other).exists():
            self.admin_site.follow_mode(request, other)

    def get_actions(self, request: HttpRequest) -> Any:
        """Without Django's action to delete many rows, which is not one transaction with its records."""
        return {name: act for name, act in super().get_actions(request).items() if name != "delete_selected"}

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return admin_lists.DeclaredChangeList

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Refuse an action that the user may not run. Django shows the list as if nothing was asked."""
        asked = set(request.POST.getlist("action")) - {""}
        if asked and self.has_view_or_change_permission(request) and asked - set(self.get_actions(request)):
            raise PermissionDenied
        title = {"title": capfirst(self.opts.verbose_name_plural)}
        return super().changelist_view(request, title | (extra_context or {}))

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        query = urlencode({"q": unquote(object_id)})
        return HttpResponseRedirect(f"{reverse('admin:audit_trail_auditrecord_changelist')}?{query}")

    def record_view(self, object_id: str) -> None:
        """Record in the audit trail and the security log that somebody saw personal data of this object."""
        if personal_data.is_hidden():
            return
        recording.viewed(self.opts.label_lower, object_id)
        subject = f"{self.opts.model_name}:{object_id}"
        security_log.record(SecurityEvent.PERSONAL_DATA_VIEWED, subject=subject)


class ReadOnlyAdmin(SearchedList, RecordedAdmin):
    """Pages that only read; services change rows."""

    shows_personal_data = False
    """Whether a page shows names or messages of customers. Then each view of one is recorded.

    `core.console.personal_data` masks them for staff without the permission.
    """
    summary_of: Callable[[Any, datetime], Summary] | None = None
    """The sentence with which the page of a row begins. Then the page shows no empty values."""
    export_columns: ClassVar[Sequence[str] | None] = None
    """Fields of the model. A method `export_<name>` of the page gives another value than the field."""
    show_full_result_count = False
    # Counts for each value of a filter would read the whole table.
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50
    paginator = admin_lists.BoundedPaginator
    sortable_by: ClassVar[Any] = ()

    def get_list_display(self, request: HttpRequest) -> Any:
        return admin_columns.columns(self.model, super().get_list_display(request))

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return admin_lists.BoundedChangeList

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        view = super().changelist_view
        read = replica.reads(view) if request.method == "GET" else view
        shown: HttpResponse = read(request, extra_context)
        context = getattr(shown, "context_data", None) or {}
        if "cl" in context:
            query = request.GET.copy()
            query.pop(PAGE_VAR, None)
            if mode := self.admin_site.narrowed_mode(request):
                query[admin_lists.MODE] = mode
            context["export"] = {"list": self.opts.label_lower, "query": query.urlencode()}
            context["subtitle"] = context.get("subtitle") or self.limit_note(context["cl"])
        return shown

    def sentence_of(self, row: Any) -> str:
        """How the row stands and what comes next, as staff read it on its page and after an act, or empty."""
        return "" if self.summary_of is None else str(self.summary_of(row, clock.now()).text)

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """What the template of a row shows besides its fields. Django has checked the permission."""
        if self.summary_of is None:
            return {}
        return summaries.context(request, self.summary_of(row, clock.now()))

    def prepare_rows(self, shown: Sequence[Any]) -> None:
        for row in shown:
            personal_data.conceal(row)

    def limit_note(self, changes: Any) -> str:
        """A sentence about rows that the list does not show, or empty."""
        if changes.is_search_limited:
            return limit_note()
        if getattr(changes, "is_limited", False):
            text = gettext("Filters look at the newest %(count)s rows only; a search finds older ones.")
            return text % {"count": f"{admin_lists.FILTERED_ROWS:,}"}
        if changes.result_count == admin_lists.MAX_COUNTED:
            return gettext("The first %(count)s rows.") % {"count": f"{admin_lists.MAX_COUNTED:,}"}
        return ""

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fields with the columns of a `CausedRow` last. Django has them first."""
        found = super().get_fields(request, obj)
        names = [name for name in found if not str(name).endswith(admin_columns.UNREADABLE)]
        return sorted(names, key=CAUSE_FIELDS.__contains__)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fields in the forms of lists: amounts in baht, coloured states, ids that copy."""
        return [
            (title, {**options, "fields": admin_columns.details(self, self._shown(obj, options["fields"]))})
            for title, options in super().get_fieldsets(request, obj)
        ]

    def _shown(self, row: Any, names: Any) -> Any:
        """A page that begins with a sentence shows no empty values."""
        has_all = self.summary_of is None or row is None
        return names if has_all else [name for name in names if self.has_value(row, name)]

    def has_value(self, row: Any, name: str) -> bool:
        """Whether a row has something to show under the name of a field or a method of this page."""
        # A field goes before a method of the page with its name, such as `url`.
        if (field := admin_columns.field_of(self.model, name)) is not None:
            value = getattr(row, field.attname)
        else:
            show = getattr(self, name, None)
            value = show(row) if show else getattr(row, name)
        return value not in (None, "", False, [])

    @admin.display(description=_("amount"))
    def baht(self, row: Any) -> str | None:
        """Return the amount of a row that has one, as staff read it."""
        return None if row.amount is None else money.display(row.amount)

    def get_list_filter(self, request: HttpRequest) -> Any:
        """Replace filters of columns without choices, because Django would read the whole table for them."""
        return [
            (value, admin_lists.NewestValuesFilter) if self._has_open_values(value) else value
            for value in super().get_list_filter(request)
        ]

    def _has_open_values(self, name: Any) -> bool:
        field = admin_columns.field_of(self.model, name) if isinstance(name, str) else None
        return not (field is None or field.is_relation or field.choices or isinstance(field, BooleanField))

    def record_search(self, details: dict[str, Any]) -> None:
        recording.searched(self.opts.label_lower, details)
        subject = f"{self.opts.model_name}:search"
        security_log.record(SecurityEvent.PERSONAL_DATA_VIEWED, subject=subject)

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        """In the mode that the site shows."""
        return super().get_search_results(request, self.of_mode(request, queryset), search_term)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        title = {"title": capfirst(self.opts.verbose_name)}
        self.follow_mode(request, unquote(object_id))
        shown: HttpResponse = super().change_view(request, object_id, form_url, title | (extra_context or {}))
        if self.shows_personal_data and shown.status_code == 200:
            self.record_view(unquote(object_id))
        return shown

    def prepare_export(self, page: Sequence[Any]) -> None:
        """Load what the cells of many rows need, by a fixed number of statements."""

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    has_change_permission = has_delete_permission = has_add_permission

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Raises IncorrectLookupParameters also for U+0000, which PostgreSQL refuses."""
        if "%00" in request.GET.urlencode():
            raise IncorrectLookupParameters
        changes: Any = super().get_changelist_instance(request)
        changes.search_help_text = changes.search_help_text or self.search_help()
        changes.is_search_limited = getattr(request, "is_search_limited", False)
        return changes

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """None also for an id with U+0000, which PostgreSQL refuses."""
        return None if "\0" in object_id else super().get_object(request, object_id, from_field)

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        """Hide names only here, because services may get the row of `get_object`."""
        context |= self.page_context(request, obj)
        personal_data.conceal(obj)
        shown: HttpResponse = super().render_change_form(request, context, add, change, form_url, obj)
        return shown
