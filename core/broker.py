"""The broker of Celery: Redis, alone or with Sentinel."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core.sentinel import SentinelUrl, is_sentinel


@dataclass(frozen=True)
class Broker:
    """What Celery needs to reach it. url: in the form of kombu."""

    url: str
    options: Mapping[str, Any] = field(default_factory=dict)
    tls: dict[str, Any] | None = None

    def sender_options(self, seconds: float) -> dict[str, Any]:
        """Options of a connection that only sends. seconds: what a call to Redis may take."""
        return {**self.options, "socket_timeout": seconds, "socket_connect_timeout": seconds}


def of(redis_url: str, *, options: Mapping[str, Any] | None = None) -> Broker:
    """A malformed URL stays as it is: `config.checks` reports it. options: of a connection."""
    options = options or {}
    try:
        return (
            _sentinel(SentinelUrl.parse(redis_url), options)
            if is_sentinel(redis_url)
            else Broker(redis_url, options)
        )
    except ValueError:
        return Broker(redis_url, options)


def _sentinel(found: SentinelUrl, options: Mapping[str, Any]) -> Broker:
    urls = found.server.one_for_each_host(str(found.database))
    return Broker(
        urls.replace("sentinels://", "sentinel://"),
        {
            **options,
            "master_name": found.name,
            "sentinel_kwargs": found.sentinel_options(options.get("socket_connect_timeout", 1)),
        },
        {"ssl_cert_reqs": "required", **found.server.tls} if found.has_tls else None,
    )
