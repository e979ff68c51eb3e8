"""What an ASGI application sends, for tests without a server."""

from collections.abc import Generator
from typing import Any


class SentMessages(list[dict[str, Any]]):
    """A `send` that acts when it is called, from any thread, as Granian's does."""

    def __call__(self, message: Any) -> "_Sent":
        self.append(message)
        return _Sent()


class _Sent:
    def __await__(self) -> Generator[None, None, None]:
        yield from ()
