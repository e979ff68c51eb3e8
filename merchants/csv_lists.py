"""Lists as CSV, for `Accept: text/csv`.

The list is read page by page, as its JSON is, so filters and rows are the same. A file ends after `MAX_ROWS`
rows, `MAX_BYTES` or `MAX_SECONDS`; its `Link` header then has the URL of the next one. So a file is small
enough to be sent from memory: a slow reader holds no thread, transaction or connection.
"""

import io
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_args, is_typeddict

import orjson
from django.conf import settings
from django.http import HttpResponse, QueryDict
from rest_framework.request import Request

from core import http, money, objects, paging, spreadsheets
from core.bulkhead import Bulkhead, BulkheadFull
from core.http import ApiResponse
from core.objects import Declared, ObjectType, SatangSchema
from core.openapi import Operation
from core.spreadsheets import Cell
from merchants.errors import TooManyExports

CSV = http.CSV
MAX_ROWS = 5_000
MAX_BYTES = 1_000_000  # as long as the longest page in JSON
MAX_SECONDS = 2.0
# Files that a process writes at once, and those of one merchant.
MAX_FILES, MAX_FILES_OF_MERCHANT = 2, 1
RETRY_SECONDS = 1
_files = Bulkhead()
ReadPage = Callable[..., ApiResponse]


def is_wanted(request: Request, operation: Operation) -> bool:
    """Whether a request asks for a list as CSV."""
    if not operation.is_list:
        return False
    accepted = request.META.get("HTTP_ACCEPT", "").lower().split(",")
    return any(each.partition(";")[0].strip() == CSV for each in accepted)


def respond(
    read_page: ReadPage, request: Request, operation: Operation, merchant_id: str, **arguments: Any
) -> HttpResponse:
    """The list as a file. Raises TooManyExports, and what `read_page` raises."""
    columns = Columns.of(operation)
    try:
        with _files.hold(merchant_id, total=MAX_FILES, share=MAX_FILES_OF_MERCHANT):
            reader = ListReader(read_page, request, arguments, columns)
            file = io.BytesIO()
            spreadsheets.write(file, spreadsheets.CSV, columns.names, _rows(columns, reader, file))
    except BulkheadFull:
        raise TooManyExports(retry_after=RETRY_SECONDS) from None
    headers = {"Content-Disposition": f'attachment; filename="{columns.plural}.csv"', "Vary": "Accept"}
    if reader.next_query is not None:
        url = f"{settings.BASE_URL}{request.path}?{reader.next_query.urlencode()}"
        headers["Link"] = f'<{url}>; rel="next"'
    return HttpResponse(file.getvalue(), content_type=f"{CSV}; charset=utf-8", headers=headers)


def _rows(columns: "Columns", reader: "ListReader", file: io.BytesIO) -> Iterator[list[Cell]]:
    rows, until = 0, time.monotonic() + MAX_SECONDS
    for page in reader.pages():
        yield from map(columns.cells, page)
        rows += len(page)
        if rows >= MAX_ROWS or file.tell() >= MAX_BYTES or time.monotonic() > until:
            break


@dataclass
class ListReader:
    """Reads a list in pages. `next_query`: the query of the page after the last one, if there may be one."""

    read_page: ReadPage
    request: Request
    arguments: dict[str, Any]
    columns: "Columns"
    next_query: QueryDict | None = field(default=None, init=False)

    def pages(self) -> Iterator[list[dict[str, Any]]]:
        """A query with `limit` or `before` asks for one page; else all pages follow each other."""
        asked = self.request.query_params
        is_one_page = "limit" in asked or "before" in asked
        query: QueryDict | None = asked.copy()
        while query is not None:
            page = self._read(query)
            self.next_query = None if "before" in asked else self._after(query, page)
            yield page[self.columns.plural]
            query = None if is_one_page else self.next_query

    def _read(self, query: QueryDict) -> dict[str, Any]:
        sized = query.copy()
        sized.setdefault("limit", str(paging.MAX_LIMIT))
        self.request._request.GET = sized  # type: ignore[assignment]
        found: dict[str, Any] = orjson.loads(self.read_page(self.request, **self.arguments).body)
        return found

    def _after(self, query: QueryDict, page: dict[str, Any]) -> QueryDict | None:
        """The query of the next page, or None if this one is the last."""
        rows, following = page[self.columns.plural], query.copy()
        is_full = len(rows) == page.get("limit")
        cursor = (
            rows[-1][self.columns.id_name] if is_full and self.columns.id_name else page.get("searched_to")
        )
        if cursor:
            following.pop("offset", None)
            following["after"] = cursor
        elif is_full:
            following["offset"] = str(page["offset"] + len(rows))
        else:
            return None
        return following


@dataclass(frozen=True)
class Columns:
    """The columns of a list: the fields of its rows, `payer.name` for nested ones, and baht for satang."""

    plural: str
    row: ObjectType
    has_cursor: bool

    @classmethod
    def of(cls, operation: Operation) -> "Columns":
        """Those of an operation that is a list."""
        assert operation.response is not None
        page = operation.response.shape
        plural, row = next(
            (name, row)
            for name, each in objects.fields_of(page).items()
            for row in get_args(each.type)
            if is_typeddict(row)
        )
        return cls(plural, row, has_cursor="offset" not in page.__required_keys__)

    @cached_property
    def id_name(self) -> str | None:
        """The field that a cursor names, if the list has cursors."""
        return (
            next(name for name in self.row.__annotations__ if name.endswith("_id"))
            if self.has_cursor
            else None
        )

    @cached_property
    def names(self) -> list[str]:
        return [name for name, _, _ in self._plan]

    def cells(self, row: dict[str, Any]) -> list[Cell]:
        return [convert(_value(row, path)) for _, path, convert in self._plan]

    @cached_property
    def _plan(self) -> list[tuple[str, tuple[str, ...], Callable[[Any], Cell]]]:
        """For each column its name, the path of its value in a row, and the function that makes the cell."""
        plan: list[tuple[str, tuple[str, ...], Callable[[Any], Cell]]] = []
        for path, each in _leaves(self.row):
            if objects.AMOUNT_DISPLAY in each.parts:
                continue
            plan.append((".".join(path), path, _cell))
            if any(isinstance(part, SatangSchema) for part in each.parts):
                plan.append((".".join(path) + "_baht", path, _baht))
        return plan


def _leaves(row: ObjectType) -> Iterator[tuple[tuple[str, ...], Declared]]:
    for name, each in objects.fields_of(row).items():
        if is_typeddict(each.type):
            yield from (((name, *path), leaf) for path, leaf in _leaves(each.type))
        else:
            yield (name,), each


def _value(row: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        row = row.get(name) if row is not None else None
    return row


def _cell(value: Any) -> Cell:
    """Numbers stay numbers; objects and lists are JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return orjson.dumps(value).decode() if isinstance(value, dict | list) else value


def _baht(value: int | None) -> Cell:
    return None if value is None else money.decimal(value)
