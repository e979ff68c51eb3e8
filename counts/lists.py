"""What a long list declares so that its rows are counted, and what is asked of it."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from django.db.models import Model

# Before and after every row.
BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
END = datetime(9999, 12, 1, tzinfo=UTC)
M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class ClockRule:
    """Rows of the kind `before` count as `after` by the clock, before a task stores the change."""

    before: str
    after: str
    condition: str  # SQL with `%(now)s`. Few rows may match it, because they are counted one by one


@dataclass(frozen=True, slots=True)
class CountedList(Generic[M]):
    """A list that `counts_count_list` counts (`counts/sql/rules.sql`).

    A kind is the values of the columns `kind_columns`, separated by a slash. An index on owner, these columns
    and `created_at` serves each kind.
    """

    name: str
    model: type[M]
    kind_columns: tuple[str, ...]
    kinds: tuple[str, ...]
    clock_rule: ClockRule | None = None
    owner_column: str = "merchant_id"  # whose list a row is in
    amount_sql: str = "0"  # the satang of a row
    is_merged: bool = False  # no index has all rows of an owner in order, so the list merges its kinds

    def matching(
        self,
        owner_id: str,
        kind: str | None = None,
        *,
        now: datetime = BEGINNING,
        start: datetime = BEGINNING,
        end: datetime = END,
    ) -> "ListFilter[M]":
        """The rows of an owner, of one kind if given, within a period of creation."""
        return ListFilter(self, owner_id, None if kind is None else [kind], start, end, now)

    @property
    def table(self) -> str:
        return self.model._meta.db_table

    @property
    def kind_sql(self) -> str:
        """The kind of a row, as the triggers have it."""
        return " || '/' || ".join(self.kind_columns)

    def condition_of(self, kind: str) -> str:
        """The stored kind in SQL: literals, so that partial indexes serve prepared statements too."""
        values = zip(self.kind_columns, kind.split("/"), strict=True)
        return " AND ".join(f"{column} = '{value}'" for column, value in values)


@dataclass(frozen=True, slots=True)
class ListFilter(Generic[M]):
    """Rows of one owner, of some kinds or of all, created from `start` until before `end`."""

    counted: CountedList[M]
    owner_id: str
    kinds: Collection[str] | None = None
    start: datetime = BEGINNING
    end: datetime = END
    now: datetime = BEGINNING  # of the clock rule of the list

    def __post_init__(self) -> None:
        if self.kinds is not None and not set(self.kinds) <= set(self.counted.kinds):
            raise ValueError(f"{self.counted.name}: unknown among {self.kinds}")

    @property
    def of_owner(self) -> dict[str, str]:
        """The owner as a filter of Django."""
        return {self.counted.owner_column: self.owner_id}

    @property
    def moved(self) -> int:
        """How a row that the clock rule applies to changes the number of rows: by 1, -1 or 0."""
        rule, kinds = self.counted.clock_rule, self.kinds
        return 0 if rule is None or kinds is None else (rule.after in kinds) - (rule.before in kinds)

    @property
    def count_condition(self) -> str:
        """The filter in SQL for counts and deltas, without its times."""
        condition = f"list = '{self.counted.name}' AND owner_id = %(owner_id)s"
        return condition if self.kinds is None else f"{condition} AND kind = ANY(%(kinds)s)"

    @property
    def sources(self) -> list[str]:
        """Where the rows are, in SQL without the times: `table WHERE condition`. A row is in one at most.

        An index has the rows of each source in the order of the list. `due` are the few rows that the clock
        rule applies to (`counting.common_sql`).
        """
        found = self._sources(self._of_kind)
        return [*found, "due WHERE true"] if self.moved > 0 else found

    @property
    def stored(self) -> list[str]:
        """The rows by their stored kinds, as `sources`, without the clock rule."""
        return self._sources(self.counted.condition_of)

    @property
    def values(self) -> dict[str, Any]:
        """The parameters of all SQL about this filter."""
        return {
            "owner_id": self.owner_id,
            "kinds": None if self.kinds is None else list(self.kinds),
            "start": self.start,
            "end": self.end,
            "now": self.now,
            "beginning": BEGINNING,
            "forever": END,
        }

    def _sources(self, condition_of: Callable[[str], str]) -> list[str]:
        own = f"{self.counted.table} WHERE {self.counted.owner_column} = %(owner_id)s"
        kinds = self.counted.kinds if self.kinds is None and self.counted.is_merged else self.kinds
        if kinds is None:
            return [own]
        return [f"{own} AND {condition_of(kind)}" for kind in kinds] or [f"{own} AND false"]

    def _of_kind(self, kind: str) -> str:
        rule, condition = self.counted.clock_rule, self.counted.condition_of(kind)
        if rule is not None and self.moved < 0 and kind == rule.before:
            # The planner takes this for half of the rows. By the statistics of all kinds it would expect
            # almost none, and then sort all rows of the kind instead of reading a page in order.
            return f"{condition} AND NOT coalesce({rule.condition}, false)"
        return condition


def period_of(query: dict[str, Any]) -> dict[str, datetime]:
    """The `start` and `end` of a filter from the dates of a query."""
    return {
        "start": min(query.get("start_date", BEGINNING), END),
        "end": min(query.get("end_date", END), END),
    }
