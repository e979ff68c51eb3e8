"""Checks of settings, keys and database. A process with an error does not start, and prints a hint."""

import io
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import DatabaseError, ProgrammingError, connections

from config.env import NO_DATABASE, invalid_variables
from core import clock, money, tls, vault
from core.postgres import replica, sessions
from core.redis_urls import SentinelUrl, is_sentinel
from operations import database_roles, resealing
from operations.daily_close import signing
from transfers import safe_mode

MAX_TTL_HOURS = 8784
MAX_WAITING_HOURS = 720
MAX_TOLERANCE_SECONDS = 3600
INTERNAL_URL = r"http://(?:[0-9A-Za-z.-]+|\[[0-9A-Fa-f:]+\]):[0-9]{1,5}"
MAX_EXPORT_ROWS = 200_000
MAX_KEPT_DAYS = 3653
# A refund goes to the account that paid.
MIN_KEPT_DAYS = 30
MAX_PROXY_HOPS = 10
MAX_CARD_CONCURRENCY = 64
MAX_IDLE_MINUTES = 480
MAX_PORT = 65_535
MAX_WEB_WORKERS = 256
MAX_WEB_THREADS = 64
SETTINGS_TAG = "settings"
TLS_MODES = ("require", "verify-ca", "verify-full")
OR_PLAINTEXT = "or set ALLOW_PLAINTEXT_BACKENDS=1 if the network itself encrypts."
MIN_TOKEN_LENGTH = 24
WEBHOOK_PROBE_MODES = ("off", "reachable", "2xx")


def refuse_wrong_settings() -> None:
    """Run every check. Servers and workers call it at their start. Raises SystemCheckError."""
    # Ours come first: without a database, Django's checks of models end in a traceback.
    _run_checks(SETTINGS_TAG, Tags.database)
    _run_checks()
    with suppress(ProgrammingError):  # without tables `/readyz` reports it
        resealing.write_key_check()
        safe_mode.check(now=clock.now())
    _run_checks(Tags.database)  # somebody else may have written it, with other keys


def _run_checks(*tags: str) -> None:
    """Print warnings only: the command prints "no issues" to standard output."""
    output = io.StringIO()
    call_command("check", databases=["default"], fail_level="ERROR", tags=tags or None, stdout=output)


def _error(number: int, message: str, hint: str) -> CheckMessage:
    return Error(message, hint=hint, id=f"qr.E{number:03}")


@register(SETTINGS_TAG)
def required_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """SECRET_KEY, IDEMPOTENCY_KEYS, FIELD_ENCRYPTION_KEYS, REDIS_URL, BASE_URL, DATABASE_URL."""
    found = []
    if len(_secret_key()) < 32:
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
    if not is_redis_url(settings.REDIS_URL):
        hint = "For example redis://:password@host:6379/0, or sentinel://:password@host,host,host/name/0."
        found.append(_error(3, "REDIS_URL is missing or malformed.", hint))
    if not re.fullmatch(r"https?://[^/\s?#:]+(:\d{1,5})?", settings.BASE_URL):
        hint = "The address that merchants reach, for example https://pay.example.com."
        found.append(_error(4, "BASE_URL is missing or malformed.", hint))
    if settings.DATABASES["default"]["NAME"] == NO_DATABASE:
        hint = "For example postgresql://user:password@host:5432/name."
        found.append(_error(5, "DATABASE_URL is missing.", hint))
    return found


@dataclass(frozen=True)
class SettingRule:
    """A rule for the value of one setting, independent of other settings."""

    number: int
    name: str
    is_valid: Callable[[Any], object]
    problem: str
    hint: str


