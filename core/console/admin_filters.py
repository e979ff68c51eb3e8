"""Filters of console lists that staff type into: an amount range, and the rows of one owner."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy as _

from core import money, plain_text

# A typed text is an amount, an id or a name.
MAX_LENGTH = 100
MAX_SATANG = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TypedField:
    """One field of a filter's form. suggestions: the address of a page with suggestions, or empty."""

    name: str
    label: str | Promise
    value: str
    suggestions: str = ""
    is_amount: bool = False
    is_day: bool = False


class TypedFilter(admin.ListFilter):
    """A filter with a form. A subclass names its `parameters`, and checks and applies their values."""

    template = "admin/typed_filter.html"
    parameters: ClassVar[Sequence[str]]

    def __init__(self, request: HttpRequest, params: Any, model: Any, model_admin: Any) -> None:
        super().__init__(request, params, model, model_admin)
        self.kept: list[tuple[str, str]] = []
        self.clear_url = ""
        for name in self.parameters:
            if name in params:
                self.used_parameters[name] = plain_text.visible(params.pop(name)[-1])[:MAX_LENGTH]

    def has_output(self) -> bool:
        return True

    def expected_parameters(self) -> list[str | None]:
        return list(self.parameters)

    def value(self, name: str) -> str:
        return str(self.used_parameters.get(name, ""))

    @property
    def fields(self) -> list[TypedField]:
        raise NotImplementedError

    @property
    def error(self) -> str:
        """Why the values are no filter, or empty. Then the list shows no rows."""
        return ""

    @property
    def shown(self) -> str:
        """What the closed filter shows; empty if it is not used."""
        raise NotImplementedError

    def choices(self, changelist: Any) -> Iterator[dict[str, Any]]:
        """Only the link that clears the filter. The form sends the other parameters of the list again."""
        self.clear_url = changelist.get_query_string(remove=[*self.parameters, "p"])
        own = {*self.parameters, "p", "all", "e"}
        self.kept = [(name, value) for name, value in changelist.params.items() if name not in own]
        yield {"selected": not self.shown, "query_string": self.clear_url, "display": _("All")}


class AmountFilter(TypedFilter):
    """Amounts from and to, in baht. Both ends belong to the range."""

    title = _("amount")
    parameters = ("amount_from", "amount_to")
    column: ClassVar[str] = "amount"

    @property
    def fields(self) -> list[TypedField]:
        named = zip(self.parameters, (_("From, in baht"), _("To, in baht")), strict=True)
        return [TypedField(name, label, self.value(name), is_amount=True) for name, label in named]

    @property
    def error(self) -> str:
        low, high = self._ends()
        for text, satang in zip(map(self.value, self.parameters), (low, high), strict=True):
            if text and (satang is None or satang > MAX_SATANG):
                return gettext("“%(text)s” is no amount in baht, such as 1,500 or 99.50.") % {"text": text}
        if low is not None and high is not None and low > high:
            return gettext("“From” is more than “to”.")
        return ""

    @property
    def shown(self) -> str:
        low, high = map(self.value, self.parameters)
        if low and high:
            return f"{low} – {high}"
        return f"≥ {low}" if low else f"≤ {high}" if high else ""

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        if self.error:
            return queryset.none()
        low, high = self._ends()
        if low is not None:
            queryset = queryset.filter(**{f"{self.column}__gte": low})
        return queryset if high is None else queryset.filter(**{f"{self.column}__lte": high})

    def _ends(self) -> tuple[int | None, int | None]:
        low, high = (money.parse(self.value(name)) for name in self.parameters)
        return low, high


class OwnerFilter(TypedFilter):
    """Rows of one owner, which an index has in the order of `newest_first`. So the list reads only these."""

    parameters: ClassVar[Sequence[str]] = ("merchant",)
    lookup: ClassVar[str] = "merchant"
    newest_first: ClassVar[Sequence[str]] = ("-created_at", "-id")
    """Empty if no index has this order. Then the filter looks at the newest rows of the whole list."""

    @classmethod
    def owner_of(cls, text: str) -> str | None:
        """The key of the only owner that this text names."""
        raise NotImplementedError
