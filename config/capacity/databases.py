"""A database and a Redis database for one measurement, beside those of the service. Both go at the end.

A comment marks the database, and only one with this comment is ever dropped.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psycopg
from psycopg import sql
from psycopg.errors import InsufficientPrivilege
from redis import Redis
from redis.exceptions import RedisError

SUFFIX, LONGEST_NAME = "_capacity", 63
MARK = "Made by thaiqr-server capacity, which drops it."
CONNECT_SECONDS, SESSIONS_END_SECONDS = 10, 5.0
# The key of an advisory lock of a session, in the database of the service: one measurement at a time.
ONE_AT_A_TIME = 7_264_002
REDIS_DATABASE = 15  # the last one of Redis as it comes
_MARK_SQL = "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s"
_END_SESSIONS_SQL = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND usename = current_user
"""
_SESSIONS_SQL = "SELECT 1 FROM pg_stat_activity WHERE datname = %s LIMIT 1"
_SETTINGS_SQL = """
SELECT split_part(each, '=', 1), substr(each, strpos(each, '=') + 1)
FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase, unnest(setconfig) AS each
WHERE datname = current_database() AND setrole = 0
"""


class Refused(Exception):
    """Nothing is measured. The message says why, and what to do."""


class Addresses(NamedTuple):
    """The database for its owner, and for web and workers."""

    owner: str
    service: str


def on_one_server(database_url: str, owner_url: str) -> Addresses:
    """From the settings. A pooler knows no new database: all go to the server of the owner's address."""
    owner, service = urlsplit(owner_url or database_url), urlsplit(database_url)
    login, at, _ = service.netloc.rpartition("@")
    netloc = login + at + owner.netloc.rpartition("@")[2]
    return Addresses(owner.geturl(), owner._replace(netloc=netloc).geturl())


@contextmanager
def temporary_database(configured: Addresses) -> Iterator[Addresses]:
    """Raises Refused."""
    try:
        connection = psycopg.connect(configured.owner, autocommit=True, connect_timeout=CONNECT_SECONDS)
    except psycopg.OperationalError as error:
        raise Refused(f"The database does not answer: {str(error).partition(chr(10))[0]}") from None
    with connection:
        if connection.execute("SELECT pg_try_advisory_lock(%s)", [ONE_AT_A_TIME]).fetchone() != (True,):
            raise Refused("Another measurement is under way on this database. Wait for its end.")
        name = connection.info.dbname[: LONGEST_NAME - len(SUFFIX)] + SUFFIX
        found = connection.execute(_MARK_SQL, [name]).fetchone()
        if found not in (None, (MARK,)):
            raise Refused(f"There is a database {name} that belongs to somebody else.")
        _drop(connection, name)  # what a killed measurement left behind
        _create(connection, name)
        try:
            yield Addresses(*(urlsplit(url)._replace(path=f"/{name}").geturl() for url in configured))
        finally:
            # A role may end its own sessions, such as those of this process. An owner may not end them.
            with psycopg.connect(configured.service, connect_timeout=CONNECT_SECONDS) as service:
                service.execute(_END_SESSIONS_SQL, [name])
            _drop(connection, name)


def _create(connection: psycopg.Connection[Any], name: str) -> None:
    """With the settings of the database of the service, such as synchronous_commit."""
    identifier, role = sql.Identifier(name), connection.info.user
    try:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(identifier))
    except InsufficientPrivilege:
        raise Refused(
            f"The role {role} may not create a database for the measurement. As a superuser, run\n"
            f'  ALTER ROLE "{role}" CREATEDB;\n'
            f'and after the measurement: ALTER ROLE "{role}" NOCREATEDB;'
        ) from None
    connection.execute(sql.SQL("COMMENT ON DATABASE {} IS {}").format(identifier, sql.Literal(MARK)))
    for setting, value in connection.execute(_SETTINGS_SQL).fetchall():
        change = sql.SQL("ALTER DATABASE {} SET {} = {}")
        connection.execute(change.format(identifier, sql.Identifier(setting), sql.Literal(value)))


def _drop(connection: psycopg.Connection[Any], name: str) -> None:
    """Wait until PostgreSQL has noticed that all processes have ended."""
    deadline = time.monotonic() + SESSIONS_END_SECONDS
    while connection.execute(_SESSIONS_SQL, [name]).fetchone() and time.monotonic() < deadline:
        time.sleep(0.05)
    connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def temporary_redis(url: str) -> Iterator[str]:
    """The URL of a database of the server that workers of the service do not read. Raises Refused."""
    try:
        made = urlsplit(url)._replace(path=f"/{REDIS_DATABASE}").geturl()
        connected = Redis.from_url(made, socket_timeout=CONNECT_SECONDS)
    except ValueError:  # its text may have a part of the password
        raise Refused("REDIS_URL is no URL of one server, such as redis://:password@host:6379/0.") from None
    try:
        with connected as client:
            if made == url or client.dbsize() or not client.set("thaiqr-server capacity", 1, nx=True):
                raise Refused(f"Redis database {REDIS_DATABASE} is in use. Give another REDIS_URL.")
            try:
                yield made
            finally:
                client.flushdb()
    except (RedisError, OSError, UnicodeError) as error:  # the last: for a host that no name can be
        raise Refused(f"Redis does not answer at REDIS_URL: {error or type(error).__name__}") from None
