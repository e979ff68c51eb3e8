"""A wrong or missing setting refuses to start, with a hint that says what to set."""

import os
import re
from contextlib import suppress
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cryptography.fernet import Fernet
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import DatabaseError, ProgrammingError, connections

from config.env import NO_DATABASE, invalid_variables
from core import money
from core.postgres import sessions
from operations import encryption

MAX_TTL_HOURS = 8784
MAX_WAITING_HOURS = 720
MAX_TOLERANCE_SECONDS = 3600
INTERNAL_URL = r"http://[0-9A-Za-z.-]+:[0-9]{1,5}"
MAX_ATTEMPT_DAYS = 3653
MAX_PROXY_HOPS = 10
MAX_CARD_CONCURRENCY = 64
SETTINGS_TAG = "settings"
OLD_APPROVAL_SETTING = "WITHDRAWAL_APPROVAL_ABOVE"
TLS_MODES = ("require", "verify-ca", "verify-full")
OR_PLAINTEXT = "or set ALLOW_PLAINTEXT_BACKENDS=1 where the network encrypts by itself."
MIN_TOKEN_LENGTH = 24
WEBHOOK_PROBE_MODES = ("off", "reachable", "2xx")


def refuse_wrong_settings() -> None:
    """Run every check, the database's too; raises SystemCheckError. Servers and workers call it at start."""
    # First ours: Django's checks of models end in a traceback where the database does not answer.
    call_command("check", tags=[SETTINGS_TAG, Tags.database], databases=["default"], fail_level="ERROR")
    _run_checks()
    with suppress(ProgrammingError):  # the tables are not there yet, as `/readyz` says
        encryption.write_key_check()
    _run_checks(Tags.database)  # somebody else may have written it, with other keys


def _run_checks(*tags: str) -> None:
    call_command("check", databases=["default"], fail_level="ERROR", tags=tags or None)


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
        found.append(_error(80, "IDEMPOTENCY_KEYS is missing or holds a short key.", hint))
    if any(len(key) < 32 for key in settings.SECRET_KEY_FALLBACKS):
        hint = "Former values of SECRET_KEY, separated by commas, or none."
        found.append(_error(81, "SECRET_KEY_FALLBACKS holds a short key.", hint))
    if not settings.FIELD_ENCRYPTION_KEYS or not all(map(_is_fernet_key, settings.FIELD_ENCRYPTION_KEYS)):
        hint = "Fernet keys (44 characters of URL-safe base64), newest first, separated by commas."
        found.append(_error(2, "FIELD_ENCRYPTION_KEYS is missing or holds a malformed key.", hint))
    if not _is_redis_url(settings.REDIS_URL):
        found.append(
            _error(3, "REDIS_URL is missing or malformed.", "For example redis://:password@host:6379/0.")
        )
    if not re.fullmatch(r"https?://[^/\s?#:]+(:\d{1,5})?", settings.BASE_URL):
        hint = "The address that merchants reach, for example https://pay.example.com."
        found.append(_error(4, "BASE_URL is missing or malformed.", hint))
    if settings.DATABASES["default"]["NAME"] == NO_DATABASE:
        hint = "For example postgresql://user:password@host:5432/name."
        found.append(_error(5, "DATABASE_URL is missing.", hint))
    return found


