"""All settings. Values come from the environment; `config.checks` checks them."""

from datetime import time
from functools import partial
from ipaddress import ip_network
from typing import Any

import django_stubs_ext
from kombu import Exchange, Queue

from config.env import (
    NO_DATABASE,
    Network,
    database_url,
    email_url,
    env,
    hours_of_jobs,
    number,
    read_variable,
    replica_url,
    text,
)
from config.version import BASE_DIR, VERSION
from core import money
from core.work.redis_urls import Broker, with_authorities

django_stubs_ext.monkeypatch()  # Django classes take type arguments at run time too

# --- what must be given -------------------------------------------------------------------------------
SECRET_KEY = env.str("SECRET_KEY", "")
IDEMPOTENCY_KEYS = env.list("IDEMPOTENCY_KEYS", default=[])  # of fingerprints of requests, newest first
FIELD_ENCRYPTION_KEYS = env.list("FIELD_ENCRYPTION_KEYS", default=[])  # newest first
CA_BUNDLE = env.str("CA_BUNDLE", "")  # a file; empty: the public certificate authorities
REDIS_URL = with_authorities(env.str("REDIS_URL", ""), CA_BUNDLE)
BASE_URL = env.str("BASE_URL", "").rstrip("/")
PRIMARY: dict[str, Any] = read_variable("DATABASE_URL", database_url, {"NAME": NO_DATABASE})
# A standby for lists and exports, see `core.database.replica`. Empty: the primary answers everything.
REPLICA: dict[str, Any] = read_variable("DATABASE_REPLICA_URL", replica_url, {})

MIGRATION_DATABASE_URL = env.str("MIGRATION_DATABASE_URL", "")  # of the owner; see `config.management`

