"""`sentinel://user:password@host:port,host:port/name/database`: a primary that Sentinel chooses.

User and password are those of Redis. `sentinels://` uses TLS to Sentinel and to Redis. Options: those of TLS,
`sentinel_username` and `sentinel_password`.
"""

from dataclasses import dataclass
from typing import Any, Self

from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelConnectionPool

from core.server_urls import TLS_OPTIONS, ServerUrl

PORT = 26379
PORTS = {"sentinel": PORT, "sentinels": PORT}
OPTIONS = (*TLS_OPTIONS, "sentinel_username", "sentinel_password")


def is_sentinel(url: str) -> bool:
    return url.startswith(tuple(f"{scheme}://" for scheme in PORTS))


@dataclass(frozen=True)
class SentinelUrl:
    """The URL and what it says about the primary. name: of the primary in the configuration of Sentinel."""

    server: ServerUrl
    name: str
    database: int

    @classmethod
    def parse(cls, url: str) -> Self:
        """Raises ValueError."""
        server = ServerUrl.parse(url, PORTS, OPTIONS)
        name, _, database = server.path.partition("/")
        if not name or not (database or "0").isdecimal():
            raise ValueError("no name of a primary, or no database")
        return cls(server, name, int(database or "0"))

    @property
    def has_tls(self) -> bool:
        return self.server.scheme == "sentinels"

    def sentinel_options(self, seconds: float) -> dict[str, Any]:
        """How to connect to Sentinel. If one does not answer, the next is asked at once."""
        names = ("username", "password")
        given = {name: self.server.options.get(f"sentinel_{name}") for name in names}
        return {
            **{name: value for name, value in given.items() if value},
            **({"ssl": True, **self.server.tls} if self.has_tls else {}),
            "socket_timeout": seconds,
            "socket_connect_timeout": seconds,
            "retry": Retry(NoBackoff(), 0),
        }

    def sentinels(self, seconds: float) -> Sentinel:
        """All of them. Nothing connects yet."""
        options = self.sentinel_options(seconds)
        return Sentinel(self.server.hosts, sentinel_kwargs=options)  # type: ignore[no-untyped-call]

    def pool(self, seconds: float, **options: Any) -> SentinelConnectionPool:
        """Connections to the primary: each asks Sentinel for it first."""
        return SentinelConnectionPool(  # type: ignore[no-untyped-call]
            self.name,
            self.sentinels(seconds),
            username=self.server.username or None,
            password=self.server.password or None,
            db=self.database,
            **({"ssl": True, **self.server.tls} if self.has_tls else {}),
            **options,
        )
