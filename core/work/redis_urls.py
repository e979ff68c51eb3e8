"""REDIS_URL: what it says, for clients of Redis and for Celery, whose broker Redis is.

`sentinel://user:password@host:port,host:port/name/database` is a primary that Sentinel chooses. User and
password are those of Redis. `sentinels://` uses TLS to Sentinel and to Redis. Options: those of TLS,
`sentinel_username` and `sentinel_password`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelConnectionPool

SENTINEL_PORT = 26379
# Of TLS, by the names that redis-py gives them.
TLS_OPTIONS = {"ssl_cert_reqs", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile"}
SENTINEL_LOGIN = {"sentinel_username", "sentinel_password"}
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
    """The parts of a URL of Sentinel. name: of the primary in the configuration of Sentinel.

    urls: one for each Sentinel, as kombu reads them. tls: the options of TLS, `ssl` too; empty without it.
    """

    urls: tuple[str, ...]
    hosts: tuple[tuple[str, int], ...]
    name: str
    login: Mapping[str, Any]
    sentinel_login: Mapping[str, str]
    tls: Mapping[str, Any]

    @classmethod
    def parse(cls, url: str) -> Self:
        """Raises ValueError."""
        parts = urlsplit(url)
        user, mark, hosts = parts.netloc.rpartition("@")
        # Quoted again, because kombu splits the URLs of Sentinels at each semicolon.
        user = ":".join(quote(unquote(each), safe="") for each in user.split(":", 1))
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        name, _, database = unquote(parts.path.removeprefix("/")).partition("/")
        if not is_sentinel(url) or options.keys() - TLS_OPTIONS - SENTINEL_LOGIN or parts.fragment:
            raise ValueError("unknown scheme or option")
        if not name or not (database or "0").isdecimal():
            raise ValueError("no name of a primary, or no database")
        urls = tuple(f"redis://{user}{mark}{host}/{database or 0}" for host in hosts.split(","))
        found = [parse_url(each) for each in urls]  # type: ignore[no-untyped-call]
        if not all("host" in each for each in found):
            raise ValueError("no host")
        tls: dict[str, Any] = {"ssl": True} if parts.scheme == "sentinels" else {}
        return cls(
            urls=tuple(f"sentinel{each.removeprefix('redis')}" for each in urls),
            hosts=tuple((each["host"], each.get("port", SENTINEL_PORT)) for each in found),
            name=name,
            login={key: value for key, value in found[0].items() if key not in ("host", "port")},
            sentinel_login={
                key.removeprefix("sentinel_"): options[key] for key in SENTINEL_LOGIN if options.get(key)
            },
            tls=tls and tls | {key: options[key] for key in TLS_OPTIONS & options.keys()},
        )

    @property
    def is_verified(self) -> bool:
        return bool(self.tls) and self.tls.get("ssl_cert_reqs", "required") == "required"

    def sentinel_options(self, seconds: float) -> dict[str, Any]:
        """How to connect to Sentinel. If one does not answer, the next is asked at once."""
        times = {"socket_timeout": seconds, "socket_connect_timeout": seconds}
        return {**self.sentinel_login, **self.tls, **times, "retry": Retry(NoBackoff(), 0)}

    def sentinels(self, seconds: float) -> Sentinel:
        """All of them. Nothing connects yet."""
        options = self.sentinel_options(seconds)
        return Sentinel(self.hosts, sentinel_kwargs=options)  # type: ignore[no-untyped-call]

    def pool(self, seconds: float, **options: Any) -> SentinelConnectionPool:
        """Connections to the primary: each asks Sentinel for it first."""
        return SentinelConnectionPool(  # type: ignore[no-untyped-call]
            self.name, self.sentinels(seconds), **self.login, **self.tls, **options
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
        try:
            found = SentinelUrl.parse(url)
        except ValueError:
            return cls(url, options)
        named = {
            "master_name": found.name,
            "sentinel_kwargs": found.sentinel_options(options.get("socket_connect_timeout", 1)),
        }
        given = {name: value for name, value in found.tls.items() if name != "ssl"}
        tls = {"ssl_cert_reqs": "required", **given} if found.tls else None
        return cls(";".join(found.urls), {**options, **named}, tls)
