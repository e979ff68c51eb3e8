"""The broker of Celery: Redis, Redis with Sentinel, or RabbitMQ."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kombu import Connection

from core.sentinel import SentinelUrl, is_sentinel
from core.server_urls import TLS_OPTIONS, ServerUrl

RABBITMQ_PORTS = {"amqp": 5672, "amqps": 5671}
# A connection of AMQP needs several answers of the server, so it takes longer than one of Redis.
RABBITMQ_SECONDS = 2.0
QUORUM = {"x-queue-type": "quorum"}


@dataclass(frozen=True)
class Broker:
    """What Celery needs to reach it. url: in the form of kombu."""

    url: str
    options: Mapping[str, Any] = field(default_factory=dict)
    tls: dict[str, Any] | None = None
    is_rabbitmq: bool = False

    @property
    def queue_arguments(self) -> dict[str, str] | None:
        """Queues of RabbitMQ have copies on most nodes, so they outlive a node."""
        return QUORUM if self.is_rabbitmq else None

    def connection(self, seconds: float) -> Connection:
        """One that the caller closes. Nothing connects yet."""
        return Connection(self.url, ssl=self.tls or False, transport_options=self.sender_options(seconds))

    def sender_options(self, seconds: float) -> dict[str, Any]:
        """Options of a connection that only sends. seconds: what a call to Redis may take."""
        if self.is_rabbitmq:
            waits = ("connect_timeout", "read_timeout", "write_timeout")
            return {**self.options, **dict.fromkeys(waits, RABBITMQ_SECONDS)}
        return {**self.options, "socket_timeout": seconds, "socket_connect_timeout": seconds}


def of(redis_url: str, rabbitmq_url: str = "", *, options: Mapping[str, Any] | None = None) -> Broker:
    """RabbitMQ if its URL is given, else Redis. A malformed URL stays as it is: `config.checks` reports it.

    options: of a connection to Redis.
    """
    options = options or {}
    try:
        if rabbitmq_url:
            return _rabbitmq(ServerUrl.parse(rabbitmq_url, RABBITMQ_PORTS, TLS_OPTIONS))
        if is_sentinel(redis_url):
            return _sentinel(SentinelUrl.parse(redis_url), options)
    except ValueError:
        return Broker(rabbitmq_url or redis_url, is_rabbitmq=bool(rabbitmq_url))
    return Broker(redis_url, options)


def _rabbitmq(server: ServerUrl) -> Broker:
    tls: dict[str, Any] = {name.removeprefix("ssl_"): value for name, value in server.tls.items()}
    if server.scheme == "amqps":
        # kombu puts the name of the host in the place of None.
        tls |= {
            "cert_reqs": ssl.CERT_REQUIRED if server.is_verified else ssl.CERT_NONE,
            "server_hostname": None,
        }
    return Broker(server.one_for_each_host(server.path), {"connect_timeout": 4.0}, tls or None, True)


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
