"""Checks of settings, keys and database. A process with an error does not start, and prints a hint."""

import io
import re
import sys
from contextlib import suppress
from importlib.util import find_spec
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import DatabaseError, ProgrammingError, connections
from redis.connection import parse_url

from config.env import NO_DATABASE, invalid_variables
from core import clock, tls, vault
from core.database import replica, sessions
from core.work.redis_urls import SentinelUrl, is_sentinel
from operations.audit.daily_close import signing
from operations.data_protection import database_roles, resealing
from transfers import safe_mode

SETTINGS_TAG = "settings"
TLS_MODES = ("require", "verify-ca", "verify-full")
OR_PLAINTEXT = "or set ALLOW_PLAINTEXT_BACKENDS=1 if the network itself encrypts."
OPTIONAL_PACKAGES = [
    (93, "OTEL_EXPORTER_OTLP_ENDPOINT", "opentelemetry", "opentelemetry-exporter-otlp-proto-http"),
    (94, "SENTRY_DSN", "sentry_sdk", "sentry-sdk"),
]


def refuse_wrong_settings() -> None:
    """Run every check. Servers and workers call it at their start, and exit with what is wrong."""
    try:
        # Ours come first: without a database, Django's checks of models end in a traceback.
        _run_checks(SETTINGS_TAG, Tags.database)
        _run_checks()
        with suppress(ProgrammingError):  # without tables `/readyz` reports it
            resealing.write_key_check()
            safe_mode.check(now=clock.now())
        _run_checks(Tags.database)  # somebody else may have written it, with other keys
    except SystemCheckError as error:
        sys.exit(str(error))


def _run_checks(*tags: str) -> None:
    """Print warnings only: the command prints "no issues" to standard output."""
    output = io.StringIO()
    call_command("check", databases=["default"], fail_level="ERROR", tags=tags or None, stdout=output)


def _error(number: int, message: str, hint: str) -> CheckMessage:
    return Error(message, hint=hint, id=f"qr.E{number:03}")


@register(SETTINGS_TAG)
def valid_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """What is missing or malformed."""
    found = [
        _error(14, f"{name} {problem}.", "See docs/settings.md.")
        for name, problem in invalid_variables.items()
    ]
    secret_key = ""
    with suppress(ImproperlyConfigured):  # Django raises it for an empty key
        secret_key = settings.SECRET_KEY
    if len(secret_key) < 32:
        found.append(_error(1, "SECRET_KEY is missing or short.", "Set SECRET_KEY to 50 random characters."))
    if not settings.IDEMPOTENCY_KEYS or min(map(len, settings.IDEMPOTENCY_KEYS)) < 32:
        hint = "50 random characters; older keys after it, separated by commas. See docs/operations.md."
        found.append(_error(80, "IDEMPOTENCY_KEYS is missing or contains a key that is too short.", hint))
    if any(len(key) < 32 for key in settings.SECRET_KEY_FALLBACKS):
        hint = "Former values of SECRET_KEY, separated by commas, or none."
        found.append(_error(81, "SECRET_KEY_FALLBACKS contains a key that is too short.", hint))
    if not settings.FIELD_ENCRYPTION_KEYS or not all(map(vault.is_key, settings.FIELD_ENCRYPTION_KEYS)):
        hint = "keys of 32 bytes in URL-safe base64 (44 characters), newest first, separated by commas."
        found.append(_error(2, "FIELD_ENCRYPTION_KEYS is missing or contains a malformed key.", hint))
    if settings.CLOSE_SIGNING_KEY and not vault.is_key(settings.CLOSE_SIGNING_KEY):
        hint = "32 random bytes in URL-safe base64 (44 characters), or none."
        found.append(_error(92, "CLOSE_SIGNING_KEY is malformed.", hint))
    if not all(map(signing.is_public_key, settings.CLOSE_PUBLIC_KEYS)):
        hint = "What `daily_close --public-key` printed before a new CLOSE_SIGNING_KEY, separated by commas."
        found.append(_error(98, "CLOSE_PUBLIC_KEYS is malformed.", hint))
    if not is_redis_url(settings.REDIS_URL):
        hint = "For example redis://:password@host:6379/0, or sentinel://:password@host,host,host/name/0."
        found.append(_error(3, "REDIS_URL is missing or malformed.", hint))
    if not re.fullmatch(r"https?://[^/\s?#:]+(:\d{1,5})?", settings.BASE_URL):
        hint = "The address that merchants reach, for example https://pay.example.com."
        found.append(_error(4, "BASE_URL is missing or malformed.", hint))
    if settings.DATABASES["default"]["NAME"] == NO_DATABASE:
        hint = "For example postgresql://user:password@host:5432/name."
        found.append(_error(5, "DATABASE_URL is missing.", hint))
    if settings.CA_BUNDLE and not tls.has_certificates(settings.CA_BUNDLE):
        hint = "A file of authorities in PEM, or none."
        found.append(_error(29, "CA_BUNDLE is no file of certificates that can be read.", hint))
    return found


