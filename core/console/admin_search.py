"""What the search of a list finds. The search of the header, and that of a shop, ask the same lists.

A field of a search is compared as a whole value (`=`) or by its beginning in any case (`^`), each by its own
index, or by a part, in a table that does not grow with payments. What has no index is compared in the newest
rows.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.utils import get_fields_from_path
from django.db.models import BigIntegerField, Model, Q
from django.http import HttpRequest
from django.utils.translation import gettext

from core import ids, money, plain_text
from core.console import admin_lists, personal_data
from core.database import columns, merging, rows
from core.database.columns import Folded, PublicIdKey

# Newest rows whose accounts are decrypted, in 50 µs each.
MAX_OPENED = 1_000
# Ids that one beginning finds.
MAX_IDS = 20
# A shorter text is a whole reference.
MIN_BEGINNING = 3
FIND_IDS = """
SELECT DISTINCT found.id FROM unnest(%s::text[]) AS head, LATERAL (
    SELECT {column} AS id FROM {table}
    WHERE {column} >= head AND {column} < head || chr(1114111) AND lower({column}) ^@ %s
    ORDER BY {column} DESC LIMIT %s
) AS found ORDER BY found.id DESC LIMIT %s
"""
# In a page's address the console writes `_5F` for the underscore. `clt_` begins the secret of a claim page.
_ID = re.compile(r"(?<![0-9A-Za-z])(?:([a-z]{2,3})_(?:5F)?([0-9A-Za-z]{27})|(clt)_(\w{32}))(?![0-9A-Za-z])")
# As receipts write them: 1234, x-1234, **** 1234.
_LAST4 = re.compile(r"[x*•.\s-]*([0-9]{4})", re.IGNORECASE)


def texts_of(text: str) -> list[str]:
    """What to look for: the text as it was written and as usual, and an id in it, as in an address."""
    found = ["_".join(filter(None, each)) for each in _ID.findall(text)[:1]]
    texts = [each for each in [*plain_text.spellings(text), *found] if each]
    codes = [f"pay_{each[3:]}" for each in texts if each.lower().startswith("qr_")]
    return list(dict.fromkeys([*texts, *codes]))


def limit_note() -> str:
    """Which rows a search did not read."""
    text = gettext(
        "An amount, digits and the like find rows among the newest %(count)s. "
        "For older ones, use a whole id or reference."
    )
    return text % {"count": f"{admin_lists.FILTERED_ROWS:,}"}


class SearchedList(admin.ModelAdmin[Any]):
    """A list with one search. Its `search_fields` have an index each."""

    newest_first: ClassVar[Sequence[str]] = ()
    """The order of an index with all rows that the list can show."""
    kind_columns: ClassVar[Sequence[str]] = ()
    """The columns of this index between the owner and the time, see `core.database.merging`."""
    search_conditions: ClassVar[Mapping[str, Q]] = {}
    """The condition of the partial index by which a field of the search is found."""
    scanned_fields: ClassVar[Sequence[str]] = ()
    """Fields without an index: amounts, references by their beginning, names, and last digits."""
    search_columns: ClassVar[Sequence[str]] = ()
    """Columns of rows that the one search finds, if they are not those of the list."""

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        texts = texts_of(search_term)
        if not texts:
            return queryset, False
        fields = self.get_search_fields(request)
        found = {key for field in fields for text in texts for key in self._indexed(request, field, text)}
        return queryset.filter(pk__in=found | self._scanned(request, texts)), False

    def found_elsewhere(self, texts: list[str]) -> Iterable[Any]:
        """The keys of rows that other tables lead to."""
        return ()

    def record_search(self, details: dict[str, Any]) -> None:
        """Record that a search by a name or digits found rows."""

    def search_help(self) -> str:
        names = [each.lstrip("=^").partition("__")[0] for each in (*self.search_fields, *self.scanned_fields)]
        labels = dict.fromkeys(filter(None, map(self._label_of, names)))
        return gettext("Search by %(fields)s.") % {"fields": ", ".join(labels)} if labels else ""

    def _label_of(self, name: str) -> str:
        if name not in personal_data.NAME_FIELDS | personal_data.END_FIELDS:
            field: Any = self.opts.get_field(name)
            return str(field.verbose_name)
        if personal_data.is_hidden():
            return ""
        if name in personal_data.NAME_FIELDS:
            return gettext("the payer's name")
        return gettext("the last four digits of an account or card")

    def _indexed(self, request: HttpRequest, field: str, text: str) -> Iterable[Any]:
        kind, path = field[0], field.lstrip("=^")
        column = get_fields_from_path(self.model, path)[-1]
        order: list[Any] = []
        if kind == "=" and isinstance(column, PublicIdKey):
            whole = _ids(request, column.model, text)
            if path == self.opts.pk.name or not whole:
                return whole
            wanted = Q(**{f"{path}__in": whole})
        elif kind == "^":
            # In a shop others may have thousands of such beginnings: `_scanned` looks at its own.
            is_whole = bool(self.newest_first) or len(text) < MIN_BEGINNING
            wanted = columns.same(path, text) if is_whole else columns.begins(path, text)
            order = [Folded(path)]  # the whole ones first
        else:
            wanted = Q(**{path if kind == "=" else f"{path}__icontains": text})
        known = self.model._default_manager.filter(self.search_conditions.get(field, Q()), wanted)
        found: Iterable[Any] = known.order_by(*order).values_list("pk", flat=True)[: admin_lists.MAX_FOUND]
        return found

    def _scanned(self, request: Any, texts: list[str]) -> set[Any]:
        """The keys of rows among the newest, and from other tables. What personal data finds is recorded."""
        text, other = texts[0], set(self.found_elsewhere(texts))
        sees, ends = not personal_data.is_hidden(), _LAST4.fullmatch(plain_text.folded(text))
        satang, last4 = money.parse(text), ends[1] if ends and sees else ""
        is_name, wanted, personal = plain_text.is_name(text), Q(), Q()
        for field in self.scanned_fields:
            if field in personal_data.NAME_FIELDS:
                personal |= Q(**{f"{field}__icontains": plain_text.person(text)}) if is_name and sees else Q()
            elif field in personal_data.END_FIELDS:
                personal |= Q(**{field: last4}) if last4 and field != "payer_account" else Q()
            elif isinstance(self.opts.get_field(field), BigIntegerField):
                wanted |= Q(**{field: satang}) if satang is not None else Q()
            elif len(text) >= MIN_BEGINNING and (self.newest_first or f"^{field}" not in self.search_fields):
                wanted |= columns.begins(field, text)
        has_accounts = bool(last4) and "payer_account" in self.scanned_fields
        named = other if is_name else set()
        if wanted or personal or has_accounts:
            order = self.newest_first or ("-pk",)
            kinds = self.kind_columns if self.newest_first else ()
            newest, is_limited = admin_lists.newest(
                merging.named(self.get_queryset(request), kinds), order, kinds
            )
            request.is_search_limited = is_limited or getattr(request, "is_search_limited", False)
            keys = newest.order_by(*order).values_list("pk", flat=True)
            other |= set(keys.filter(wanted)[: admin_lists.MAX_FOUND]) if wanted else set()
            named |= set(keys.filter(personal)[: admin_lists.MAX_FOUND]) if personal else set()
        if has_accounts:
            known = newest.exclude(payer_account_sealed="").exclude(payer_account_sealed=None)
            opened = known.order_by(*order).only("payer_account_sealed")[:MAX_OPENED]
            named |= {row.pk for row in opened if row.payer_account.endswith(last4)}
        if named and not hasattr(request, "is_search_recorded"):
            shown = {"digits": personal_data.MASK * 4} if last4 else {"name": personal_data.masked_name(text)}
            self.record_search({**shown, "rows": len(named)})
            request.is_search_recorded = True
        return other | named


def _ids(request: HttpRequest, model: type[Model], text: str) -> list[str]:
    """The newest ids that begin with a text. The one search asks once for all lists."""
    known: dict[Any, list[str]] = request.__dict__.setdefault("searched_ids", {})
    if (model, text) not in known:
        heads = ids.heads(text)
        sql = FIND_IDS.format(table=model._meta.db_table, column=model._meta.pk.column)
        found = rows.run(sql, [heads, text.lower(), MAX_IDS, MAX_IDS]).fetchall() if heads else []
        known[model, text] = [key for (key,) in found]
    return known[model, text]
