"""REDIS_URL: what it says, for clients of Redis and for Celery, whose broker Redis is.

`sentinel://user:password@host:port,host:port/name/database` is a primary that Sentinel chooses. User and
password are those of Redis. `sentinels://` uses TLS to Sentinel and to Redis. Options: those of TLS,
`sentinel_username` and `sentinel_password`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelConnectionPool

SENTINEL_PORT = 26379
# Of TLS, by the names that redis-py gives them.
TLS_OPTIONS = ("ssl_cert_reqs", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
SENTINEL_OPTIONS = {*TLS_OPTIONS, "sentinel_username", "sentinel_password"}
TLS_SCHEMES = ("rediss", "sentinels")


def with_authorities(url: str, ca_file: str) -> str:
    """The URL with the option `ssl_ca_certs`, if it uses TLS and has none."""
    scheme, _, rest = url.partition("://")
    _, mark, options = rest.partition("?")
    if not ca_file or scheme not in TLS_SCHEMES or "ssl_ca_certs=" in options:
        return url
    return f"{url}{'&' if mark else '?'}ssl_ca_certs={quote(ca_file)}"


def is_sentinel(url: str) -> bool:
    return url.startswith(("sentinel://", "sentinels://"))


@dataclass(frozen=True)
class SentinelUrl:
    """The parts of a URL of Sentinel, decoded. name: of the primary in the configuration of Sentinel."""

    has_tls: bool
    username: str
    password: str
    hosts: tuple[tuple[str, int], ...]
    name: str
    database: int
    options: Mapping[str, str]

    @classmethod
    def parse(cls, url: str) -> Self:
        """Raises ValueError."""
        parts = urlsplit(url)
        user, _, hosts = parts.netloc.rpartition("@")
        username, _, password = user.partition(":")
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        name, _, database = unquote(parts.path.removeprefix("/")).partition("/")
        if not is_sentinel(url) or options.keys() - SENTINEL_OPTIONS or parts.fragment:
            raise ValueError("unknown scheme or option")
        if not name or not (database or "0").isdecimal():
            raise ValueError("no name of a primary, or no database")
        return cls(
            has_tls=parts.scheme == "sentinels",
            username=unquote(username),
            password=unquote(password),
            hosts=tuple(map(_host, hosts.split(","))),
            name=name,
            database=int(database or "0"),
            options=options,
        )

    @property
    def tls(self) -> dict[str, str]:
        """The options of TLS that were given."""
        return {name: self.options[name] for name in TLS_OPTIONS if name in self.options}

    @property
    def is_verified(self) -> bool:
        """Whether the certificates of the servers are verified."""
        return self.has_tls and self.options.get("ssl_cert_reqs", "required") == "required"

    def sentinel_options(self, seconds: float) -> dict[str, Any]:
        """How to connect to Sentinel. If one does not answer, the next is asked at once."""
        given = {name: self.options.get(f"sentinel_{name}") for name in ("username", "password")}
        return {
            **{name: value for name, value in given.items() if value},
            **({"ssl": True, **self.tls} if self.has_tls else {}),
            "socket_timeout": seconds,
            "socket_connect_timeout": seconds,
            "retry": Retry(NoBackoff(), 0),
        }

    def sentinels(self, seconds: float) -> Sentinel:
        """All of them. Nothing connects yet."""
        options = self.sentinel_options(seconds)
        return Sentinel(self.hosts, sentinel_kwargs=options)  # type: ignore[no-untyped-call]

    def pool(self, seconds: float, **options: Any) -> SentinelConnectionPool:
        """Connections to the primary: each asks Sentinel for it first."""
        return SentinelConnectionPool(  # type: ignore[no-untyped-call]
            self.name,
            self.sentinels(seconds),
            username=self.username or None,
            password=self.password or None,
            db=self.database,
            **({"ssl": True, **self.tls} if self.has_tls else {}),
            **options,
        )


@dataclass(frozen=True)
class Broker:
    """What Celery needs to reach Redis. url: in the form of kombu."""

    url: str
    options: Mapping[str, Any] = field(default_factory=dict)
    tls: dict[str, Any] | None = None

    @classmethod
    def of(cls, url: str, *, options: Mapping[str, Any] | None = None) -> Self:
        """A malformed URL stays as it is: `config.checks` reports it. options: of a connection."""
        options = options or {}
        if not is_sentinel(url):
            return cls(url, options)
        try:
            found = SentinelUrl.parse(url)
        except ValueError:
            return cls(url, options)
        named = {
            "master_name": found.name,
            "sentinel_kwargs": found.sentinel_options(options.get("socket_connect_timeout", 1)),
        }
        tls = {"ssl_cert_reqs": "required", **found.tls} if found.has_tls else None
        return cls(_of_kombu(found), {**options, **named}, tls)


def _of_kombu(found: SentinelUrl) -> str:
    """A URL for each Sentinel, separated by semicolons."""
    user = f"{quote(found.username, safe='')}:{quote(found.password, safe='')}@"
    user = "" if user == ":@" else user
    return ";".join(
        f"sentinel://{user}{f'[{host}]' if ':' in host else host}:{port}/{found.database}"
        for host, port in found.hosts
    )


def _host(text: str) -> tuple[str, int]:
    parts: SplitResult = urlsplit(f"//{text}")
    port = SENTINEL_PORT if parts.port is None else parts.port
    if not parts.hostname or not port or parts.path or parts.query or "@" in text:
        raise ValueError("no host, or port 0")
    return parts.hostname, port