# --- what may be given --------------------------------------------------------------------------------
TEN_YEARS = 3653  # days
A_TOKEN = ".{24,}", "must have at least 24 characters"
A_URL = "is malformed"
SECRET_KEY_FALLBACKS = env.list("SECRET_KEY_FALLBACKS", default=[])  # older keys; their sessions stay valid
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=[])
RATE_LIMIT = number("RATE_LIMIT", 100)  # requests per second and key; 0 is off
RATE_LIMIT_BURST = number("RATE_LIMIT_BURST", 2 * RATE_LIMIT, min(1, RATE_LIMIT))
# The web server: where it listens (and the sandbox bank), its processes, and the threads of each.
HOST = env.str("HOST", "127.0.0.1")
PORT = number("PORT", 8000, 1, 65_535)
WEB_WORKERS = number("WEB_WORKERS", 2, 1, 256)
WEB_THREADS = number("WEB_THREADS", 4, 1, 64)
REFUSED_KEYS_PER_MINUTE = number("REFUSED_KEYS_PER_MINUTE", 600)  # of one address; 0 is off
IDEMPOTENCY_TTL_HOURS = number("IDEMPOTENCY_TTL_HOURS", 24.0, 0.001, 8784)
SANDBOX_BANK_SECRET = text("SANDBOX_BANK_SECRET", "", *A_TOKEN)  # empty: no sandbox bank in this deployment
# Empty: no test cards.
SANDBOX_ACQUIRER_URL = text("SANDBOX_ACQUIRER_URL", "", r"http://[^/\s?#@]+:\d{1,5}/*", A_URL).rstrip("/")
OMISE_SECRET_KEY = env.str("OMISE_SECRET_KEY", "")  # empty: no card payments of live merchants
OMISE_API_URL = text("OMISE_API_URL", "https://api.omise.co", r"https://[^/\s?#@]+/*", A_URL).rstrip("/")
# Card payments that wait for their acquirer at once, in each web process.
CARD_CONCURRENCY = number("CARD_CONCURRENCY", 8, 1, 64)
WEBHOOK_PROBE = text("WEBHOOK_PROBE", "reachable", "off|2xx", "must be off, reachable or 2xx")
WEBHOOK_PORTS = read_variable("WEBHOOK_PORTS", partial(env.list, cast=int), [443, 8443])
WEBHOOK_ALLOWED_NETWORKS: list[Network] = read_variable(
    "WEBHOOK_ALLOWED_NETWORKS", partial(env.list, cast=ip_network), []
)
WEBHOOK_ALLOW_HTTP = read_variable("WEBHOOK_ALLOW_HTTP", env.bool, False)
# The whole of one delivery attempt, with connection and answer.
WEBHOOK_TIMEOUT_SECONDS = number("WEBHOOK_TIMEOUT_SECONDS", 15.0, 0.001)
WEBHOOK_CONCURRENCY = number("WEBHOOK_CONCURRENCY", 96, 2)  # posts in flight, by worker
# Divides the waiting times between inquiries and between delivery attempts; for tests.
SPEEDUP = number("SPEEDUP", 1.0, 0.001)
# Deleted ones do not count. As many destinations.
WEBHOOKS_PER_MERCHANT = number("WEBHOOKS_PER_MERCHANT", 20, 1)
LINE_API_URL = text(
    "LINE_API_URL", "https://api.line.me", r"https://[^/\s?#@]+/*|http://127\.0\.0\.1:\d+/*", A_URL
).rstrip("/")
# The mail server that sends messages to email addresses; empty: none.
_EMAIL: dict[str, Any] = read_variable("EMAIL_URL", email_url, {})
EMAIL_HOST, EMAIL_PORT = _EMAIL.get("EMAIL_HOST", ""), _EMAIL.get("EMAIL_PORT") or 25
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _EMAIL.get("EMAIL_HOST_USER"), _EMAIL.get("EMAIL_HOST_PASSWORD")
EMAIL_USE_TLS, EMAIL_USE_SSL = _EMAIL.get("EMAIL_USE_TLS", False), _EMAIL.get("EMAIL_USE_SSL", False)
EMAIL_FROM = text("EMAIL_FROM", "", r"[^@\s<>]+@[^@\s<>]+", "is no email address")
EMAIL_TIMEOUT = 10  # seconds, of each step with the mail server
# Outgoing money above these waits for a second person; satang, 0 is off.
APPROVAL_ITEM_LIMIT = number("APPROVAL_ITEM_LIMIT", 5_000_000, high=money.MAX_AMOUNT - 1)
# Per merchant in any 24 hours.
APPROVAL_DAILY_LIMIT = number("APPROVAL_DAILY_LIMIT", 20_000_000)
BANK_API_HOSTS = env.list("BANK_API_HOSTS", default=[])  # to which credentials go, besides the banks' own
# Hours before money may go to a new payout account.
PAYOUT_ACCOUNT_WAITING_HOURS = number("PAYOUT_ACCOUNT_WAITING_HOURS", 24.0, high=720)
# Days for which rows are kept at least. Requests, attempts and answers of banks go by whole months.
REQUEST_LOG_RETENTION_DAYS = number("REQUEST_LOG_RETENTION_DAYS", 30, high=TEN_YEARS)  # 0: no log
WEBHOOK_ATTEMPT_RETENTION_DAYS = number("WEBHOOK_ATTEMPT_RETENTION_DAYS", 90, 1, TEN_YEARS)
# 0: for ever.
WEBHOOK_DELIVERY_RETENTION_DAYS = number("WEBHOOK_DELIVERY_RETENTION_DAYS", 0, 30, TEN_YEARS, or_zero=True)
INQUIRY_ANSWER_RETENTION_DAYS = number("INQUIRY_ANSWER_RETENTION_DAYS", 0, 30, TEN_YEARS, or_zero=True)
SLIP_CHECK_RETENTION_DAYS = number("SLIP_CHECK_RETENTION_DAYS", 365, 30, TEN_YEARS, or_zero=True)
# Days after which names, accounts and messages of payers are erased; 0: never. Amounts and ids stay.
# A refund goes to the account that paid, so they are kept for 30 days.
PERSONAL_DATA_RETENTION_DAYS = number("PERSONAL_DATA_RETENTION_DAYS", 0, 30, TEN_YEARS, or_zero=True)
LATE_TOLERANCE_SECONDS = number("LATE_TOLERANCE_SECONDS", 0.0, high=3600)  # of money after expiry
# Largest normal difference between the database's clock and ours.
CLOCK_WARNING_SECONDS = number("CLOCK_WARNING_SECONDS", 2.0, 0.001)
EXPIRY_EVENTS = read_variable("EXPIRY_EVENTS", env.bool, True)  # an expired code sends payment.failed
PROXY_HOPS = number("PROXY_HOPS", 0, high=10)  # proxies of ours in front; each adds to X-Forwarded-For
# PostgreSQL and Redis on other machines may be reached without TLS, in a network that encrypts by itself.
ALLOW_PLAINTEXT_BACKENDS = read_variable("ALLOW_PLAINTEXT_BACKENDS", env.bool, False)
MONITORING_TOKEN = text("MONITORING_TOKEN", "", *A_TOKEN)  # of /metrics and /readyz; empty: open to all
REQUIRE_TWO_FACTOR = read_variable("REQUIRE_TWO_FACTOR", env.bool, True)  # of all staff
# The login of the company whose people use the console, by OpenID Connect; empty: none.
OIDC_ISSUER = text("OIDC_ISSUER", "", r"https://[^\s?#@]+|http://127\.0\.0\.1:\d+/*", A_URL).rstrip("/")
OIDC_CLIENT_ID = env.str("OIDC_CLIENT_ID", "")
OIDC_CLIENT_SECRET = env.str("OIDC_CLIENT_SECRET", "")
OIDC_NAME = env.str("OIDC_NAME", "your company")  # on the button
# A session of the console without requests ends after this.
SESSION_IDLE_MINUTES = number("SESSION_IDLE_MINUTES", 30, 1, 480)
CLOSE_SIGNING_KEY = env.str("CLOSE_SIGNING_KEY", "")  # of daily closes; empty: days cannot be closed
# Of earlier values of it; their closes stay valid.
CLOSE_PUBLIC_KEYS = env.list("CLOSE_PUBLIC_KEYS", default=[])
# Hours in Bangkok; some jobs need another setting (operations.nightly.jobs.is_enabled).
NIGHTLY_JOBS = read_variable(
    "NIGHTLY_JOBS",
    hours_of_jobs,
    {
        "daily_close": time(0, 15),
        "audit": time(2, 30),
        "retention": time(3, 30),
        "import_statements": time(6, 30),
        "reconcile": time(7, 0),
        "anonymise": time(7, 30),
    },
)
STATEMENTS_DIR = env.str("STATEMENTS_DIR", "")  # where statement files of banks are put; empty: nowhere
OTEL_EXPORTER_OTLP_ENDPOINT = env.str("OTEL_EXPORTER_OTLP_ENDPOINT", "")  # empty: no traces
SENTRY_DSN = env.str("SENTRY_DSN", "")  # empty: no error reports
ALIVE_FILE = env.str("ALIVE_FILE", "")  # each process touches it every ten seconds; empty: none
LOG_LEVEL = text("LOG_LEVEL", "INFO", "(?i)debug|info|warn(ing)?|error|critical", "is unknown").upper()
ACCESS_LOG = env.str("ACCESS_LOG", "")  # a file for the lines of requests; empty: with the other lines
SAMPLE_KEY = ""  # the test key that samples show on this machine; only `config.devstack` sets it
LOG_STREAM = text("LOG_STREAM", "stdout", "stderr", "must be stdout or stderr")  # manage.py sets stderr