@register(SETTINGS_TAG)
def bounded_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Numbers and choices that make no sense."""
    found: list[CheckMessage] = []
    found.extend(
        _error(14, f"{name} cannot be read.", "See docs/operations.md.") for name in invalid_variables
    )
    if settings.RATE_LIMIT < 0:
        found.append(_error(6, "RATE_LIMIT is negative.", "Requests per second and key; 0 turns it off."))
    if settings.RATE_LIMIT > 0 and settings.RATE_LIMIT_BURST < 1:
        found.append(
            _error(15, "RATE_LIMIT_BURST admits nothing.", "At least 1; twice RATE_LIMIT if not set.")
        )
    if not 0 < settings.IDEMPOTENCY_TTL_HOURS <= MAX_TTL_HOURS:
        found.append(
            _error(7, "IDEMPOTENCY_TTL_HOURS is out of range.", "24, or less in tests; a year at most.")
        )
    if settings.WEBHOOK_PROBE not in WEBHOOK_PROBE_MODES:
        found.append(_error(8, "WEBHOOK_PROBE is unknown.", f"One of {', '.join(WEBHOOK_PROBE_MODES)}."))
    if settings.WEBHOOK_TIMEOUT_SECONDS <= 0:
        found.append(_error(9, "WEBHOOK_TIMEOUT_SECONDS must be positive.", "15 by default."))
    if settings.SPEEDUP <= 0:
        found.append(_error(17, "SPEEDUP must be positive.", "1 by default."))
    if settings.WEBHOOK_THREADS < 2:
        hint = "96 by default; half of them serve endpoints that are slow."
        found.append(_error(16, "WEBHOOK_THREADS must be at least 2.", hint))
    if not 1 <= settings.WEBHOOK_ATTEMPT_RETENTION_DAYS <= MAX_ATTEMPT_DAYS:
        hint = "90 by default; at least 1, ten years at most."
        found.append(_error(21, "WEBHOOK_ATTEMPT_RETENTION_DAYS is out of range.", hint))
    if settings.WEBHOOK_ALLOW_HTTP and not settings.WEBHOOK_ALLOWED_NETWORKS:
        hint = "Name the networks that may be reached by http in WEBHOOK_ALLOWED_NETWORKS."
        found.append(_error(10, "WEBHOOK_ALLOW_HTTP has no effect.", hint))
    if settings.SANDBOX_BANK_SECRET and len(settings.SANDBOX_BANK_SECRET) < 24:
        found.append(
            _error(11, "SANDBOX_BANK_SECRET is short.", "Use at least 24 random characters, or none.")
        )
    return found


@register(SETTINGS_TAG)
def webhook_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """How many webhooks a merchant may have."""
    if settings.WEBHOOKS_PER_MERCHANT >= 1:
        return []
    return [_error(60, "WEBHOOKS_PER_MERCHANT admits none.", "20 by default; at least 1.")]


@register(SETTINGS_TAG)
def approval_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Above which amounts a second person approves outgoing money."""
    found = []
    if not 0 <= settings.APPROVAL_ITEM_LIMIT < money.MAX_AMOUNT:
        hint = f"Satang below {money.MAX_AMOUNT}, the most that is sent at once; 0 turns it off."
        found.append(_error(40, "APPROVAL_ITEM_LIMIT is out of range.", hint))
    if settings.APPROVAL_DAILY_LIMIT < 0:
        hint = "Satang per merchant and 24 hours; 0 turns it off."
        found.append(_error(41, "APPROVAL_DAILY_LIMIT is negative.", hint))
    if not 0 <= settings.PAYOUT_ACCOUNT_WAITING_HOURS <= MAX_WAITING_HOURS:
        hint = "24 by default; 0 lets new accounts be used at once; 30 days at most."
        found.append(_error(43, "PAYOUT_ACCOUNT_WAITING_HOURS is out of range.", hint))
    if OLD_APPROVAL_SETTING in os.environ:
        hint = "Set APPROVAL_ITEM_LIMIT and APPROVAL_DAILY_LIMIT instead, and remove it."
        found.append(_error(42, f"{OLD_APPROVAL_SETTING} has no effect any more.", hint))
    return found


@register(SETTINGS_TAG)
def unauthenticated_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """What holds back requests without a valid key."""
    found = []
    if settings.REFUSED_KEYS_PER_MINUTE < 0:
        found.append(_error(50, "REFUSED_KEYS_PER_MINUTE is negative.", "600 by default; 0 turns it off."))
    if settings.MONITORING_TOKEN and len(settings.MONITORING_TOKEN) < MIN_TOKEN_LENGTH:
        hint = f"Use at least {MIN_TOKEN_LENGTH} random characters, or none."
        found.append(_error(51, "MONITORING_TOKEN is short.", hint))
    return found


@register(SETTINGS_TAG)
def clock_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """What clocks may do."""
    found = []
    if not 0 <= settings.LATE_TOLERANCE_SECONDS <= MAX_TOLERANCE_SECONDS:
        hint = "Seconds, 0 by default; an hour at most."
        found.append(_error(80, "LATE_TOLERANCE_SECONDS is out of range.", hint))
    if not settings.CLOCK_WARNING_SECONDS > 0:
        found.append(_error(81, "CLOCK_WARNING_SECONDS must be positive.", "Seconds, 2 by default."))
    return found


