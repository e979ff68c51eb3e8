"""The page *Inbox*: what is handed over to a person or a role, with its age."""

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from audit_trail import presentation
from audit_trail.note_models import Note
from audit_trail.notes.acts import shown_text
from audit_trail.notes.pages import HandedOverFilter
from audit_trail.pages import ReadOnlyAdmin
from core import clock, request_context
from core.console import admin_columns

OVERDUE_AGE = timedelta(days=1)  # older hand-overs are red
ASKED_AGE = timedelta(days=30)  # how long a person sees what they asked


class InboxFilter(HandedOverFilter):
    """Without a choice, what waits for anybody."""

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return [("me", _("Me")), ("team", _("My team")), ("asked", _("Others, by me"))]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        if self.value() == "asked":
            mine = queryset.filter(actor=request_context.actor_of(request.user))
            return mine.filter(created_at__gt=clock.now() - ASKED_AGE)
        return queryset.filter(pk__in=self.notes(request).values("pk"))


@admin.register(Note)
class InboxAdmin(ReadOnlyAdmin):
    """What is handed over, the oldest first."""

    shows_personal_data = True
    list_display = ["age", "about", "shown_text", "by", "to", "shown_answer"]
    list_display_links = None
    list_filter = [InboxFilter]
    list_select_related = ["answer"]
    indexed_filters = frozenset({"handed_to"})
    search_fields = ["=subject_id"]
    search_help_text = _("Search by the id of what was handed over.")
    ordering = ["created_at", "id"]
    fields = ["about", "shown_text", "by", "to", "created_at", "shown_answer"]
    export_columns = ("id", "created_at", "actor", "handed_to", "object_type", "subject_id")

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).filter(handed_to__isnull=False)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        return super().changelist_view(request, {"title": _("Inbox")} | (extra_context or {}))

    @admin.display(description=_("age"))
    def age(self, note: Note) -> str:
        age = clock.now() - note.created_at
        tone = "state bad" if note.answer_id is None and age > OVERDUE_AGE else "nowrap"
        return format_html('<span class="{}">{}</span>', tone, clock.format_duration(age))

    @admin.display(description=_("about"))
    def about(self, note: Note) -> Any:
        label, key = presentation.type_label(note.object_type), admin_columns.copyable(note.object_id)
        return format_html('<a href="{}">{} {}</a>', presentation.page_of(note), label, key)

    @admin.display(description=_("note"))
    def shown_text(self, note: Note) -> str:
        return shown_text(note)

    @admin.display(description=_("answer"))
    def shown_answer(self, note: Note) -> str | None:
        if note.answer is None:
            return None
        return f"{note.answer.by}: {shown_text(note.answer)}"
