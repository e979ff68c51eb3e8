"""Lists of the console that read a bounded number of rows of any table.

A list shows the newest rows first, by the primary key: ids sort by time. A filter without an index reads the
newest rows only; beside the filter of an owner, the newest rows of this owner. A search compares whole values
by an index. A count ends at 10,000 rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.filters import AllValuesFieldListFilter
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property
from django.utils.translation import gettext, gettext_lazy as _

from core import clock, dates, ids
from core.console.admin_filters import OwnerFilter, TypedField, TypedFilter
from core.database import merging
from core.thai import bangkok_days

# Rows that a filter looks at.
FILTERED_ROWS = 20_000
# Newest rows whose values a filter offers.
OFFERED_ROWS = 2_000
# A list has no page beyond these rows, and its count ends here.
MAX_COUNTED = 10_000
# Rows that one field of a search may find.
MAX_FOUND = 1_000
# In an address: the mode of all pages from there on, see `merchants.modes`.
MODE = "mode"
SANDBOX = "sandbox"


class BoundedPaginator(Paginator[Any]):
    """Pages of the first MAX_COUNTED rows: an exact number would read the whole table."""

    object_list: Any

    @cached_property
    def count(self) -> int:
        return int(self.object_list.order_by()[:MAX_COUNTED].count())


class NewestValuesFilter(AllValuesFieldListFilter):
    """Offers the values of a column that the newest rows have."""

    def __init__(
        self, field: Any, request: HttpRequest, params: Any, model: Any, model_admin: Any, field_path: str
    ) -> None:
        super().__init__(field, request, params, model, model_admin, field_path)
        newest = model._default_manager.order_by("-pk").values_list(field_path, flat=True)[:OFFERED_ROWS]
        self.lookup_choices: Any = sorted(set(newest), key=lambda value: (value is not None, value))


class DateFilter(TypedFilter):
    """Days and months in Bangkok of a list whose ids sort by time.

    The address has a choice such as `date=yesterday`, any day or month (`2026-11-23`, `2026-11`), or the
    first and the last day. The list is narrowed first, so others look at the newest rows of these days.
    """

    title, template = _("date"), "admin/date_filter.html"
    parameters = bangkok_days.PARAMETERS

    @property
    def fields(self) -> list[TypedField]:
        labels = {"date_from": _("First day"), "date_to": _("Last day")}
        return [TypedField(name, label, self.value(name), is_day=True) for name, label in labels.items()]

    @property
    def values(self) -> dict[str, str]:
        return {name: self.value(name) for name in self.parameters}

    @property
    def error(self) -> str:
        if not self.shown or bangkok_days.span(self.values, clock.now()):
            return ""
        for refusal in filter(None, map(dates.buddhist_year, self.values.values())):
            return f"{refusal}."
        return gettext("Choose days that exist. The first is not after the last.")

    @property
    def shown(self) -> str:
        date, first, last = self.values.values()
        if date:
            return str(dict(bangkok_days.CHOICES).get(date, date))
        if first == last:
            return first
        return f"{first} – {last}".strip()

    def choices(self, changelist: Any) -> Iterator[dict[str, Any]]:
        yield from super().choices(changelist)
        chosen, ends = self.value("date"), [name for name in self.parameters if name != "date"]
        for value, label in bangkok_days.CHOICES:
            url = changelist.get_query_string({"date": value}, [*ends, "p"])
            yield {"selected": value == chosen, "query_string": url, "display": label}

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        return of_days(queryset, self.values) if self.shown else queryset


def created_in(rows: Any, query: Mapping[str, str]) -> Any:
    """The same by the time of creation, for rows of one owner: its index has them in this order."""
    days = bangkok_days.span(query, clock.now())
    return rows.none() if days is None else rows.filter(created_at__gte=days[0], created_at__lt=days[1])


def of_days(rows: Any, query: Mapping[str, str]) -> Any:
    """The rows of these days, by their ids. None for values that are no days."""
    days = bangkok_days.span(query, clock.now())
    if days is None:
        return rows.none()
    newest_id = rows.model._default_manager.order_by("-pk").values_list("pk", flat=True).first()
    prefix = "" if newest_id is None else newest_id.partition("_")[0] + "_"
    start, end = (ids.first(prefix, each) for each in days)
    return rows.filter(pk__gte=start, pk__lt=end)


class DeclaredChangeList(ChangeList):
    """Takes only look-ups that the list declares, by its filters or by `indexed_filters`. Shows one mode.

    Django takes a look-up of any column: `?payer_name__startswith=S` tells how a name begins, also to staff
    who may not see it.
    """

    model_admin: Any

    def get_filters(self, request: HttpRequest) -> Any:
        """Raises DisallowedModelAdminLookup for a parameter that no filter took."""
        filters = super().get_filters(request)
        if undeclared := set(filters[2]) - self.model_admin.indexed_filters:
            raise DisallowedModelAdminLookup(f"The list has no filter {min(undeclared)}.")
        return filters

    def get_filters_params(self, params: Any = None) -> Any:
        found = super().get_filters_params(params)
        if self.model_admin.admin_site.has_modes:
            found.pop(MODE, None)
        return found

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        self.root_queryset: Any = self.model_admin.of_mode(request, self.root_queryset)
        found: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        return found


class BoundedChangeList(DeclaredChangeList):
    """Reads a bounded number of rows for any filter in the address."""

    sortable_by: Any
    is_limited = False
    """Whether there are older rows that the filters did not read."""
    newest_first: Sequence[str] = ()
    """The order of an index with the rows of the chosen owner, or with those of one kind."""
    kind_columns: Sequence[str] = ()

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        # A search or an indexed filter reads few rows in any case.
        # An empty field that staff type into filters nothing. Other filters can look for the empty text.
        typed = {name for each in self.list_filter for name in getattr(each, "parameters", ())}
        names = {name for name in self.get_filters_params() if self.params[name] or name not in typed}
        of_these_days = of_days
        if not self.query and (owner := self._owner(names)):
            given, key = owner
            names -= set(given.parameters)
            of_these_days, self.newest_first = created_in, given.newest_first
            self.kind_columns = self.model_admin.kind_columns
            own = self.root_queryset.filter(**{given.lookup: key})
            self.root_queryset = merging.named(own, self.kind_columns)
        if DateFilter in self.list_filter and not names.isdisjoint(DateFilter.parameters):
            names -= set(DateFilter.parameters)
            self.root_queryset = of_these_days(self.root_queryset, self.params)
        has_index = not self.newest_first and not names.isdisjoint(self.model_admin.indexed_filters)
        # The rows of one owner have one mode.
        is_mixed = self.model_admin.of_mode(request, self.root_queryset) is not self.root_queryset
        if (names or (is_mixed and not self.newest_first)) and not self.query and not has_index:
            order = self.newest_first or ("-pk",)
            self.root_queryset, self.is_limited = newest(self.root_queryset, order, self.kind_columns)
        return super().get_queryset(request, exclude_parameters)

    def _owner(self, names: set[str]) -> tuple[type[OwnerFilter], str] | None:
        """The filter of an owner with an index, and the owner, if the address names exactly one."""
        for given in self.list_filter:
            if isinstance(given, type) and issubclass(given, OwnerFilter) and given.newest_first:
                (name,) = given.parameters
                if name in names and (owner := given.owner_of(self.params[name])):
                    return given, owner
        return None

    def get_ordering(self, request: HttpRequest, queryset: Any) -> list[Any]:
        return list(self.newest_first) or super().get_ordering(request, queryset)

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        page: Any = self.result_list
        if self.kind_columns and page.query.is_sliced:
            start, stop = page.query.low_mark, page.query.high_mark
            self.result_list = merging.page(self.queryset, self.kind_columns, start, stop)
        self.model_admin.prepare_rows(self.result_list)

    def get_ordering_field(self, field_name: Any) -> Any:
        """Return None for a column without sorting, because a URL can name any column."""
        return super().get_ordering_field(field_name) if field_name in self.sortable_by else None


def of_mode(rows: Any, column: str, mode: str) -> Any:
    """Live or test rows, by a column with the mode, or with a bank, acquirer or route."""
    return rows.filter(Q(**{column: mode}) if column.endswith(MODE) else sandbox_is_test(column, mode))


def sandbox_is_test(column: str, mode: str) -> Q:
    """A bank, acquirer or route is the sandbox in test, and another one in live."""
    is_sandbox = Q(**{f"{column}__endswith": SANDBOX})
    return is_sandbox if mode == "test" else ~is_sandbox


def newest(rows: Any, order: Sequence[str], kind_columns: Sequence[str] = ()) -> tuple[Any, bool]:
    """The newest FILTERED_ROWS rows by the first column of the order, and whether there are older ones."""
    column = order[0].removeprefix("-")
    older = merging.keys(rows.order_by(*order), kind_columns, FILTERED_ROWS, FILTERED_ROWS + 1)
    return (rows.filter(**{f"{column}__gt": older[0][0]}), True) if older else (rows, False)
