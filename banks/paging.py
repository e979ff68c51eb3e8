"""Read lists of acquirers in pages of `limit` and `offset`: `{"data": [...], "total": 1}`."""

from collections.abc import Callable, Iterator
from typing import Any

from banks import http_client
from banks.http_client import NoResponse, Response
from core.deadlines import Deadline

Json = dict[str, Any]
Get = Callable[[str, Json], Response]
PAGE_SIZE = 100


class TooManyRows(Exception):
    """A list is longer than one search may read, so an object that was not found may still be in it."""


def pages(count: int, seconds: float) -> Iterator[int]:
    """A number for each page that one search may read. Raises TooManyRows after the last one, or too late."""
    deadline = Deadline.after(seconds)
    for number in range(count):
        if deadline.is_past:
            break
        yield number
    raise TooManyRows


def rows_of_pages(get: Get, path: str, params: Json, pages: Iterator[int]) -> Iterator[Json]:
    """The rows of all pages of a list. Raises TooManyRows, CallFailed, also for an incomplete list."""
    read = 0
    for _ in pages:
        rows, total = _parse_list(get(path, params | {"limit": PAGE_SIZE, "offset": read}))
        yield from rows
        read += len(rows)
        if read >= total:
            return
        if not rows:  # the list is incomplete, so a missing object proves nothing
            raise NoResponse()


def read_all(get: Get, path: str, params: Json, pages: Iterator[int]) -> dict[str, Json]:
    """The rows of a list by their id. Raises TooManyRows, CallFailed.

    Rows of a list that changed meanwhile would be repeated or skipped, so a repeated row is an error.
    """
    found: dict[str, Json] = {}
    for row in rows_of_pages(get, path, params, pages):
        if not isinstance(row.get("id"), str) or row["id"] in found:
            raise NoResponse()
        found[row["id"]] = row
    return found


def _parse_list(response: Response) -> tuple[list[Json], int]:
    """The rows of a page, and the length of the whole list.

    Raises NoResponse for anything but a list, because an error does not prove that an object is missing.
    """
    found = response.data.get("data") if response.status == 200 else None
    total = response.data.get("total")
    if not isinstance(found, list) or not isinstance(total, int):
        raise NoResponse(http_client.cause_of_status(response.status))
    return [each for each in found if isinstance(each, dict)], total