@register(SETTINGS_TAG)
def acquirer_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Where cards are charged."""
    found = []
    if settings.SANDBOX_ACQUIRER_URL and not re.fullmatch(INTERNAL_URL, settings.SANDBOX_ACQUIRER_URL):
        hint = (
            "A host and a port that the sandbox bank may listen on, such as http://127.0.0.1:8100, or none."
        )
        found.append(_error(19, "SANDBOX_ACQUIRER_URL is malformed.", hint))
    if not re.fullmatch(r"https://[^/\s?#@]+", settings.OMISE_API_URL):
        found.append(_error(20, "OMISE_API_URL is malformed.", "https://api.omise.co, or leave it out."))
    if not 1 <= settings.CARD_CONCURRENCY <= MAX_CARD_CONCURRENCY:
        hint = (
            f"8 by default; 1 to {MAX_CARD_CONCURRENCY} card payments that wait for their acquirer at once."
        )
        found.append(_error(41, "CARD_CONCURRENCY is out of range.", hint))
    return found


@register(SETTINGS_TAG)
def proxy_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Whose word is taken for where a caller is."""
    if 0 <= settings.PROXY_HOPS <= MAX_PROXY_HOPS:
        return []
    hint = f"How many proxies of ours stand in front of web, up to {MAX_PROXY_HOPS}; 0 where none does."
    return [_error(22, "PROXY_HOPS is out of range.", hint)]


@register(SETTINGS_TAG)
def encrypted_backends(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Payments and sessions must not cross a network in the clear."""
    if settings.ALLOW_PLAINTEXT_BACKENDS:
        return []
    found, database = [], settings.DATABASES["default"]
    options = database.get("OPTIONS", {})
    mode = options.get("sslmode", "prefer")
    # The query of the URL may name hosts too.
    hosts = [database.get("HOST", ""), options.get("host", ""), options.get("hostaddr", "")]
    if not all(map(_is_local, hosts)) and mode not in TLS_MODES:
        hint = f"Add ?sslmode=verify-full (or require) to DATABASE_URL, {OR_PLAINTEXT}"
        found.append(_error(71, "DATABASE_URL reaches another machine without TLS.", hint))
    if not _is_redis_url(settings.REDIS_URL):  # another check says so
        return found
    redis = urlsplit(settings.REDIS_URL)
    is_verified = redis.scheme == "rediss" and "none" not in parse_qs(redis.query).get("ssl_cert_reqs", [])
    if not is_verified and not _is_local(redis.hostname or ""):
        hint = f"Use rediss://...?ssl_cert_reqs=required in REDIS_URL, {OR_PLAINTEXT}"
        found.append(_error(72, "REDIS_URL reaches another machine without TLS.", hint))
    return found


def _is_local(host: str) -> bool:
    """A Unix socket, or this machine's loopback interface."""
    if not host or host.startswith("/") or host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a name
        return False


@register(Tags.database)
def durable_database(app_configs: Any, databases: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """PostgreSQL must not acknowledge what a crash can lose."""
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
    """Time-outs must hold, and what is prepared must still be there, also behind a pooler."""
    if databases is None:
        return []
    try:
        problem = sessions.find_problem(connections["default"])
    except DatabaseError:  # `durable_database` says so
        return []
    return [] if problem is None else [_error(70, *problem)]


@register(Tags.database)
def encryption_keys(app_configs: Any, databases: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """The keys must open what is there, before anything is sealed with them."""
    keys = settings.FIELD_ENCRYPTION_KEYS
    if databases is None or not keys or not all(map(_is_fernet_key, keys)):
        return []
    try:
        problem = encryption.find_problem()
    except DatabaseError:  # it does not answer, or has no tables yet
        return []
    return [] if problem is None else [_error(82, problem, encryption.HINT)]


def _secret_key() -> str:
    try:
        return str(settings.SECRET_KEY)
    except ImproperlyConfigured:  # Django's word for an empty one
        return ""


def _is_redis_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("redis", "rediss", "unix") and (parts.port is None or parts.port > 0)
    except ValueError:  # a port that is no number
        return False


def _is_fernet_key(key: str) -> bool:
    try:
        Fernet(key)
    except ValueError:
        return False
    return True
