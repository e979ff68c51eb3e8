"""PostgreSQL: durability, archive, version, rights, TLS, sessions, connections, tables and keys."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from config.checks import is_local
from config.deployment.findings import Finding, Level, judge, ok, problem, warning
from config.deployment.machine import compare_clock
from config.env import NO_DATABASE
from core import clock
from core.database import replica, sessions
from core.database.archiver import Archiver
from core.database.roles import APPLICATION
from operations.audit.daily_close import closing, signing
from operations.data_protection import database_roles, resealing, shop_fence
from operations.metrics import health
from operations.nightly import heartbeats

OLDEST_MAJOR = 15
UNLIMITED = -1
MOST_LAG_BYTES = 16_000_000
# Providers archive at least every five minutes, and our configuration each minute.
MOST_ARCHIVE_AGE_SECONDS = 900
CONNECT_ADVICE = "Check DATABASE_URL, that the server runs, and that pg_hba.conf lets this machine in."
_SERVER_SQL = """
SELECT current_setting('server_version_num')::int / 10000, current_setting('server_version'),
       current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes'),
       current_setting('max_connections')::int, current_setting('superuser_reserved_connections')::int
         + coalesce(current_setting('reserved_connections', true), '0')::int,
       role.rolname, role.rolsuper, role.rolconnlimit, base.datconnlimit,
       has_schema_privilege(role.oid, current_schema(), 'CREATE'),
       coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false),
       current_setting('synchronous_standby_names')
  FROM pg_roles role, pg_database base
 WHERE role.rolname = current_user AND base.datname = current_database()
