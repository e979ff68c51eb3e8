"""Lists as CSV, for `Accept: text/csv`.

The list is read page by page, as its JSON is, so filters and rows are the same. A file ends after `MAX_ROWS`
rows, `MAX_BYTES` or `MAX_SECONDS`; its `Link` header then has the URL of the next one. So a file is small
enough to be sent from memory: a slow reader holds no thread, transaction or connection.
"""

import io
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, get_args, is_typeddict

import orjson
from django.conf import settings
from django.http import HttpResponse, QueryDict
from rest_framework.request import Request

from core import money
from core.console import spreadsheets
from core.console.spreadsheets import Cell
from core.http import objects, paging, responses
from core.http.objects import Declared, ObjectType, SatangSchema
from core.http.openapi import Operation
from core.http.responses import ApiResponse
from core.work.bulkhead import Bulkhead, BulkheadFull
from merchants.errors import TooManyExports

CSV = responses.CSV
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
    columns, file, asked = Columns(operation), io.BytesIO(), request.query_params
    following: QueryDict | None = asked.copy()

    def rows() -> Iterator[list[Cell]]:
        """A query with `limit` or `before` asks for one page; else all pages follow each other."""
        nonlocal following
        count, until = 0, time.monotonic() + MAX_SECONDS
        while following is not None:
            query = following.copy()
            query.setdefault("limit", str(paging.MAX_LIMIT))
            request._request.GET = query  # type: ignore[assignment]
            page = orjson.loads(read_page(request, **arguments).body)
            yield from map(columns.cells, page[columns.plural])
            count += len(page[columns.plural])
            following = None if "before" in asked else columns.query_after(following, page)
            is_full = count >= MAX_ROWS or file.tell() >= MAX_BYTES or time.monotonic() > until
            if is_full or "limit" in asked:
                break

    with slot(merchant_id):
        names = [name for name, _, _ in columns.plan]
        spreadsheets.write(file, spreadsheets.CSV, names, rows())
    headers = {"Content-Disposition": f'attachment; filename="{columns.plural}.csv"', "Vary": "Accept"}
    if following is not None:
        headers["Link"] = f'<{settings.BASE_URL}{request.path}?{following.urlencode()}>; rel="next"'
    return HttpResponse(file.getvalue(), content_type=f"{CSV}; charset=utf-8", headers=headers)


@contextmanager
def slot(merchant_id: str) -> Iterator[None]:
    """Hold one of the few files that a process writes at once. Raises TooManyExports."""
    try:
        with _files.hold(merchant_id, total=MAX_FILES, share=MAX_FILES_OF_MERCHANT):
            yield
    except BulkheadFull:
        raise TooManyExports(retry_after=RETRY_SECONDS) from None


class Columns:
    """The columns of a list: the fields of its rows, `payer.name` for nested ones, and baht for satang.

    plan: for each its name, the path of its value in a row, and the function that makes the cell.
    """

    def __init__(self, operation: Operation) -> None:
        assert operation.response is not None
        page = operation.response.shape
        self.plural, row = next(
            (name, row)
            for name, each in objects.fields_of(page).items()
            for row in get_args(each.type)
            if is_typeddict(row)
        )
        has_cursor = "offset" not in page.__required_keys__
        self._id_name = has_cursor and next(name for name in row.__annotations__ if name.endswith("_id"))
        self.plan: list[tuple[str, tuple[str, ...], Callable[[Any], Cell]]] = []
        for path, each in _leaves(row):
            if objects.AMOUNT_DISPLAY not in each.parts:
                self.plan.append((".".join(path), path, _cell))
            if any(isinstance(part, SatangSchema) for part in each.parts):
                self.plan.append((".".join(path) + "_baht", path, _baht))

    def cells(self, row: dict[str, Any]) -> list[Cell]:
        return [convert(_value(row, path)) for _, path, convert in self.plan]

    def query_after(self, query: QueryDict, page: dict[str, Any]) -> QueryDict | None:
        """The query of the next page, or None if this one is the last."""
        rows, following = page[self.plural], query.copy()
        is_full = len(rows) == page.get("limit")
        cursor = rows[-1][self._id_name] if is_full and self._id_name else page.get("searched_to")
        if cursor:
            following.pop("offset", None)
            following["after"] = cursor
        elif is_full:
            following["offset"] = str(page["offset"] + len(rows))
        else:
            return None
        return following


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