# --- database -----------------------------------------------------------------------------------------
# PostgreSQL ends statements and transactions of processes that hang. A duplicate request that waits for a
# lock gets an error after lock_timeout and can retry.
# A direct connection sets them at its start. A pooler accepts none, so there they belong to the role
# (`manage.py set_role_limits`). `core.database.sessions` checks them.
SESSION_PARAMETERS = {
    "lock_timeout": "5s",
    "statement_timeout": "30s",
    "idle_in_transaction_session_timeout": "15s",
    "timezone": "UTC",
    # A server may compile a statement whose plan looks dear, each time: four times the work of ours.
    "jit": "off",
}
# Each commit waits for a standby, so a standby that takes over has all orders (`transfers.safe_mode`).
SYNCHRONOUS_STANDBY = read_variable("SYNCHRONOUS_STANDBY", env.bool, False)
# 0: behind a pooler such as PgBouncer; pooler: behind one that follows prepared statements.
DATABASE_PREPARE = text("DATABASE_PREPARE", "1", "0|pooler", "must be 0, 1 or pooler")
SESSION_OPTIONS = " ".join(f"-c {name}={value}" for name, value in SESSION_PARAMETERS.items())


def connected(address: dict[str, Any], connect_seconds: int) -> dict[str, Any]:
    """A database by its address. Its query has options of its own, such as sslmode."""
    given: dict[str, Any] = address.get("OPTIONS", {})
    # Prepared statements save planning on hot paths. They need a session of their own, or a pooler's help.
    prepared = {"server_side_binding": True, "prepare_threshold": 2}
    limits = {"options": f"{SESSION_OPTIONS} {given.get('options', '')}".strip()}
    return {
        **address,
        "ENGINE": "core.database",
        "CONN_MAX_AGE": number("DATABASE_MAX_AGE", 600),
        "CONN_HEALTH_CHECKS": read_variable("DATABASE_HEALTH_CHECKS", env.bool, True),
        "DISABLE_SERVER_SIDE_CURSORS": DATABASE_PREPARE != "1",
        "OPTIONS": {
            **given,
            "connect_timeout": connect_seconds,
            # A vanished server is noticed after 30 seconds instead of hours.
            "keepalives_idle": 15,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 30_000,
            **(prepared if DATABASE_PREPARE != "0" else {}),
            **(limits if DATABASE_PREPARE == "1" else {}),
        },
    }


