"""Redis or Valkey: whether it answers, its version, TLS and clock."""

import time
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from redis import Redis
from redis.exceptions import RedisError

from config.checks import is_local, is_redis_url
from config.deployment import clocks
from config.deployment.findings import Finding, ok, problem, warning

SECONDS = 3.0
OLDEST = {"Redis": (6, 2), "Valkey": (7, 2)}


def findings() -> list[Finding]:
    if not is_redis_url(settings.REDIS_URL):
        return []  # the settings say so
    try:
        with Redis.from_url(
            settings.REDIS_URL, socket_timeout=SECONDS, socket_connect_timeout=SECONDS
        ) as client:
            info: Any = client.info("server")
            before = time.time()
            seconds, microseconds = client.time()
            after = time.time()
    except (RedisError, OSError) as error:
        return [
            problem("Redis", str(error) or type(error).__name__, "Check REDIS_URL and that the server runs.")
        ]
    difference = seconds + microseconds / 1_000_000 - (before + after) / 2
    return [version(info), encryption(settings.REDIS_URL), clocks.compare("clock of Redis", difference)]


def version(info: dict[str, Any]) -> Finding:
    """info: the section `server` of INFO."""
    name = "Valkey" if "valkey_version" in info else "Redis"
    number = str(info.get("valkey_version", info.get("redis_version", "0")))
    oldest = OLDEST[name]
    if tuple(map(int, number.split(".")[:2])) < oldest:
        return problem(name, number, f"Install {name} {'.'.join(map(str, oldest))} or newer.")
    return ok(name, number)


def encryption(url: str) -> Finding:
    parts = urlsplit(url)
    if parts.scheme == "rediss":
        return ok("Redis TLS", "on")
    if is_local(parts.hostname or ""):
        return ok("Redis TLS", "off, on this machine")
    return warning("Redis TLS", "off", "Use rediss://...?ssl_cert_reqs=required in REDIS_URL.")