OPTIONAL_PACKAGES = [
    (93, "OTEL_EXPORTER_OTLP_ENDPOINT", "opentelemetry", "opentelemetry-exporter-otlp-proto-http"),
    (94, "SENTRY_DSN", "sentry_sdk", "sentry-sdk"),
]
SETTING_RULES = [
    SettingRule(6, "RATE_LIMIT", lambda n: n >= 0, "is negative",
        "Requests per second and key; 0 turns it off."),
    SettingRule(7, "IDEMPOTENCY_TTL_HOURS", lambda n: 0 < n <= MAX_TTL_HOURS, "is out of range",
        "24, or less in tests; a year at most."),
    SettingRule(8, "WEBHOOK_PROBE", lambda mode: mode in WEBHOOK_PROBE_MODES, "is unknown",
        f"One of {', '.join(WEBHOOK_PROBE_MODES)}."),
    SettingRule(9, "WEBHOOK_TIMEOUT_SECONDS", lambda n: n > 0, "must be positive", "15 by default."),
    SettingRule(11, "SANDBOX_BANK_SECRET", lambda text: not text or len(text) >= MIN_TOKEN_LENGTH, "is short",
        f"Use at least {MIN_TOKEN_LENGTH} random characters, or none."),
    SettingRule(26, "PORT", lambda n: 1 <= n <= MAX_PORT, "is out of range",
        f"8000 by default; 1 to {MAX_PORT}."),
    SettingRule(27, "WEB_WORKERS", lambda n: 1 <= n <= MAX_WEB_WORKERS, "is out of range",
        f"2 by default; 1 to {MAX_WEB_WORKERS} processes, one for each core."),
    SettingRule(28, "WEB_THREADS", lambda n: 1 <= n <= MAX_WEB_THREADS, "is out of range",
        f"4 by default; 1 to {MAX_WEB_THREADS} threads in each process."),
    SettingRule(16, "WEBHOOK_CONCURRENCY", lambda n: n >= 2, "must be at least 2",
        "96 by default; half of them serve endpoints that are slow."),
    SettingRule(17, "SPEEDUP", lambda n: n > 0, "must be positive", "1 by default."),
    SettingRule(18, "CARD_CONCURRENCY", lambda n: 1 <= n <= MAX_CARD_CONCURRENCY, "is out of range",
        f"8 by default; 1 to {MAX_CARD_CONCURRENCY} card payments that wait for their acquirer at once."),
    SettingRule(19, "SANDBOX_ACQUIRER_URL", lambda url: not url or re.fullmatch(INTERNAL_URL, url),
        "is malformed",
        "The host and port of the sandbox bank, such as http://127.0.0.1:8100, or none."),
    SettingRule(20, "OMISE_API_URL", lambda url: re.fullmatch(r"https://[^/\s?#@]+", url), "is malformed",
        "https://api.omise.co, or leave it out."),
    SettingRule(92, "CLOSE_SIGNING_KEY", lambda key: not key or vault.is_key(key), "is malformed",
        "32 random bytes in URL-safe base64 (44 characters), or none."),
    SettingRule(93, "CLOSE_PUBLIC_KEYS", lambda keys: all(map(signing.is_public_key, keys)), "is malformed",
        "What `daily_close --public-key` printed before a new CLOSE_SIGNING_KEY, separated by commas."),
    SettingRule(52, "OIDC_ISSUER",
        lambda url: not url or re.fullmatch(r"https://[^\s?#@]+|http://127\.0\.0\.1:\d+", url),
        "is malformed", "The https address of the login of a company, or none."),
    SettingRule(23, "SESSION_IDLE_MINUTES", lambda n: 1 <= n <= MAX_IDLE_MINUTES, "is out of range",
        f"30 by default; 1 to {MAX_IDLE_MINUTES}, after which each session ends in any case."),
    SettingRule(24, "EXPORT_MAX_ROWS", lambda n: 1 <= n <= MAX_EXPORT_ROWS, "is out of range",
        f"50,000 by default; 1 to {MAX_EXPORT_ROWS:,}, because the web server holds the file in memory."),
    SettingRule(21, "WEBHOOK_ATTEMPT_RETENTION_DAYS", lambda n: 1 <= n <= MAX_KEPT_DAYS, "is out of range",
        "90 by default; at least 1, ten years at most."),
    SettingRule(25, "REQUEST_LOG_RETENTION_DAYS", lambda n: 0 <= n <= MAX_KEPT_DAYS, "is out of range",
        "30 by default; 0 records no requests; ten years at most."),
    SettingRule(45, "WEBHOOK_DELIVERY_RETENTION_DAYS",
        lambda n: n == 0 or MIN_KEPT_DAYS <= n <= MAX_KEPT_DAYS, "is out of range",
        f"0 by default, which keeps deliveries; else {MIN_KEPT_DAYS} days to ten years."),
    SettingRule(46, "INQUIRY_ANSWER_RETENTION_DAYS",
        lambda n: n == 0 or MIN_KEPT_DAYS <= n <= MAX_KEPT_DAYS, "is out of range",
        f"0 by default, which keeps answers of banks; else {MIN_KEPT_DAYS} days to ten years."),
    SettingRule(44, "PERSONAL_DATA_RETENTION_DAYS",
        lambda n: n == 0 or MIN_KEPT_DAYS <= n <= MAX_KEPT_DAYS, "is out of range",
        f"0 by default, which keeps personal data; else {MIN_KEPT_DAYS} days to ten years."),
    SettingRule(22, "PROXY_HOPS", lambda n: 0 <= n <= MAX_PROXY_HOPS, "is out of range",
        f"The number of your own proxies in front of web, up to {MAX_PROXY_HOPS}; 0 where none does."),
    SettingRule(40, "APPROVAL_ITEM_LIMIT", lambda n: 0 <= n < money.MAX_AMOUNT, "is out of range",
        f"Satang below {money.MAX_AMOUNT}, the most that is sent at once; 0 turns it off."),
    SettingRule(41, "APPROVAL_DAILY_LIMIT", lambda n: n >= 0, "is negative",
        "Satang per merchant and 24 hours; 0 turns it off."),
    SettingRule(43, "PAYOUT_ACCOUNT_WAITING_HOURS", lambda n: 0 <= n <= MAX_WAITING_HOURS, "is out of range",
        "24 by default; 0 lets new accounts be used at once; 30 days at most."),
    SettingRule(50, "REFUSED_KEYS_PER_MINUTE", lambda n: n >= 0, "is negative",
        "600 by default; 0 turns it off."),
    SettingRule(51, "MONITORING_TOKEN", lambda text: not text or len(text) >= MIN_TOKEN_LENGTH, "is short",
        f"Use at least {MIN_TOKEN_LENGTH} random characters, or none."),
    SettingRule(29, "CA_BUNDLE", lambda path: not path or tls.has_certificates(path),
        "is no file of certificates that can be read", "A file of authorities in PEM, or none."),
    SettingRule(60, "WEBHOOKS_PER_MERCHANT", lambda n: n >= 1, "admits none", "20 by default; at least 1."),
    SettingRule(90, "LATE_TOLERANCE_SECONDS", lambda n: 0 <= n <= MAX_TOLERANCE_SECONDS, "is out of range",
        "Seconds, 0 by default; an hour at most."),
    SettingRule(91, "CLOCK_WARNING_SECONDS", lambda n: n > 0, "must be positive", "Seconds, 2 by default."),
]  # fmt: skip