DATABASES = {"default": connected(PRIMARY, connect_seconds=5)}
if REPLICA:
    DATABASES["replica"] = connected(REPLICA, connect_seconds=2)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- applications -------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "console.apps.ConsoleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "pgtrigger",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "config.apps.ConfigApp",
    "console.apps.ConsoleApp",
    "shop.apps.ShopApp",
    # Ours, from the top floor to the ground.
    *("operations", "apidocs", "testclock", "sandbox", "timeline", "reconciliation", "qrcodes", "refunds"),
    *("withdrawals", "links", "settlements", "payments", "ledger", "transactions", "webhooks", "transfers"),
    *("approvals", "request_log.apps.RequestLogApp", "idempotency", "counts", "merchants", "audit_trail"),
]
MIDDLEWARE = [
    "core.http.middleware.AccessMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "shop.site.ShopRequests",
    "core.http.middleware.BrowserSessions",
    "core.http.middleware.BrowserLanguage",
    "core.http.middleware.BrowserCsrf",
    "core.http.middleware.BrowserUsers",
    "core.http.middleware.BrowserMessages",
    "core.http.middleware.BrowserFraming",
    "allauth.account.middleware.AccountMiddleware",
    "console.people.sign_in.SignInRules",
    "console.people.page_limits.ConsolePageLimits",
]
ROOT_URLCONF = "config.urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "console.people.account_pages.context",
            ]
        },
    }
]
STATIC_URL = "/static/"
WHITENOISE_USE_FINDERS = True  # no collectstatic: the files are found once at start
TIME_ZONE = "Asia/Bangkok"  # for staff; the API always uses UTC
LANGUAGE_CODE = "en"  # of the API, and of staff whose browser asks for no language below
LANGUAGES = [("en", "English"), ("th", "ไทย")]
LOCALE_PATHS = [BASE_DIR / "locale", BASE_DIR / "locale/django"]  # ours, and what Django has not in Thai
FORMAT_MODULE_PATH = ["config.formats"]  # one form of dates, with seconds, in all languages
APPEND_SLASH = False
_VALIDATION = "django.contrib.auth.password_validation"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"{_VALIDATION}.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": f"{_VALIDATION}.CommonPasswordValidator"},
    {"NAME": f"{_VALIDATION}.UserAttributeSimilarityValidator"},
    {"NAME": f"{_VALIDATION}.NumericPasswordValidator"},
    {"NAME": "console.people.login_log.PasswordChangeLogger"},
]
AUTHENTICATION_BACKENDS = ["console.people.login.OneAtATimeBackend"]
PASSWORD_HASHERS = ["core.console.passwords.OneAtATimeHasher"]
SESSION_ENGINE = "console.people.sessions"
SESSION_COOKIE_AGE = 8 * 3600
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = BASE_URL.startswith("https://")
# Browsers accept cookies with this prefix only over TLS, from this host, for all paths.
COOKIE_PREFIX = "__Host-" if SESSION_COOKIE_SECURE else ""
SESSION_COOKIE_NAME = f"{COOKIE_PREFIX}sessionid"
CSRF_COOKIE_NAME = f"{COOKIE_PREFIX}csrftoken"
DEVICE_COOKIE_NAME = f"{COOKIE_PREFIX}device"  # marks a browser in which somebody logged in before
CSRF_COOKIE_SAMESITE = "Strict"
SESSION_COOKIE_SAMESITE = "Strict"
LOGIN_URL, LOGIN_REDIRECT_URL = "account_login", "admin:index"
# --- django-allauth, which signs staff in (console/people) ---
CACHES = {
    "process": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},  # /readyz and /metrics
    "default": {  # its counts of failed logins, in a table: they work while Redis is away
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "console_signinlimit",
        # Above that many it forgets also what still counts. Each login deletes what does not.
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    },
}
ACCOUNT_ADAPTER = "console.people.adapters.AccountAdapter"
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_DEFAULT_HTTP_PROTOCOL = BASE_URL.partition(":")[0] or "http"
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_RATE_LIMITS = {
    "password": "10/15m/key",  # of a person, or of a browser in which they logged in before
    "password_address": "20/15m/key",
    "login_failed": "5/15m/key",  # codes: a guesser with the password has 480 a day, 1 in 700
}
MFA_ADAPTER = "console.people.adapters.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_TOTP_TOLERANCE = 1  # steps of 30 seconds; the clock of a phone may differ
MFA_RECOVERY_CODES_SHOW_ONCE = True
SOCIALACCOUNT_ADAPTER = "console.people.adapters.CompanyAdapter"
SOCIALACCOUNT_LOGIN_ON_GET = True  # the policy of our pages lets no form lead to another host
SOCIALACCOUNT_PROVIDERS = (
    {
        "openid_connect": {
            "APPS": [
                {
                    "provider_id": "company",
                    "name": OIDC_NAME,
                    "client_id": OIDC_CLIENT_ID,
                    "secret": OIDC_CLIENT_SECRET,
                    "settings": {"server_url": OIDC_ISSUER},
                }
            ],
            "OAUTH_PKCE_ENABLED": True,
        }
    }
    if OIDC_ISSUER
    else {}
)
CSRF_FAILURE_VIEW = "console.people.page_limits.csrf_failure"
CSRF_TRUSTED_ORIGINS = [BASE_URL] if BASE_URL else []

