"""Reads the environment. Invalid variables are listed for `config.checks` and raise no exception."""

import logging
from collections.abc import Callable
from datetime import time
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, TypeVar

import environ
from django.core.exceptions import ImproperlyConfigured

T = TypeVar("T")
Network = IPv4Network | IPv6Network
env = environ.Env()
invalid_variables: list[str] = []  # the names of such variables
NO_DATABASE = "missing"


def read_variable(name: str, parse: Callable[..., Any], default: T) -> T:
    """The variable as `parse` reads it, or its default."""
    try:
        value: T = parse(name, default=default)
    except (ValueError, KeyError, ImproperlyConfigured):
        invalid_variables.append(name)
        return default
    return value


def database_url(name: str, default: dict[str, Any]) -> dict[str, Any]:
    """`postgresql://user:password@host:port/name?sslmode=...`."""
    url = env.str(name, "")
    if not url:
        return default
    if not url.startswith(("postgresql://", "postgres://")):
        raise ValueError(name)
    found: dict[str, Any] = env.db_url(name)
    if not found["NAME"]:
        raise ValueError(name)
    return found


def networks(name: str, default: list[Network]) -> list[Network]:
    return [ip_network(cidr) for cidr in env.list(name, default=default)]


def ports(name: str, default: list[int]) -> list[int]:
    return [int(port) for port in env.list(name, default=default)]


def log_level(name: str, default: str) -> str:
    level: str = env.str(name, default).upper()
    if level not in logging.getLevelNamesMapping():
        raise ValueError(level)
    return level


def log_stream(name: str, default: str) -> str:
    stream: str = env.str(name, default)
    if stream not in ("stdout", "stderr"):
        raise ValueError(stream)
    return stream


NIGHTLY_JOBS = ("daily_close", "audit", "import_statements", "reconcile")


def hours_of_jobs(name: str, default: dict[str, time]) -> dict[str, time]:
    """`audit=02:30,reconcile=07:00`. A job without an hour does not run."""
    text: str | None = env.str(name, None)
    if text is None:
        return default
    hours = {}
    for part in filter(None, map(str.strip, text.split(","))):
        job, _, hour = part.partition("=")
        if job not in NIGHTLY_JOBS or job in hours:
            raise ValueError(part)
        hours[job] = time.fromisoformat(hour)
    return hours
