"""What every admin page inherits. The theme is chosen here and nowhere else."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import unquote
from django.db.models import Model
from django.http import HttpRequest, HttpResponse

from core import security_log
from core.security_log import SecurityEvent

# What a person may write into the address of a list, and PostgreSQL or Python may fail at.
REFUSED_LOOKUPS = frozenset({"regex", "iregex", "year", "iso_year"})


class ReadOnlyAdmin(admin.ModelAdmin[Any]):
    """Shows and asks; rows change through services, never through a form."""

    shows_personal_data = False
    """Whether a page shows names or messages of customers. Then the security log records each view of one."""
    show_full_result_count = False
    # A count for each value of each filter would read the whole table.
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        shown: HttpResponse = super().change_view(request, object_id, form_url, extra_context)
        if self.shows_personal_data and shown.status_code == 200:
            self.record_view(unquote(object_id))
        return shown

    def record_view(self, object_id: str) -> None:
        """Tell the security log that somebody saw personal data of this object."""
        subject = f"{self.opts.model_name}:{object_id}"
        security_log.record(SecurityEvent.PERSONAL_DATA_VIEWED, subject=subject)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        is_refused = not REFUSED_LOOKUPS.isdisjoint(lookup.split("__"))
        return not is_refused and super().lookup_allowed(lookup, value, request)

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Raises IncorrectLookupParameters also for what PostgreSQL takes in no text."""
        if "%00" in request.GET.urlencode():
            raise IncorrectLookupParameters
        return super().get_changelist_instance(request)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """None also for what PostgreSQL takes in no text."""
        return None if "\0" in object_id else super().get_object(request, object_id, from_field)
