"""Redis or Valkey: whether it answers, its version, TLS and clock."""

import time
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from redis import Redis
from redis.exceptions import RedisError

from config.checks import is_redis_url, is_safe_redis
from config.deployment.findings import Finding, judge, ok, problem, warning
from config.deployment.machine import compare_clock
from core.work import redis
from core.work.redis_urls import SentinelUrl, is_sentinel

SECONDS = 3.0
FEWEST_SENTINELS = 3
OLDEST = {"Redis": (6, 2), "Valkey": (7, 2)}


def findings() -> list[Finding]:
    if not is_redis_url(settings.REDIS_URL):
        return []  # the settings say so
    sentinels = sentinel_findings(settings.REDIS_URL)
    try:
        with redis.connect(settings.REDIS_URL, SECONDS) as client:
            info: Any = client.info("server")
            before = time.time()
            seconds, microseconds = client.time()
            after = time.time()
    except (RedisError, OSError) as error:
        reason = str(error) or type(error).__name__
        return [*sentinels, problem("Redis", reason, "Check REDIS_URL and that the server runs.")]
    difference = seconds + microseconds / 1_000_000 - (before + after) / 2
    clock = compare_clock("clock of Redis", difference)
    return [*sentinels, version(info), encryption(settings.REDIS_URL), clock]


def sentinel_findings(url: str) -> list[Finding]:
    """How many Sentinels answer, and whether a replica can take over. None without Sentinel."""
    if not is_sentinel(url):
        return []
    found = SentinelUrl.parse(url)
    known = [_replicas(sentinel, found.name) for sentinel in found.sentinels(SECONDS).sentinels]
    states = [each for each in known if isinstance(each, list)]
    if not states:
        reason = f"none tells the primary {found.name}: {known[0]}"
        return [problem("Sentinel", reason, "Check that they run, their TLS and password, and the name.")]
    shown = f"{len(states)} of {len(known)} answer"
    if len(states) < len(known) or len(known) < FEWEST_SENTINELS:
        advice = "Run three on three machines: two must agree on a fail-over."
        return [warning("Sentinel", shown, advice)]
    down = ("is_sdown", "is_odown", "is_disconnected")
    replicas = [replica for known_to_one in states for replica in known_to_one]
    if all(each["master-link-status"] != "ok" or any(each[name] for name in down) for each in replicas):
        advice = "Nothing can take over: start a replica, and look whether it follows the primary."
        return [warning("Sentinel", "no replica of the primary is up", advice)]
    return [ok("Sentinel", shown)]


def _replicas(sentinel: Redis, name: str) -> list[dict[str, Any]] | str:
    """What it knows of the primary's replicas, also of dead ones, or why it does not tell."""
    try:
        replicas: Any = sentinel.sentinel_slaves(name)
    except (RedisError, OSError) as error:
        return str(error) or type(error).__name__
    finally:
        sentinel.close()
    return list(replicas)


def version(info: dict[str, Any]) -> Finding:
    """info: the section `server` of INFO."""
    name = "Valkey" if "valkey_version" in info else "Redis"
    number = str(info.get("valkey_version", info.get("redis_version", "0")))
    is_old = tuple(map(int, number.split(".")[:2])) < OLDEST[name]
    advice = f"Install {name} {'.'.join(map(str, OLDEST[name]))} or newer."
    return judge(name, number, advice, is_problem=is_old)


def encryption(url: str) -> Finding:
    if urlsplit(url).scheme in ("rediss", "sentinels"):
        return ok("Redis TLS", "on")
    if is_safe_redis(url):
        return ok("Redis TLS", "off, on this machine")
    advice = "Use rediss://...?ssl_cert_reqs=required or sentinels:// in REDIS_URL."
    return warning("Redis TLS", "off", advice)
