"""The page *Audit*: what staff did, searchable."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy as _

from audit_trail import presentation
from audit_trail.models import AuditRecord, ChainLink
from audit_trail.notes import inbox  # noqa: F401 (registers the inbox)
from audit_trail.pages import ReadOnlyAdmin
from core.console import admin_lists
from core.console.admin_lists import OFFERED_ROWS, NewestValuesFilter


class DateFilter(admin_lists.DateFilter):
    """Days and months in Bangkok, by an index of the time."""

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        return admin_lists.created_in(queryset, self.values) if self.shown else queryset


class ObjectTypeFilter(admin.SimpleListFilter):
    title, parameter_name = _("object"), "object_type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        newest = AuditRecord.objects.order_by("-pk").values_list("object_type", flat=True)[:OFFERED_ROWS]
        labels = {name: presentation.type_label(name) for name in set(newest)}
        return sorted(labels.items(), key=lambda each: each[1])

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        return queryset.filter(object_type=self.value()) if self.value() else queryset


@admin.register(AuditRecord)
class AuditRecordAdmin(ReadOnlyAdmin):
    list_display = ["created_at", "who", "act", "object", "changed", "reason", "address"]
    export_columns = (
        *("id", "created_at", "actor", "act", "object_type", "object_id"),
        *("merchant_id", "reason", "address", "request_id"),
    )
    list_filter = [("actor", NewestValuesFilter), "act", ObjectTypeFilter, DateFilter]
    search_fields = ["=object_id", "=request_id", "=merchant_id", "=actor"]
    search_help_text = _(
        "Search by id of an object, a request or a merchant, or by actor such as staff:somsri."
    )
    indexed_filters = frozenset({"actor", "act__exact", "object_type", *DateFilter.parameters})
    fields = [
        "created_at", "who", "act", "object", "merchant_id", "changed", "reason", "address", "session",
        "request_id", "chain_link",
    ]  # fmt: skip

    def prepare_rows(self, shown: Sequence[Any]) -> None:
        super().prepare_rows(shown)
        for record, name in zip(shown, presentation.object_names(shown), strict=True):
            record.object_name = name

    @admin.display(description=_("who"))
    def who(self, record: AuditRecord) -> str:
        return presentation.who(record)

    @admin.display(description=_("object"))
    def object(self, record: Any) -> str:
        if not hasattr(record, "object_name"):  # the page of one record
            self.prepare_rows([record])
        page = presentation.page_of(record)
        return format_html('<a href="{}">{}</a>', page, record.object_name) if page else record.object_name

    @admin.display(description=_("changes"))
    def changed(self, record: AuditRecord) -> str:
        lines = ((each,) for each in presentation.changes(record))
        joined = format_html_join(mark_safe("<br>"), "{}", lines)
        return format_html("<span>{}</span>", joined) if joined else ""

    @admin.display(description=_("link in the chain"))
    def chain_link(self, record: AuditRecord) -> str:
        found = ChainLink.objects.filter(record=record).first()
        return str(found) if found else str(_("not yet"))