# --- API ----------------------------------------------------------------------------------------------
REST_FRAMEWORK: dict[str, object] = {
    "EXCEPTION_HANDLER": "core.http.api.exception_handler",
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_SCHEMA_CLASS": "apidocs.generator.OperationSchema",
    "UNAUTHENTICATED_USER": None,
    "UNAUTHENTICATED_TOKEN": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Thai QR Payments",
    "VERSION": VERSION,
    "DESCRIPTION": "Accept payments by Thai QR code. Amounts are integer satang: 150000 is 1,500.00 THB. "
    "Every path answers as /v1/... and as /Thai/v1/...",
    "CONTACT": {"name": "The operator of this service"},
    # The project grants no licence yet.
    "LICENSE": {"name": "Proprietary", "identifier": "LicenseRef-Proprietary"},
    "OAS_VERSION": "3.1.0",
    "DEFAULT_GENERATOR_CLASS": "apidocs.generator.ApiSchemaGenerator",
    "POSTPROCESSING_HOOKS": [],
    "SORT_OPERATIONS": False,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
}

# --- background work ----------------------------------------------------------------------------------
# The broker only carries wake-ups: nothing may wait for it, and no task contains data.
REDIS_BROKER_OPTIONS = {
    "socket_timeout": 5,
    "socket_connect_timeout": 1,
    "socket_keepalive": True,
    "retry_on_timeout": False,
    # Redis does not keep messages until workers confirm them, which would take two more calls for each. If a
    # worker dies with a wake-up, beat sends another one soon.
    "ack_emulation": False,
}
BROKER = Broker.of(REDIS_URL, options=REDIS_BROKER_OPTIONS)
CELERY_BROKER_URL = BROKER.url
CELERY_BROKER_TRANSPORT_OPTIONS = BROKER.options
CELERY_BROKER_USE_SSL = BROKER.tls
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TIMEZONE = "UTC"  # the schedule has intervals only; other zones cost beat a fifth of its time
CELERY_TASK_PUBLISH_RETRY = False  # a connection to Redis opens itself again
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TASK_DEFAULT_QUEUE = "default"
# Tasks that wait for merchants' servers, acquirers or banks have queues of their own.
QUEUES = ("default", "webhooks", "cards", "transfers", "inquiries")
CELERY_TASK_QUEUES = [Queue(name, Exchange(name), routing_key=name) for name in QUEUES]

# --- logs ---------------------------------------------------------------------------------------------
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"database_away": {"()": "core.observing.logs.DatabaseDownFilter"}},
    "formatters": {"json": {"()": "core.observing.logs.JsonFormatter"}},
    "handlers": {
        "lines": {
            "class": "logging.StreamHandler",
            "stream": f"ext://sys.{LOG_STREAM}",
            "formatter": "json",
            "filters": ["database_away"],
        }
    },
    "root": {"handlers": ["lines"], "level": LOG_LEVEL},
    "loggers": {
        "django.request": {"level": "CRITICAL"},
        "django.security": {"level": "CRITICAL"},  # core.http.api logs it, without a traceback
        "celery": {"level": "WARNING"},
        "security": {"level": "INFO"},  # independent of LOG_LEVEL
    },
}
