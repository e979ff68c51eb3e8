"""Lists, page after page. A cursor keeps the pages the same while newer objects arrive."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from thaiqr.errors import UnexpectedResponseError

T = TypeVar("T")
Query = Mapping[str, str]
PAGE_SIZE = 100
"""The largest page, which is the default: fewer requests."""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page. `total` counts all objects that match; the request log has none. `raw` is the JSON."""

    items: tuple[T, ...]
    total: int | None
    raw: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """Describes a list: its path, its key in the answer, and the query of the page after a page."""

    path: str
    plural: str
    read: Callable[[Any], T]
    query: Query
    next_query: Callable[["Listing[T]", Page[T]], Query | None]

    def page(self, data: Any) -> Page[T]:
        """Read a page. Raises UnexpectedResponseError."""
        rows = data.get(self.plural) if isinstance(data, dict) else None
        if not isinstance(rows, list):
            raise UnexpectedResponseError(f"The answer is no list of {self.plural}.")
        return Page(tuple(self.read(row) for row in rows), data.get("total"), data)

    def after(self, page: Page[T]) -> "Listing[T] | None":
        """The list from the next page on; None at the end."""
        query = self.next_query(self, page)
        if query is None:
            return None
        return Listing(self.path, self.plural, self.read, query, self.next_query)

    def is_full(self, page: Page[T]) -> bool:
        """Whether the page has as many objects as were asked for, so there may be more."""
        return len(page.items) >= int(self.query["limit"])


def by_cursor(id_field: str) -> Callable[[Listing[T], Page[T]], Query | None]:
    """The next page follows the last id. A search says how far it came if it has not seen all."""

    def next_query(listed: Listing[T], page: Page[T]) -> Query | None:
        rows = page.raw[listed.plural]
        after = rows[-1][id_field] if listed.is_full(page) else page.raw.get("searched_to")
        return {**listed.query, "after": after} if after else None

    return next_query


def by_offset(listed: Listing[T], page: Page[T]) -> Query | None:
    """The next page skips all that were read. For short lists, which have no cursor."""
    if not listed.is_full(page):
        return None
    return {**listed.query, "offset": str(int(listed.query.get("offset", 0)) + len(page.items))}


def by_next_after(listed: Listing[T], page: Page[T]) -> Query | None:
    """The answer says itself how to go on."""
    after = page.raw.get("next_after")
    return {**listed.query, "after": after} if after else None


def by_sequence(listed: Listing[T], page: Page[T]) -> Query | None:
    """The feed of events goes on after the last number."""
    last = page.raw[listed.plural][-1]["sequence"] if listed.is_full(page) else None
    return None if last is None else {**listed.query, "after_sequence": str(last)}


class Pages(Generic[T]):
    """A list. Iterate over all objects; pages are fetched when they are needed."""

    def __init__(self, described: Listing[T], fetch: Callable[[Listing[T]], Page[T]]) -> None:
        self._listing, self._fetch = described, fetch

    def first_page(self) -> Page[T]:
        """The first page, with the `total`."""
        return self._fetch(self._listing)

    def pages(self) -> Iterator[Page[T]]:
        """All pages, one after the other."""
        described: Listing[T] | None = self._listing
        while described is not None:
            page = self._fetch(described)
            yield page
            described = described.after(page)

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page.items


class AsyncPages(Generic[T]):
    """A list. Iterate with `async for` over all objects; pages are fetched when they are needed."""

    def __init__(self, described: Listing[T], fetch: Callable[[Listing[T]], Awaitable[Page[T]]]) -> None:
        self._listing, self._fetch = described, fetch

    async def first_page(self) -> Page[T]:
        """The first page, with the `total`."""
        return await self._fetch(self._listing)

    async def pages(self) -> AsyncIterator[Page[T]]:
        """All pages, one after the other."""
        described: Listing[T] | None = self._listing
        while described is not None:
            page = await self._fetch(described)
            yield page
            described = described.after(page)

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page.items:
                yield item
