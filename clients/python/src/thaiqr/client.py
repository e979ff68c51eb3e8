"""`ThaiQR`: the client for ordinary, blocking code."""

import time
from typing import Any, Self, TypeVar

import httpx

from thaiqr.attempts import Attempts
from thaiqr.calls import Blocking, Call
from thaiqr.paging import Listing, Page, Pages
from thaiqr.resources import Resources
from thaiqr.settings import Settings, connected

T = TypeVar("T")


class ThaiQR(Resources[Blocking]):
    """The API of one service, as one merchant. Threads may share it. Close it, or use it in a `with` block.

    api_key, base_url: by default the environment variables THAIQR_API_KEY and THAIQR_BASE_URL.
    timeout: seconds to connect, and without data. max_retries: of connection errors, 408, 429 and 5xx.
    http_client: an `httpx.Client` of yours, for proxies or certificates; you close it.

    Raises ValueError without a key or a URL, and if the environment has unusable proxies or certificates. Its
    methods raise `ApiError` and `NetworkError`.
    """

    def __init__(
        self,
        api_key: str | None = None,
        *,
        base_url: str | None = None,
        timeout: float = 30.0,
        max_retries: int = 3,
        http_client: httpx.Client | None = None,
    ) -> None:
        self._settings = Settings.of(api_key, base_url, timeout, max_retries)
        self._http = http_client or connected(httpx.Client)
        self._owns_http = http_client is None
        super().__init__(self)

    def send(self, call: Call[T]) -> T:
        """Send a call, with retries."""
        attempts = Attempts(call, self._settings.max_retries)
        while True:
            try:
                response = self._http.request(**self._settings.arguments(call))
            except httpx.RequestError as error:
                pause: float | None = attempts.after_error(error)
            else:
                pause = attempts.after_response(response)
                if pause is None:
                    return attempts.result(response)
            time.sleep(pause or 0)

    def pages(self, listing: Listing[T]) -> Pages[T]:
        """The pages of a list."""
        return Pages(listing, self._page)

    def _page(self, listing: Listing[T]) -> Page[T]:
        return self.send(Call("GET", listing.path, listing.page, query=listing.query))

    def close(self) -> None:
        """Close the connections."""
        if self._owns_http:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"ThaiQR(base_url={self._settings.base_url!r})"
