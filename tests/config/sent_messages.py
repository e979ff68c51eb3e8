"""What an ASGI application sends, for tests without a server."""

from typing import Any


class SentMessages(list[dict[str, Any]]):
    async def __call__(self, message: Any) -> None:
        self.append(message)
