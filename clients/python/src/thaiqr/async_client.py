"""`AsyncThaiQR`: the client for asyncio."""

import asyncio
from typing import Any, Self, TypeVar

import httpx

from thaiqr.attempts import Attempts
from thaiqr.calls import Awaiting, Call
from thaiqr.paging import AsyncPages, Listing, Page
from thaiqr.resources import Resources
from thaiqr.settings import Settings, connected

T = TypeVar("T")


class AsyncThaiQR(Resources[Awaiting]):
    """The same as `ThaiQR`, with methods that are awaited, and lists for `async for`.

    Tasks of one event loop may share it. Close it with `aclose`, or use it in an `async with` block.
    """

    def __init__(
        self,
        api_key: str | None = None,
        *,
        base_url: str | None = None,
        timeout: float = 30.0,
        max_retries: int = 3,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        self._settings = Settings.of(api_key, base_url, timeout, max_retries)
        self._http = http_client or connected(httpx.AsyncClient)
        self._owns_http = http_client is None
        super().__init__(self)

    async def send(self, call: Call[T]) -> T:
        """Send a call, with retries."""
        attempts = Attempts(call, self._settings.max_retries)
        while True:
            try:
                response = await self._http.request(**self._settings.arguments(call))
            except httpx.RequestError as error:
                pause: float | None = attempts.after_error(error)
            else:
                pause = attempts.after_response(response)
                if pause is None:
                    return attempts.result(response)
            await asyncio.sleep(pause or 0)

    def pages(self, listing: Listing[T]) -> AsyncPages[T]:
        """The pages of a list."""
        return AsyncPages(listing, self._page)

    async def _page(self, listing: Listing[T]) -> Page[T]:
        return await self.send(Call("GET", listing.path, listing.page, query=listing.query))

    async def aclose(self) -> None:
        """Close the connections."""
        if self._owns_http:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"AsyncThaiQR(base_url={self._settings.base_url!r})"
