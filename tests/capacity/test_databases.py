"""The databases of a measurement: made beside those of the service, and removed."""

import os
import secrets
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import psycopg
import pytest
from redis import Redis

from config.capacity import databases, processes
from config.capacity.databases import Refused, on_one_server

ADMIN_URL = os.environ["DATABASE_URL"]


def named(name: str) -> str:
    return urlsplit(ADMIN_URL)._replace(path=f"/{name}").geturl()


def execute(statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(ADMIN_URL, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def exists(name: str) -> bool:
    return bool(execute(f"SELECT 1 FROM pg_database WHERE datname = '{name}'"))


@pytest.fixture
def name() -> Iterator[str]:
    """The database of a service."""
    made = f"shop_{secrets.token_hex(4)}"
    execute(f"CREATE DATABASE {made}")
    yield made
    execute(f"DROP DATABASE IF EXISTS {made}_capacity WITH (FORCE)")
    execute(f"DROP DATABASE {made} WITH (FORCE)")


@pytest.mark.slow
def test_database_has_the_settings_of_the_service_and_is_dropped(name: str) -> None:
    execute(f"ALTER DATABASE {name} SET synchronous_commit = on")
    with databases.temporary_database(on_one_server(named(name), "")) as made:
        assert made.owner == made.service == named(f"{name}_capacity")
        with psycopg.connect(made.owner) as connection:
            assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
    assert not exists(f"{name}_capacity")
    assert exists(name)


@pytest.mark.slow
def test_database_is_dropped_after_an_error_and_with_open_sessions(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "SESSIONS_END_SECONDS", 0.1)
    with (
        pytest.raises(KeyboardInterrupt),
        databases.temporary_database(on_one_server(named(name), "")) as made,
    ):
        connection = psycopg.connect(made.owner)
        raise KeyboardInterrupt
    connection.close()
    assert not exists(f"{name}_capacity")


@pytest.mark.slow
def test_leftover_of_a_killed_measurement_is_replaced(name: str) -> None:
    execute(f"CREATE DATABASE {name}_capacity")
    execute(f"COMMENT ON DATABASE {name}_capacity IS '{databases.MARK}'")
    with databases.temporary_database(on_one_server(named(name), "")):
        assert exists(f"{name}_capacity")
    assert not exists(f"{name}_capacity")


@pytest.mark.slow
def test_database_of_somebody_else_is_never_dropped(name: str) -> None:
    execute(f"CREATE DATABASE {name}_capacity")
    with pytest.raises(Refused, match="belongs to somebody else"):
        databases.temporary_database(on_one_server(named(name), "")).__enter__()
    assert exists(f"{name}_capacity")


@pytest.mark.slow
def test_second_measurement_at_once_is_refused(name: str) -> None:
    addresses = on_one_server(named(name), "")
    with databases.temporary_database(addresses), pytest.raises(Refused, match="under way"):
        databases.temporary_database(addresses).__enter__()


@pytest.mark.slow
def test_role_that_may_not_create_databases_gets_the_command(name: str) -> None:
    role = f"owner_{secrets.token_hex(4)}"
    execute(f"CREATE ROLE {role} LOGIN PASSWORD 'secret'")
    parts = urlsplit(named(name))
    url = parts._replace(netloc=f"{role}:secret@{parts.hostname}:{parts.port}").geturl()
    with pytest.raises(Refused, match=f'ALTER ROLE "{role}" CREATEDB'):
        databases.temporary_database(on_one_server(url, "")).__enter__()
    execute(f"DROP ROLE {role}")


@pytest.mark.slow
def test_sessions_of_the_service_end_although_the_owner_has_no_rights_over_them(name: str) -> None:
    """As in production: web and workers have a role of their own, whose sessions the owner may not end."""
    owner, web = (f"{each}_{secrets.token_hex(4)}" for each in ("owner", "web"))
    execute(f"CREATE ROLE {owner} LOGIN CREATEDB PASSWORD 'secret'")
    execute(f"CREATE ROLE {web} LOGIN PASSWORD 'secret'")
    parts = urlsplit(named(name))
    urls = [
        parts._replace(netloc=f"{role}:secret@{parts.hostname}:{parts.port}").geturl()
        for role in (web, owner)
    ]
    with databases.temporary_database(on_one_server(*urls)) as made:
        connection = psycopg.connect(made.service)
        assert connection.info.user == web
    connection.close()
    assert not exists(f"{name}_capacity")
    execute(f"DROP ROLE {owner}")
    execute(f"DROP ROLE {web}")


def test_silent_server_is_refused_without_its_password() -> None:
    with pytest.raises(Refused) as refusal:
        databases.temporary_database(on_one_server("postgresql://u:p4ssw0rd@127.0.0.1:1/qr", "")).__enter__()
    assert "p4ssw0rd" not in str(refusal.value)


def test_web_and_workers_use_their_own_role_on_the_server_of_the_owner() -> None:
    found = on_one_server(
        "postgresql://web:a@pooler:6432/qr", "postgresql://own:b@db:5432/qr?sslmode=require"
    )
    assert found.service == "postgresql://web:a@db:5432/qr?sslmode=require"


def test_redis_database_was_empty_is_not_that_of_the_service_and_is_emptied() -> None:
    url = os.environ["REDIS_URL"]
    with databases.temporary_redis(url) as made:
        assert urlsplit(made).path != urlsplit(url).path
        with closing(Redis.from_url(made)) as client:
            client.set("a", 1)
            with pytest.raises(Refused, match="in use"):
                databases.temporary_redis(url).__enter__()
    with closing(Redis.from_url(made)) as client:
        assert client.dbsize() == 0


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://:p4ssw0rd@127.0.0.1:1/0", "Redis does not answer"),
        ("sentinel://127.0.0.1:1/main", "REDIS_URL is no URL"),
        ("redis://:p4ssw0rd/@127.0.0.1:1/0", "REDIS_URL is no URL"),
        ("", "REDIS_URL is no URL"),
    ],
)
def test_redis_that_is_away_or_no_single_server_is_refused_without_its_password(url: str, said: str) -> None:
    with pytest.raises(Refused, match=said) as refusal:
        databases.temporary_redis(url).__enter__()
    assert "p4ssw0rd" not in str(refusal.value)


def test_measured_processes_have_no_secret_and_no_address_of_the_deployment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {
        "OMISE_SECRET_KEY": "p4ssw0rd", "SECRET_KEY_FILE": "/p4ssw0rd", "SENTRY_DSN": "https://p4ssw0rd@x",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://p4ssw0rd", "WEB_WORKERS": "3",
    }  # fmt: skip
    for variable, value in given.items():
        monkeypatch.setenv(variable, value)
    made = processes.settings(on_one_server("postgresql://u@h/x", ""), "redis://h/15")
    assert not [each for each, value in made.items() if "p4ssw0rd" in value]
    assert (made["WEB_WORKERS"], made["REDIS_URL"]) == ("3", "redis://h/15")
