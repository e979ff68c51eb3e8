"""An empty database of the Redis of the service: its workers see no task of the measurement."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from redis import Redis
from redis.exceptions import RedisError, ResponseError

from config.capacity.refusal import Refused

SECONDS = 5.0
USUAL_COUNT = 16
CLAIM = "thaiqr-server capacity"


@contextmanager
def temporary(url: str) -> Iterator[str]:
    """The URL of a database that was empty, and is emptied at the end. Raises Refused."""
    try:
        found = _claim(url)
    except ValueError:
        raise Refused("REDIS_URL is no redis://, rediss:// or unix:// of one server.") from None
    except (RedisError, OSError) as error:
        raise Refused(f"Redis does not answer: {error or type(error).__name__}") from None
    try:
        yield found
    finally:
        with _client(found) as client:
            client.flushdb()


def _claim(url: str) -> str:
    with _client(url) as client:
        used = int(client.connection_pool.connection_kwargs.get("db") or 0)
        numbers = range(_count(client) - 1, -1, -1)
    for number in numbers:
        if number != used and _is_claimed(_numbered(url, number)):
            return _numbered(url, number)
    raise Refused(
        "Redis has no empty database for the measurement. Name another Redis for this command:\n"
        "  REDIS_URL=redis://127.0.0.1:6380/0 thaiqr-server capacity"
    )


def _is_claimed(url: str) -> bool:
    with _client(url) as client:
        return client.dbsize() == 0 and bool(client.set(CLAIM, 1, nx=True))


def _count(client: "Redis") -> int:
    try:
        found: Any = client.config_get("databases")
        return int(found["databases"])
    except (ResponseError, KeyError):  # some providers forbid CONFIG
        return USUAL_COUNT


def _numbered(url: str, number: int) -> str:
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return parts._replace(query="&".join(filter(None, (parts.query, f"db={number}")))).geturl()
    return parts._replace(path=f"/{number}").geturl()


def _client(url: str) -> "Redis":
    return Redis.from_url(url, socket_timeout=SECONDS, socket_connect_timeout=SECONDS)