@register(SETTINGS_TAG)
def public_service(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Values that are for a service on this machine only."""
    parts = urlsplit(settings.BASE_URL)
    if is_local(parts.hostname or ""):
        return []
    found = []
    if parts.scheme == "http":
        hint = "Keys and payments would cross the network openly. Use https."
        found.append(_error(95, "BASE_URL is an http address of another machine.", hint))
    if "*" in settings.ALLOWED_HOSTS:
        hint = "Name the hosts of the console, such as the one of BASE_URL."
        found.append(_error(97, "ALLOWED_HOSTS admits every host.", hint))
    return found


@register(SETTINGS_TAG)
def optional_packages(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """The packages of an extra that a setting needs."""
    hint = "Install the packages of requirements/production.lock."
    return [
        _error(number, f"{name} needs {package}, which is not installed.", hint)
        for number, name, module, package in OPTIONAL_PACKAGES
        if getattr(settings, name) and find_spec(module) is None
    ]


@register(SETTINGS_TAG)
def encrypted_backends(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Payments and sessions must not cross a network unencrypted."""
    if settings.ALLOW_PLAINTEXT_BACKENDS:
        return []
    found = []
    for alias, database in settings.DATABASES.items():
        name = "DATABASE_REPLICA_URL" if alias == replica.ALIAS else "DATABASE_URL"
        options = database.get("OPTIONS", {})
        # The query of the URL may name hosts too.
        hosts = [database.get("HOST", ""), options.get("host", ""), options.get("hostaddr", "")]
        if not all(map(is_local, hosts)) and options.get("sslmode", "prefer") not in TLS_MODES:
            hint = f"Add ?sslmode=verify-full (or require) to {name}, {OR_PLAINTEXT}"
            found.append(_error(71, f"{name} reaches another machine without TLS.", hint))
    # `valid_settings` reports a malformed URL.
    if is_redis_url(settings.REDIS_URL) and not is_safe_redis(settings.REDIS_URL):
        hint = f"Use rediss://...?ssl_cert_reqs=required or sentinels:// in REDIS_URL, {OR_PLAINTEXT}"
        found.append(_error(72, "REDIS_URL reaches another machine without TLS.", hint))
    return found


def is_safe_redis(url: str) -> bool:
    """Whether a valid REDIS_URL stays on this machine, or verifies the other by TLS."""
    if is_sentinel(url):
        found = SentinelUrl.parse(url)
        return found.is_verified or all(is_local(host) for host, _ in found.hosts)
    parts = urlsplit(url)
    is_verified = parts.scheme == "rediss" and "none" not in parse_qs(parts.query).get("ssl_cert_reqs", [])
    return is_verified or is_local(parts.hostname or "")


def is_local(hosts: str) -> bool:
    """Unix sockets, or this machine's loopback interface. libpq separates several hosts by commas."""
    return all(map(_is_local, hosts.split(",")))


def _is_local(host: str) -> bool:
    if not host or host.startswith("/") or host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a name
        return False


@register(Tags.database)
def usable_database(app_configs: Any, databases: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Durable commits, limits of sessions, rights of the application, and keys that open what is stored."""
    if databases is None:  # `manage.py check` and `makemigrations` work without a database
        return []
    try:
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT current_setting('synchronous_commit'), current_setting('fsync')")
            commit, fsync = cursor.fetchone()
    except DatabaseError as error:
        reason = str(error).strip().splitlines()[0]
        is_pooler = "unsupported startup parameter" in reason
        hint = sessions.PREPARE_HINT if is_pooler else "Check DATABASE_URL and that it runs."
        return [_error(12, f"The database does not answer: {reason}", hint)]
    found = []
    if commit == "off" or fsync == "off":  # PostgreSQL must not acknowledge a commit that a crash can lose
        hint = "Set synchronous_commit = on and fsync = on in postgresql.conf."
        text = f"The database is not durable: synchronous_commit={commit}, fsync={fsync}."
        found.append(_error(13, text, hint))
    with suppress(DatabaseError):
        if problem := sessions.find_problem(connections["default"]):
            found.append(_error(70, *problem))
    with suppress(DatabaseError):
        missing = database_roles.find_missing()
        if missing and missing.includes_reading:  # every request would fail, and so would a look at the keys
            return [*found, _error(74, missing.found, missing.advice)]
    keys = settings.FIELD_ENCRYPTION_KEYS
    with suppress(DatabaseError):  # it has no tables yet
        if keys and all(map(vault.is_key, keys)) and (wrong := resealing.find_problem()):
            found.append(_error(82, wrong, resealing.HINT))
    return found


def is_redis_url(url: str) -> bool:
    """Whether the URL is well formed."""
    with suppress(ValueError):
        (SentinelUrl.parse if is_sentinel(url) else parse_url)(url)
        return True
    return False
