"""Reads the environment. Invalid variables are listed for `config.checks`, and have their default."""

import math
import os
import re
from collections import ChainMap
from collections.abc import Callable, Mapping
from datetime import time
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any, TypeVar

import environ
from django.core.exceptions import ImproperlyConfigured

T = TypeVar("T")
N = TypeVar("N", int, float)
Network = IPv4Network | IPv6Network
NO_DATABASE = "missing"
# The variable with the address of the database for its owner, who migrates it.
OWNER_URL = "MIGRATION_DATABASE_URL"
# Each of these may come from a file instead, which NAME_FILE names: Docker and systemd keep secrets in files.
SECRETS = (
    "DATABASE_URL", "DATABASE_REPLICA_URL", "REDIS_URL", "SECRET_KEY", "SECRET_KEY_FALLBACKS",
    "IDEMPOTENCY_KEYS",
    "FIELD_ENCRYPTION_KEYS", "CLOSE_SIGNING_KEY", "MONITORING_TOKEN", "SANDBOX_BANK_SECRET",
    "OMISE_SECRET_KEY", "MIGRATION_DATABASE_URL", "OIDC_CLIENT_SECRET", "EMAIL_URL",
)  # fmt: skip
FILE_SUFFIX = "_FILE"
invalid_variables: dict[str, str] = {}
"""Names of such variables, with what is wrong."""


def secrets_from_files(variables: Mapping[str, str]) -> dict[str, str]:
    """The secrets that NAME_FILE gives. Lists the variables that cannot be read."""
    found = {}
    for name in SECRETS:
        path = variables.get(name + FILE_SUFFIX)
        if not path:
            continue
        if variables.get(name):
            invalid_variables[name] = f"is given twice: by {name} and by {name}{FILE_SUFFIX}"
            continue
        try:
            found[name] = text = Path(path).read_text(encoding="utf-8").removesuffix("\n")
            if not text or "\n" in text:
                raise ValueError(path)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text of one line"
            invalid_variables[name + FILE_SUFFIX] = f"names {path}, which cannot be read: {reason}"
            found.pop(name, None)
    return found


env = environ.Env()
# The environment comes second, so a variable that a test sets later is seen.
env.ENVIRON = ChainMap(secrets_from_files(os.environ), os.environ)


def read_variable(name: str, parse: Callable[..., Any], default: T) -> T:
    try:
        value: T = parse(name, default=default)
    except (ValueError, KeyError, ImproperlyConfigured):
        invalid_variables[name] = "cannot be read"
        return default
    return value


def database_url(name: str, default: dict[str, Any]) -> dict[str, Any]:
    """`postgresql://user:password@host:port/name?sslmode=...`. Of several hosts it takes the primary."""
    url = env.str(name, "")
    if not url:
        return default
    if not url.startswith(("postgresql://", "postgres://")):
        raise ValueError(name)
    found: dict[str, Any] = env.db_url(name)
    if not found["NAME"]:
        raise ValueError(name)
    if "," in found["HOST"]:
        found.setdefault("OPTIONS", {}).setdefault("target_session_attrs", "read-write")
    return found


def replica_url(name: str, default: dict[str, Any]) -> dict[str, Any]:
    """The same for a standby. One that took over is none any more."""
    found = database_url(name, default)
    if found:
        found["OPTIONS"] = found.get("OPTIONS", {}) | {"target_session_attrs": "standby"}
    return found


def email_url(name: str, default: dict[str, Any]) -> dict[str, Any]:
    """`smtp://user:password@host:port`; `smtp+tls` and `smtp+ssl` encrypt. Returns settings of Django."""
    url = env.str(name, "")
    if not url:
        return default
    if not re.fullmatch(r"smtp(\+tls|\+ssl)?://[^/?#]+/?", url):
        raise ValueError(name)
    found: dict[str, Any] = env.email_url(name)
    return found


def number(name: str, default: N, low: float = 0, high: float = math.inf, *, or_zero: bool = False) -> N:
    """An integer, or a number with decimals if the default is one, within these bounds."""
    found: N = read_variable(name, env.int if isinstance(default, int) else env.float, default)
    if low <= found <= high or (or_zero and found == 0):
        return found
    bounds = f"at least {low:g}" if high == math.inf else f"{low:,g} to {high:,.9g}"
    invalid_variables[name] = f"must be {'0, or ' if or_zero else ''}{bounds}"
    return default


def text(name: str, default: str, pattern: str, rule: str) -> str:
    """A text that is the default or matches the whole pattern."""
    found: str = env.str(name, default)
    if found == default or re.fullmatch(pattern, found):
        return found
    invalid_variables[name] = rule
    return default


def hours_of_jobs(name: str, default: dict[str, time]) -> dict[str, time]:
    """`audit=02:30,reconcile=07:00`. A job without an hour does not run, but `retention` always does."""
    text: str | None = env.str(name, None)  # None for an empty variable as well
    if name not in env.ENVIRON:
        return default
    hours: dict[str, time] = {}
    for part in filter(None, map(str.strip, (text or "").split(","))):
        job, _, hour = part.partition("=")
        if job not in default or job in hours:
            raise ValueError(part)
        hours[job] = time.fromisoformat(hour)
    return {"retention": default["retention"]} | hours
