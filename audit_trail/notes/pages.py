"""Notes on the pages of the console, and who else may act there."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import Group
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from audit_trail.act_pages import ActingAdmin, ActLink
from audit_trail.note_models import Note
from audit_trail.notes import services
from audit_trail.notes.acts import SLUGS, find_open, shown_text
from core import clock

VIEW_PERMISSION = "audit_trail.view_note"
MAX_SHOWN = 20
PERMISSION_NAME = ("permissions__content_type__app_label", "permissions__codename")


class NotedPages(ActingAdmin):
    """Pages of rows with notes. Their `object_acts` have `note_acts`, whose buttons are beside the notes."""

    def act_links(self, request: HttpRequest, row: Any) -> list[ActLink]:
        return [each for each in super().act_links(request, row) if each.slug not in SLUGS]

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **more: Any) -> HttpResponse:
        row = more.get("obj")
        noted = {} if row is None else self.noted(request, row)
        return super().render_change_form(request, context | noted, *args, **more)

    def prepare_rows(self, shown: Sequence[Any]) -> None:
        super().prepare_rows(shown)
        if "handed_to" in self.list_display:
            found = Note.objects.open().about([services.subject_id(row) for row in shown])
            names = {each.subject_id: each.to for each in found}
            for row in shown:
                row.handed_to = names.get(services.subject_id(row))

    @admin.display(description=_("handed over to"))
    def handed_to(self, row: Any) -> str | None:
        return getattr(row, "handed_to", None)

    def noted(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """What `admin/notes.html` and `admin/who_may.html` show."""
        links = [each for each in super().act_links(request, row) if each.slug in SLUGS]
        found = Note.objects.about([services.subject_id(row)]).order_by("-created_at", "-id")
        may_view = request.user.has_perm(VIEW_PERMISSION)
        return {
            "note_links": links,
            "notes": [(each, shown_text(each)) for each in found[:MAX_SHOWN]] if may_view else [],
            "open_note": find_open(row) if may_view else None,
            "acts_of_others": self._acts_of_others(request, row),
            "ask_finance": next((each for each in links if each.slug == "ask-finance"), None),
        }

    def _acts_of_others(self, request: HttpRequest, row: Any) -> list[tuple[str, str]]:
        """Roles that this person has not, and what they may do now."""
        now, may = clock.now(), request.user.has_perm
        others = [each for each in self.object_acts if each.slug not in SLUGS and not may(each.permission)]
        possible = [each for each in others if each.is_possible(row, now)]
        codenames = {each.permission.partition(".")[2] for each in possible}
        known = Group.objects.filter(permissions__codename__in=codenames).order_by("name")
        roles, labels = defaultdict(list), defaultdict(list)
        for name, *permission in known.values_list("name", *PERMISSION_NAME) if possible else ():
            roles[".".join(permission)].append(name)
        for each in possible:
            labels[", ".join(roles[each.permission])].append(str(each.label))
        return [(names, ", ".join(acts)) for names, acts in labels.items() if names]


class HandedOverFilter(admin.SimpleListFilter):
    """Rows that wait for the reader, or for a role of the reader."""

    title, parameter_name = _("handed over to"), "handed_to"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return [("me", _("Me")), ("team", _("My team")), ("anybody", _("Anybody"))]

    def notes(self, request: HttpRequest) -> Any:
        narrow = {"me": Note.objects.with_person, "team": Note.objects.with_team}.get(self.value() or "")
        return narrow(request.user) if narrow else Note.objects.open()

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        if self.value() not in dict(self.lookup_choices):
            return queryset
        column = "subject_id" if hasattr(queryset.model, "subject_id") else "pk"
        return queryset.filter(**{f"{column}__in": self.notes(request).values("subject_id")})
