"""Pages of the console for one merchant: one function makes them of the classes of the console.

A page shows what its declaration names, and nothing else. Its rows are those of the merchant, by
`operations.data_protection.shop_fence`.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar

from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from audit_trail.act_pages import ActLink, ActPages
from console.people.roles import SHOP_ACTS
from core import clock, request_context
from core.console import admin_columns
from core.console.admin_filters import OwnerFilter
from core.console.admin_lists import BoundedChangeList
from operations.data_protection import shop_fence

PERMISSIONS = frozenset(permission for each in SHOP_ACTS for permission in each.permissions)
NEWEST_FIRST = ("-created_at", "-id")


class NarrowedChangeList(BoundedChangeList):
    """Reads the rows of the merchant by their index, if there is one in the order of `newest_first`."""

    def get_queryset(self, request: Any, exclude_parameters: Any = None) -> QuerySet[Any]:
        self.merchant_id: str = request.membership.merchant_id
        return super().get_queryset(request, exclude_parameters)

    def _owner(self, names: set[str]) -> tuple[type[OwnerFilter], str] | None:
        path = shop_fence.PATHS[self.model._meta.label_lower]
        of_page = {"parameters": (), "lookup": path, "newest_first": self.model_admin.newest_first}
        own: Any = type("OwnRows", (OwnerFilter,), of_page)
        return (own, self.merchant_id) if own.newest_first else None


class NarrowedPages:
    """Goes before a class of the console."""

    opts: Any
    model: Any
    object_acts: Any
    export_columns: ClassVar[Sequence[str]]
    change_form_template = "shop/row.html"
    list_acts: ClassVar[Sequence[Any]] = ()
    newest_first: ClassVar[Sequence[str]] = ()
    newest_days: ClassVar[int] = 0
    """Older rows have no page, if no index has the rows of a merchant in their order. 0: all have one."""
    indexed_filters: ClassVar[frozenset[str]] = frozenset()

    def get_queryset(self, request: Any) -> QuerySet[Any]:
        # Not that of the page of the console, which may read what concerns all merchants.
        found = shop_fence.narrowed(self.model._default_manager.all(), request.membership.merchant_id)
        if not self.newest_days:
            return found
        return found.filter(created_at__gte=clock.now() - timedelta(days=self.newest_days))

    def get_object(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Read it behind the fence, also before an act."""
        with shop_fence.reading_for(request.membership.merchant_id):
            return super().get_object(request, *args, **kwargs)  # type: ignore[misc]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return NarrowedChangeList

    def links_above(self, request: Any) -> list[ActLink]:
        """To pages elsewhere, on which a row of this list begins."""
        return []

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        return {}

    def has_view_permission(self, request: Any, obj: Any = None) -> bool:
        allowed: bool = request.user.has_perm(f"{self.opts.app_label}.view_{self.opts.model_name}")
        return allowed

    def act_links(self, request: HttpRequest, row: Any) -> list[ActLink]:
        with shop_fence.lifted():  # what is possible depends on tables that pages do not show
            links: list[ActLink] = super().act_links(request, row)  # type: ignore[misc]
            return links

    def _act(self, *args: Any) -> HttpResponse:
        """Render the form at once, with the explanation of the act."""
        with shop_fence.lifted():
            shown: Any = super()._act(*args)  # type: ignore[misc]
            page: HttpResponse = shown.render() if hasattr(shown, "render") else shown
            return page

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if request.method == "POST":
            raise PermissionDenied
        links = self.links_above(request)
        context = ({"act_links": links} if links else {}) | (extra_context or {})
        shown: HttpResponse = super().changelist_view(request, context)  # type: ignore[misc]
        if not self.export_columns:
            (getattr(shown, "context_data", None) or {}).pop("export", None)
        return shown

    def change_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method == "POST":
            raise PermissionDenied
        shown: HttpResponse = super().change_view(request, *args, **kwargs)  # type: ignore[misc]
        return shown

    def record_view(self, object_id: str) -> None:
        """Staff only: the merchant's people see their own customers, as its keys do."""
        if request_context.current().actor.startswith("staff:"):
            with shop_fence.lifted():
                super().record_view(object_id)  # type: ignore[misc]

    def found_elsewhere(self, texts: list[str]) -> Any:
        with shop_fence.lifted():  # the list is narrowed after it
            return super().found_elsewhere(texts)  # type: ignore[misc]

    def record_search(self, details: dict[str, Any]) -> None:
        if request_context.current().actor.startswith("staff:"):
            with shop_fence.lifted():
                super().record_search(details)  # type: ignore[misc]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        page: Any = self
        names = [name for name in page.fields if obj is None or page.has_value(obj, name)]
        return [(None, {"fields": admin_columns.details(page, names)})]


def narrowed(page: type[Any], **shown: Any) -> type[Any]:
    """The page with the columns, filters, fields and acts of `shown`. Nothing else is shown.

    It has only the acts that some role of shops may do.
    """
    none = {"list_filter": (), "inlines": (), "object_acts": (), "search_columns": (), "exclude": ()}
    none["export_columns"] = ()
    acts = tuple(each for each in shown.get("object_acts", ()) if each.permission in PERMISSIONS)
    bases = (NarrowedPages, page) if issubclass(page, ActPages) else (NarrowedPages, ActPages, page)
    return type(f"Shop{page.__name__}", bases, none | shown | {"object_acts": acts})