@register(SETTINGS_TAG)
def valid_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Values that make no sense, alone or together."""
    found = [
        _error(14, f"{name} {problem}.", "See docs/settings.md.")
        for name, problem in invalid_variables.items()
    ]
    found += [
        _error(rule.number, f"{rule.name} {rule.problem}.", rule.hint)
        for rule in SETTING_RULES
        if not rule.is_valid(getattr(settings, rule.name))
    ]
    if settings.RATE_LIMIT > 0 and settings.RATE_LIMIT_BURST < 1:
        hint = "At least 1; twice RATE_LIMIT if not set."
        found.append(_error(15, "RATE_LIMIT_BURST admits nothing.", hint))
    if settings.WEBHOOK_ALLOW_HTTP and not settings.WEBHOOK_ALLOWED_NETWORKS:
        hint = "Name the networks that may be reached by http in WEBHOOK_ALLOWED_NETWORKS."
        found.append(_error(10, "WEBHOOK_ALLOW_HTTP has no effect.", hint))
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
    if settings.DEBUG:
        hint = "Remove DEBUG: clients would see source code and settings."
        found.append(_error(96, "DEBUG is on for a service that others reach.", hint))
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
        if not _is_private(database):
            hint = f"Add ?sslmode=verify-full (or require) to {name}, {OR_PLAINTEXT}"
            found.append(_error(71, f"{name} reaches another machine without TLS.", hint))
    # `required_settings` and `valid_settings` report malformed URLs.
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


def _is_private(database: dict[str, Any]) -> bool:
    """On this machine, or encrypted. The query of the URL may name hosts too."""
    options = database.get("OPTIONS", {})
    hosts = [database.get("HOST", ""), options.get("host", ""), options.get("hostaddr", "")]
    return all(map(is_local, hosts)) or options.get("sslmode", "prefer") in TLS_MODES


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
def durable_database(app_configs: Any, databases: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Require durable commits: PostgreSQL must not acknowledge a commit that a crash can lose."""
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
    if commit == "off" or fsync == "off":
        hint = "Set synchronous_commit = on and fsync = on in postgresql.conf."
        return [_error(13, f"The database is not durable: synchronous_commit={commit}, fsync={fsync}.", hint)]
    return []


@register(Tags.database)
def database_sessions(app_configs: Any, databases: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Time-outs and prepared statements must work, also behind a pooler."""
    if databases is None:
        return []
    try:
        problem = sessions.find_problem(connections["default"])
    except DatabaseError:  # `durable_database` reports it
        return []
    return [] if problem is None else [_error(70, *problem)]


@register(Tags.database)
def database_rights(app_configs: Any, databases: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """A login without the rights of the application would fail every request. See `MissingRights`."""
    if databases is None:
        return []
    try:
        missing = database_roles.find_missing()
    except DatabaseError:  # `durable_database` reports it
        return []
    return [_error(74, missing.found, missing.advice)] if missing and missing.includes_reading else []


@register(Tags.database)
def encryption_keys(app_configs: Any, databases: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """The keys must decrypt the stored data before anything is encrypted with them."""
    keys = settings.FIELD_ENCRYPTION_KEYS
    if databases is None or not keys or not all(map(vault.is_key, keys)):
        return []
    try:
        problem = resealing.find_problem()
    except DatabaseError:  # it does not answer, or has no tables yet
        return []
    return [] if problem is None else [_error(82, problem, resealing.HINT)]


def _secret_key() -> str:
    try:
        return str(settings.SECRET_KEY)
    except ImproperlyConfigured:  # Django raises it for an empty key
        return ""


def is_redis_url(url: str) -> bool:
    """Whether the URL is well formed."""
    try:
        if is_sentinel(url):
            return bool(SentinelUrl.parse(url))
        parts = urlsplit(url)
        return parts.scheme in ("redis", "rediss", "unix") and (parts.port is None or parts.port > 0)
    except ValueError:  # a port that is no number
        return False