"""


@dataclass(frozen=True)
class Server:
    """What PostgreSQL says of itself and of our role, in the order of the statement above."""

    major: int
    version: str
    fsync: str
    synchronous_commit: str
    full_page_writes: str
    max_connections: int
    reserved_connections: int
    role: str
    is_superuser: bool
    role_limit: int
    database_limit: int
    may_create_tables: bool
    is_encrypted: bool
    synchronous_standbys: str


def findings(connections_needed: int) -> list[Finding]:
    if settings.DATABASES["default"]["NAME"] == NO_DATABASE:
        return []  # the settings say so
    try:
        with connection.cursor() as cursor:
            cursor.execute(_SERVER_SQL)
            server = Server(*cursor.fetchone())
        return [
            *of_server(server, connections_needed),
            encryption(server, connection.settings_dict),
            compare_clock("clock of PostgreSQL", health.clock_difference()),
            archive(Archiver.read()),
            *_replica(),
            *_of_database(),
        ]
    except DatabaseError as error:
        return [problem("PostgreSQL", str(error).strip().partition("\n")[0], CONNECT_ADVICE)]


def of_server(server: Server, connections_needed: int) -> list[Finding]:
    """Durability, version, rights and connections."""
    consequences = {
        "fsync": "a crash of the machine loses payments",
        "synchronous_commit": "a crash loses acknowledged payments",
        "full_page_writes": "a crash can destroy tables",
    }
    advice = f"Install PostgreSQL {OLDEST_MAJOR} or newer."
    return [
        judge("PostgreSQL", server.version, advice, is_problem=server.major < OLDEST_MAJOR),
        *(
            problem(f"PostgreSQL {name}", f"off: {consequence}", f"Set {name} = on in postgresql.conf.")
            if (value := getattr(server, name)) == "off"
            else ok(f"PostgreSQL {name}", value)
            for name, consequence in consequences.items()
        ),
        *_standby(server),
        _role(server),
        _connections(server, connections_needed),
    ]


def _standby(server: Server) -> list[Finding]:
    """Whether commits wait for a standby, as SYNCHRONOUS_STANDBY says. Patroni removes lost ones."""
    name, names = "PostgreSQL standby", server.synchronous_standbys
    if server.synchronous_commit in ("off", "local"):
        names = ""
    if not settings.SYNCHRONOUS_STANDBY:
        advice = "If a standby may take over by itself, set SYNCHRONOUS_STANDBY=1 (docs/restore.md)."
        return [warning(name, f"commits wait for {names}", advice)] if names else []
    if not names:
        advice = "Start a standby (`patronictl list`), or remove SYNCHRONOUS_STANDBY."
        return [problem(name, "commits wait for no standby: a fail-over loses the last payments", advice)]
    return [ok(name, f"commits wait for {names}")]


def archive(archiver: Archiver) -> Finding:
    """Whether a backup can be restored to a point in time."""
    name, minutes = "PostgreSQL archive", f"{archiver.age_seconds / 60:.0f} minutes"
    if not archiver.is_on:
        advice = "Set up backups (docs/restore.md). A provider may archive in a way of its own: ask it."
        return warning(name, "off: no restore to a point in time", advice)
    if archiver.is_failing:
        advice = (
            "Read the log of PostgreSQL, then run `pgbackrest --stanza=thaiqr check`, or ask the provider."
        )
        return problem(name, f"fails; nothing archived for {minutes}", advice)
    if archiver.age_seconds > MOST_ARCHIVE_AGE_SECONDS:
        advice = "Set archive_timeout = 60s. If it is set, archive_command hangs: read the log of PostgreSQL."
        return problem(name, f"nothing archived for {minutes}", advice)
    return ok(name, f"archived {minutes} ago")


def _replica() -> list[Finding]:
    if not replica.is_configured():
        return []
    try:
        lag = replica.lag_bytes()
    except DatabaseError as error:
        advice = (
            "Check DATABASE_REPLICA_URL, and that it is a standby that runs. The primary answers meanwhile."
        )
        return [problem("replica", str(error).strip().partition("\n")[0], advice)]
    advice = "The primary answers meanwhile. Look at the load of the replica and its network."
    return [judge("replica", f"{lag:,} bytes behind", advice, is_warning=lag > MOST_LAG_BYTES)]


def _role(server: Server) -> Finding:
    if server.is_superuser:
        advice = "Use a role without SUPERUSER: it may read files of the server and change the audit trail."
        return problem("PostgreSQL role", f"{server.role} is a superuser", advice)
    if server.may_create_tables:
        advice = (
            f"Only migrate needs that. Let DATABASE_URL name a member of {APPLICATION}, and "
            "MIGRATION_DATABASE_URL the owner."
        )
        return warning("PostgreSQL role", f"{server.role} may create and change tables", advice)
    return ok("PostgreSQL role", f"{server.role} may not change tables")


def _connections(server: Server, needed: int) -> Finding:
    limits = [server.max_connections - server.reserved_connections, server.role_limit, server.database_limit]
    free = min(limit for limit in limits if limit != UNLIMITED)
    found = f"{free} allowed, {needed} needed at most"
    advice = "Raise max_connections (or the limit of the role or the database), or see docs/settings.md."
    return judge("PostgreSQL connections", found, advice, is_problem=free < needed)


def encryption(server: Server, address: Mapping[str, Any]) -> Finding:
    host, mode = address["HOST"], address.get("OPTIONS", {}).get("sslmode", "prefer")
    if server.is_encrypted:
        if is_local(host) or mode.startswith("verify-"):
            return ok("PostgreSQL TLS", "on")
        found = f"on, but sslmode={mode} does not verify who answers"
        return warning("PostgreSQL TLS", found, "Use sslmode=verify-full and sslrootcert in DATABASE_URL.")
    if is_local(host):
        return ok("PostgreSQL TLS", "off, on this machine")
    return warning("PostgreSQL TLS", "off", "Add ?sslmode=verify-full to DATABASE_URL.")


def _of_database() -> list[Finding]:
    """Sessions, rights, tables, and then what needs tables: the keys, and who works."""
    subject, wrong = "PostgreSQL sessions", sessions.find_problem(connection)
    found = [problem(subject, *wrong) if wrong else ok(subject, "time-outs are set, the time zone is UTC")]
    found += [rights_of_shops(), rights()]
    if found[-1].level != Level.PROBLEM:
        found += migrations(MigrationExecutor(connection))
    if found[-1].level == Level.PROBLEM:
        return found
    subject, unopened = "FIELD_ENCRYPTION_KEYS", resealing.find_problem()
    found_keys = unopened or "decrypt what is stored"
    of_keys = judge(subject, found_keys, resealing.HINT, is_problem=unopened is not None)
    now = clock.now()
    return [*found, of_keys, closes(now), heartbeats_of(heartbeats.silent(now=now))]


def closes(now: datetime) -> Finding:
    if closing.lacks_key(now):
        found = "no day is closed, so nothing proves the books later"
        return warning("daily close", found, str(signing.MISSING))
    return ok("daily close", "has a key, or days are closed")


def rights() -> Finding:
    missing = database_roles.find_missing()
    if missing:
        report = problem if missing.includes_reading else warning
        return report("PostgreSQL rights", missing.found, missing.advice)
    return ok("PostgreSQL rights", "to all tables, as the service needs them")


def rights_of_shops() -> Finding:
    subject = "PostgreSQL role of shops"
    if missing := shop_fence.find_problem():
        return warning(subject, missing, f"/shop/ answers 503. As a superuser: {shop_fence.HOW_TO_CREATE}")
    return ok(subject, "reads rows of one merchant")


def migrations(executor: Any) -> list[Finding]:
    """Whether the tables are those of this release."""
    loader = executor.loader
    pending = executor.migration_plan(loader.graph.leaf_nodes())
    if pending:
        return [problem("tables", f"{len(pending)} migrations are missing", "Run `thaiqr-server migrate`.")]
    newer = loader.applied_migrations.keys() - loader.disk_migrations.keys()
    if newer:
        app, name = min(newer)
        advice = "Install the newer release, or reverse its migrations with it before you go back."
        return [warning("tables", f"of a newer release: it has {app}.{name}", advice)]
    return [ok("tables", "up to date")]


def heartbeats_of(silent: dict[str, bool]) -> Finding:
    names = [name for name, is_silent in silent.items() if is_silent]
    if not names:
        return ok("workers and beat", "all report")
    advice = "Start them: `thaiqr-server beat`, `thaiqr-server worker`. Beat must run for a worker to report."
    return warning("workers and beat", f"silent for 30 s: {', '.join(names)}", advice)
