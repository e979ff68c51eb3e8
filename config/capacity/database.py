"""A database for one measurement, beside that of the service on the same server. It is removed at the end.

A comment marks it, and only a database with this comment is ever dropped.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import sql
from psycopg.errors import InsufficientPrivilege

from config.capacity.refusal import Refused

SUFFIX, LONGEST_NAME = "_capacity", 63
MARK = "Made by thaiqr-server capacity, which drops it."
CONNECT_SECONDS = 10
SESSIONS_END_SECONDS, POLL_SECONDS = 5.0, 0.05
# A role may end its own sessions, and an owner of a database not those of others.
_END_SESSIONS_SQL = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND usename = current_user
"""
# The key of an advisory lock of a session, in the database of the service: one measurement at a time.
ONE_AT_A_TIME = 7_264_002
_MARK_SQL = """
SELECT coalesce(shobj_description(oid, 'pg_database'), '') FROM pg_database WHERE datname = %s
"""
_SESSIONS_SQL = "SELECT 1 FROM pg_stat_activity WHERE datname = %s LIMIT 1"
_SETTINGS_SQL = """
SELECT unnest(setconfig) FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase
WHERE datname = current_database() AND setrole = 0
"""


@dataclass(frozen=True)
class Addresses:
    """The database for its owner, and for web and workers."""

    owner: str
    service: str

    @classmethod
    def of(cls, database_url: str, owner_url: str) -> "Addresses":
        """From the settings. A pooler knows no new database: all go to the server of the owner's address."""
        if not owner_url:
            return cls(database_url, database_url)
        owner, service = urlsplit(owner_url), urlsplit(database_url)
        login, _, _ = service.netloc.rpartition("@")
        _, _, host = owner.netloc.rpartition("@")
        return cls(owner_url, owner._replace(netloc=f"{login}@{host}" if login else host).geturl())

    def named(self, name: str) -> "Addresses":
        """The same server and roles, another database."""
        owner, service = (
            urlsplit(url)._replace(path=f"/{name}").geturl() for url in (self.owner, self.service)
        )
        return Addresses(owner, service)


@contextmanager
def temporary(configured: Addresses) -> Iterator[Addresses]:
    """Create the database, and drop it at the end. Raises Refused."""
    try:
        connection = psycopg.connect(configured.owner, autocommit=True, connect_timeout=CONNECT_SECONDS)
    except psycopg.OperationalError as error:
        raise Refused(f"The database does not answer: {str(error).partition(chr(10))[0]}") from None
    with connection:
        _lock(connection)
        name = connection.info.dbname[: LONGEST_NAME - len(SUFFIX)] + SUFFIX
        _drop_leftover(connection, name)
        _create(connection, name)
        try:
            yield configured.named(name)
        finally:
            _end_sessions(configured.service, name)
            _drop(connection, name)


def _lock(connection: psycopg.Connection[Any]) -> None:
    found = connection.execute("SELECT pg_try_advisory_lock(%s)", [ONE_AT_A_TIME]).fetchone()
    if found != (True,):
        raise Refused("Another measurement is under way on this database. Wait for its end.")


def _drop_leftover(connection: psycopg.Connection[Any], name: str) -> None:
    """Drop what a killed measurement left behind. Raises Refused for a database that is not ours."""
    found = connection.execute(_MARK_SQL, [name]).fetchone()
    if found == (MARK,):
        _drop(connection, name)
    elif found is not None:
        raise Refused(f"There is a database {name} that belongs to somebody else.")


def _create(connection: psycopg.Connection[Any], name: str) -> None:
    """With the settings of the database of the service, such as synchronous_commit."""
    identifier = sql.Identifier(name)
    try:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(identifier))
    except InsufficientPrivilege:
        role = connection.info.user
        raise Refused(
            f"The role {role} may not create a database for the measurement. As a superuser, run\n"
            f'  ALTER ROLE "{role}" CREATEDB;\n'
            f'and after the measurement: ALTER ROLE "{role}" NOCREATEDB;'
        ) from None
    connection.execute(sql.SQL("COMMENT ON DATABASE {} IS {}").format(identifier, sql.Literal(MARK)))
    for (setting,) in connection.execute(_SETTINGS_SQL).fetchall():
        setting_name, _, value = setting.partition("=")
        change = sql.SQL("ALTER DATABASE {} SET {} = {}")
        connection.execute(change.format(identifier, sql.Identifier(setting_name), sql.Literal(value)))


def _end_sessions(service_url: str, name: str) -> None:
    """End those of the service, such as of this process: it measures with the rights of web and workers."""
    with psycopg.connect(service_url, autocommit=True, connect_timeout=CONNECT_SECONDS) as connection:
        connection.execute(_END_SESSIONS_SQL, [name])


def _drop(connection: psycopg.Connection[Any], name: str) -> None:
    """All processes have ended, and PostgreSQL notices that."""
    deadline = time.monotonic() + SESSIONS_END_SECONDS
    while connection.execute(_SESSIONS_SQL, [name]).fetchone() and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
