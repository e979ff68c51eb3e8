"""What an ASGI application is given and sends, for tests without a server."""

from typing import Any


class SentMessages(list[dict[str, Any]]):
    async def __call__(self, message: Any) -> None:
        self.append(message)


def scope_of(method: str, path: str, **headers: bytes | str) -> dict[str, Any]:
    """The scope of a request; `content_type` is the header `content-type`."""
    pairs = {"host": "x", **headers}
    return {
        "type": "http",
        "method": method,
        "path": path.partition("?")[0],
        "query_string": path.partition("?")[2].encode(),
        "server": ("127.0.0.1", 80),
        "http_version": "1.1",
        "client": ("127.0.0.1", 1),
        "scheme": "http",
        "headers": [
            (name.replace("_", "-").encode(), value.encode() if isinstance(value, str) else value)
            for name, value in pairs.items()
        ],
    }
