"""`thaiqr-server check`: each fault of a deployment is provoked and named."""

import json
import re
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from pytest_django import Settings

from config.deployment import (
    check,
    counterparties,
    findings,
    machine,
    postgresql,
    public_url,
    redis_server,
)
from config.deployment.findings import Finding, Level
from config.devstack import ports
from config.devstack.postgres import Cluster
from core.database.archiver import Archiver
from tests.stack import wait_until
from tests.systems.deployment.installation import Installation

NOW = datetime(2026, 11, 21, 5, 0, tzinfo=UTC)


def one(found: list[Finding], subject: str) -> Finding:
    (finding,) = [each for each in found if each.subject == subject]
    return finding


# --- the screen ---------------------------------------------------------------------------------------


def test_screen_has_a_line_for_each_finding_and_the_advice_below_it() -> None:
    text = findings.as_text(
        [findings.ok("Python", "3.11.7"), findings.problem("disk of /", "0.5 GB free", "Make room.")]
    )
    assert text.splitlines() == [
        "ok        Python                        3.11.7",
        "problem   disk of /                     0.5 GB free",
        "                                        -> Make room.",
        "1 problems, 0 warnings, 1 ok",
    ]


@pytest.mark.parametrize("level", list(Level))
def test_json_names_the_worst_level(level: Level) -> None:
    shown = json.loads(findings.as_json([findings.ok("a", "b"), Finding(level, "c", "d", "e")]))
    assert shown["level"] == level
    assert shown["findings"][1] == {"level": level, "subject": "c", "found": "d", "advice": "e"}


# --- this machine -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("difference", "level"),
    [(0.1, Level.OK), (-1.9, Level.OK), (2.5, Level.WARNING), (-30.0, Level.WARNING), (90.0, Level.PROBLEM)],
)
def test_clock_that_differs_is_reported(difference: float, level: Level) -> None:
    assert machine.compare_clock("clock of PostgreSQL", difference).level == level


@pytest.mark.parametrize(
    ("free", "level"),
    [(10 * machine.GB, Level.OK), (3 * machine.GB, Level.WARNING), (machine.GB // 2, Level.PROBLEM)],
)
def test_full_disk_is_reported(free: int, level: Level) -> None:
    assert machine.disk("/", free).level == level


def test_open_metrics_and_short_secrets_are_reported(settings: Settings) -> None:
    settings.MONITORING_TOKEN, settings.IDEMPOTENCY_KEYS = "", ["short"]
    found = check.configuration()
    assert one(found, "MONITORING_TOKEN").level == Level.WARNING
    assert any("IDEMPOTENCY_KEYS" in each.found for each in found if each.subject == "settings")


@pytest.mark.parametrize(
    ("name", "value", "module", "package"),
    [
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "http://127.0.0.1:4318",
            "opentelemetry",
            "opentelemetry-exporter-otlp",
        ),
        ("SENTRY_DSN", "http://key@127.0.0.1:9000/1", "sentry_sdk", "sentry-sdk"),
    ],
)
def test_package_that_a_setting_needs_is_named_if_it_is_missing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, name: str, value: str, module: str, package: str
) -> None:
    setattr(settings, name, value)
    assert one(check.configuration(), "settings").level == Level.OK
    monkeypatch.setitem(sys.modules, module, None)
    found = one(check.configuration(), "settings")
    assert found.level == Level.PROBLEM
    assert f"{name} needs {package}" in found.found
    assert "production.lock" in found.advice
    setattr(settings, name, "")
    assert one(check.configuration(), "settings").level == Level.OK


# --- PostgreSQL ---------------------------------------------------------------------------------------


def server(**changes: Any) -> postgresql.Server:
    with connection.cursor() as cursor:
        cursor.execute(postgresql._SERVER_SQL)
        values = dict(zip(postgresql.Server.__dataclass_fields__, cursor.fetchone(), strict=True))
    return postgresql.Server(**(values | changes))


@pytest.mark.django_db
def test_superuser_and_unsafe_writes_of_the_test_server_are_reported() -> None:
    found = postgresql.findings(connections_needed=1_000)
    assert one(found, "PostgreSQL").level == Level.OK
    assert one(found, "PostgreSQL fsync").level == Level.OK
    assert one(found, "PostgreSQL full_page_writes").level == Level.PROBLEM
    assert one(found, "PostgreSQL synchronous_commit").level == Level.PROBLEM
    assert one(found, "PostgreSQL archive").level == Level.WARNING
    assert "app is a superuser" in one(found, "PostgreSQL role").found
    assert one(found, "PostgreSQL connections").level == Level.PROBLEM
    assert one(found, "tables").level == Level.OK
    assert "beat" in one(found, "workers and beat").found


@pytest.mark.django_db
def test_limits_of_role_and_database_bound_the_connections() -> None:
    limited = {"max_connections": 103, "reserved_connections": 3, "role_limit": 60, "database_limit": 40}
    assert postgresql._connections(server(**limited), 40).level == Level.OK
    assert postgresql._connections(server(**limited), 41).level == Level.PROBLEM
    unlimited = limited | {"role_limit": -1, "database_limit": -1}
    assert postgresql._connections(server(**unlimited), 100).level == Level.OK
    assert postgresql._connections(server(**unlimited), 101).level == Level.PROBLEM


@pytest.mark.django_db
def test_old_postgresql_and_missing_tls_are_reported() -> None:
    assert one(postgresql.of_server(server(major=14), 1), "PostgreSQL").level == Level.PROBLEM
    assert postgresql.encryption(server(is_encrypted=False), {"HOST": "db.internal"}).level == Level.WARNING
    assert postgresql.encryption(server(is_encrypted=False), {"HOST": "127.0.0.1"}).level == Level.OK
    for mode, level in {"require": Level.WARNING, "verify-full": Level.OK}.items():
        address = {"HOST": "db.internal", "OPTIONS": {"sslmode": mode}}
        assert postgresql.encryption(server(is_encrypted=True), address).level == level


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("is_synchronous", "names", "commit", "level"),
    [
        (True, "db2", "on", Level.OK),
        (True, "", "on", Level.PROBLEM),
        (True, "db2", "local", Level.PROBLEM),
        (False, "db2", "on", Level.WARNING),
        (False, "", "on", None),
    ],
)
def test_standby_for_which_no_commit_waits_is_reported(
    settings: Settings, is_synchronous: bool, names: str, commit: str, level: Level | None
) -> None:
    settings.SYNCHRONOUS_STANDBY = is_synchronous
    found = postgresql._standby(server(synchronous_standbys=names, synchronous_commit=commit))
    assert [each.level for each in found] == ([] if level is None else [level])


@pytest.mark.parametrize(
    ("archiver", "level"),
    [
        (Archiver(is_on=True, age_seconds=59, is_failing=False), Level.OK),
        (Archiver(is_on=False, age_seconds=59, is_failing=False), Level.WARNING),
        (Archiver(is_on=True, age_seconds=59, is_failing=True), Level.PROBLEM),
        (Archiver(is_on=True, age_seconds=901, is_failing=False), Level.PROBLEM),
    ],
)
def test_wal_that_is_not_archived_is_reported(archiver: Archiver, level: Level) -> None:
    assert postgresql.archive(archiver).level == level


@pytest.mark.django_db
def test_missing_and_newer_migrations_are_reported() -> None:
    executor = MigrationExecutor(connection)
    assert postgresql.migrations(executor)[0].level == Level.OK
    executor.loader.applied_migrations["payments", "9999_of_tomorrow"] = executor.loader.get_migration(
        "payments", "0001_initial"
    )
    newer = postgresql.migrations(executor)[0]
    assert (newer.level, "9999_of_tomorrow" in newer.found) == (Level.WARNING, True)
    executor.loader.applied_migrations.pop(executor.loader.graph.leaf_nodes("operations")[0])
    assert postgresql.migrations(executor)[0].level == Level.PROBLEM


@pytest.fixture(scope="module")
def unsafe_database() -> Iterator[str]:
    """An empty database of a PostgreSQL with fsync off and few connections, which cannot archive its log."""
    archive = ["-c", "archive_mode=on", "-c", "archive_command=false"]
    options = ["-c", "fsync=off", "-c", "max_connections=20", *archive]
    with tempfile.TemporaryDirectory(prefix="unsafe-") as folder:
        Path(folder).chmod(0o711)  # PostgreSQL does not run as root
        cluster = Cluster(Path(folder), ports.pick(), secrets.token_hex(), options)
        server = cluster.prepare().spawn()
        try:
            wait_until(cluster.is_ready, 120)
            with psycopg.connect(cluster.url, autocommit=True) as link:
                link.execute("SELECT pg_switch_wal()")
                failed = "SELECT failed_count > 0 FROM pg_stat_archiver"
                wait_until(lambda: link.execute(failed).fetchone() == (True,), 120)
            yield cluster.url
        finally:
            server.send_signal(signal.SIGINT)
            server.wait()
            if server.stdout:
                server.stdout.close()


@pytest.mark.slow
def test_database_with_fsync_off_and_without_tables_is_reported(
    installed: Installation, unsafe_database: str
) -> None:
    done = installed.run("check", "--json", is_checked=False, DATABASE_URL=unsafe_database)
    found = [Finding(**each) for each in json.loads(done.stdout)["findings"]]
    assert done.returncode == 1
    assert one(found, "PostgreSQL fsync").found == "off: a crash of the machine loses payments"
    archive = one(found, "PostgreSQL archive").found
    assert re.fullmatch(r"fails; nothing archived for \d+ minutes", archive)  # since the server began
    assert "migrations are missing" in one(found, "tables").found
    assert "17 allowed, 116 needed at most" in one(found, "PostgreSQL connections").found


@pytest.mark.slow
def test_role_without_superuser_is_no_problem(installed: Installation) -> None:
    """The role owns the tables, so it may change them."""
    url = urlsplit(installed.settings["DATABASE_URL"])
    role = f"shop_{secrets.token_hex(4)}"
    with psycopg.connect(url.geturl(), autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'secret'")
        admin.execute(f"GRANT CREATE ON SCHEMA public TO {role}")
        admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}")
        as_role = url._replace(netloc=f"{role}:secret@{url.hostname}:{url.port}").geturl()
        found = json.loads(installed.run("check", "--json", is_checked=False, DATABASE_URL=as_role).stdout)
        assert one([Finding(**each) for each in found["findings"]], "PostgreSQL role").level == Level.WARNING
        admin.execute(f"REVOKE CREATE ON SCHEMA public FROM {role}")
        found = json.loads(installed.run("check", "--json", is_checked=False, DATABASE_URL=as_role).stdout)
        assert one([Finding(**each) for each in found["findings"]], "PostgreSQL role").level == Level.OK
        rights = one([Finding(**each) for each in found["findings"]], "PostgreSQL rights")
        assert rights.found.startswith(f"{role} lacks ") and "account_emailaddress: " in rights.found
        assert rights.level == Level.WARNING
        assert f"GRANT thaiqr_app TO {role}" in rights.advice
        admin.execute(f"DROP OWNED BY {role}")
        admin.execute(f"DROP ROLE {role}")


@pytest.mark.slow
def test_check_without_database_redis_and_keys_names_each_and_shows_no_secret(
    installed: Installation,
) -> None:
    done = installed.run(
        "check",
        is_checked=False,
        DATABASE_URL="postgresql://qr:p4ssw0rd@127.0.0.1:1/qr",
        REDIS_URL="redis://:p4ssw0rd@127.0.0.1:1/0",
        SECRET_KEY="",
        BASE_URL="http://pay.example.com",
    )
    assert done.returncode == 1
    for expected in (
        "SECRET_KEY is missing or short.",
        "Check DATABASE_URL, that the server runs",
        "Check REDIS_URL and that the server runs.",
        "http: keys and payments cross the internet openly",
    ):
        assert expected in " ".join(done.stdout.split())
    assert "p4ssw0rd" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_check_without_required_settings_is_still_one_screen(installed: Installation) -> None:
    settings = {name: "" for name in installed.settings if name not in {"PATH", "HOME"}}
    done = installed.run("check", is_checked=False, **settings)
    assert done.returncode == 1
    assert "DATABASE_URL is missing." in done.stdout
    assert "Traceback" not in done.stderr


# --- Redis --------------------------------------------------------------------------------------------


def test_redis_of_the_tests_answers_with_its_clock() -> None:
    found = redis_server.findings()
    assert [each.level for each in found] == [Level.OK] * 3
    assert found[0].subject == "Valkey"


@pytest.mark.parametrize(
    ("info", "level"),
    [
        ({"redis_version": "6.0.16"}, Level.PROBLEM),
        ({"redis_version": "7.0.15"}, Level.OK),
        ({"redis_version": "7.2.4", "valkey_version": "7.1.0"}, Level.PROBLEM),
        ({"redis_version": "7.2.4", "valkey_version": "9.1.2"}, Level.OK),
        ({}, Level.PROBLEM),
    ],
)
def test_old_redis_is_reported(info: dict[str, str], level: Level) -> None:
    assert redis_server.version(info).level == level


def test_sentinels_that_do_not_answer_are_reported() -> None:
    (found,) = redis_server.sentinel_findings("sentinel://:p4ssw0rd@127.0.0.1:1/qr")
    assert found.level == Level.PROBLEM
    assert "Connection refused" in found.found
    assert "p4ssw0rd" not in found.found + found.advice


def test_redis_on_another_machine_without_tls_is_reported() -> None:
    assert redis_server.encryption("redis://redis.internal:6379/0").level == Level.WARNING
    assert redis_server.encryption("rediss://redis.internal:6379/0").level == Level.OK
    assert redis_server.encryption("sentinels://redis.internal/qr").level == Level.OK


# --- the public address -------------------------------------------------------------------------------


class Health(BaseHTTPRequestHandler):
    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.end_headers()

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def https_server(folder: Path, days: int, status: int = 200) -> Iterator[tuple[int, Path]]:
    """A server with a certificate of its own; yields its port and the certificate."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    subprocess.run([*make, "-days", str(days), *subject, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    handler = type("Handler", (Health,), {"status": status})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server.server_port, certificate
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("days", "status", "levels"),
    [
        (90, 200, [Level.OK, Level.OK]),
        (5, 200, [Level.WARNING, Level.OK]),
        (90, 502, [Level.OK, Level.PROBLEM]),
    ],
)
def test_certificate_and_health_of_the_public_address_are_checked(
    tmp_path: Path, settings: Settings, days: int, status: int, levels: list[Level]
) -> None:
    with https_server(tmp_path, days, status) as (port, certificate):
        settings.CA_BUNDLE = str(certificate)
        found = public_url.over_tls("127.0.0.1", port, datetime.now(UTC))
    assert [each.level for each in found] == levels


@pytest.mark.slow
def test_untrusted_certificate_is_a_problem(tmp_path: Path) -> None:
    with https_server(tmp_path, 90) as (port, _):
        (found,) = public_url.over_tls("127.0.0.1", port, datetime.now(UTC))
    assert (found.level, found.subject) == (Level.PROBLEM, "BASE_URL TLS")
    assert "self" in found.found
    assert "CA_BUNDLE" in found.advice


def test_public_address_that_cannot_be_reached_is_a_warning() -> None:
    (found,) = public_url.over_tls("127.0.0.1", 1, NOW)
    assert found.level == Level.WARNING


def test_unreadable_ca_bundle_is_named_and_ends_no_other_check(settings: Settings, tmp_path: Path) -> None:
    settings.CA_BUNDLE, settings.BASE_URL = str(tmp_path / "missing.pem"), "https://127.0.0.1:1"
    assert [each.found for each in check.configuration() if "CA_BUNDLE" in each.found] == [
        "CA_BUNDLE is no file of certificates that can be read."
    ]
    assert public_url.findings(NOW) == []
    assert [each.level for each in counterparties.reach({"https://127.0.0.1:1": "scb"})] == [Level.WARNING]


@pytest.mark.parametrize(
    ("url", "level"),
    [("http://pay.example.com", Level.PROBLEM), ("http://127.0.0.1:8000", Level.WARNING)],
)
def test_public_address_without_tls_is_reported(settings: Settings, url: str, level: Level) -> None:
    settings.BASE_URL = url
    (found,) = public_url.findings(NOW)
    assert found.level == level


# --- banks --------------------------------------------------------------------------------------------


@contextmanager
def silent_server() -> Iterator[str]:
    """Accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def answering_server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Health) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_banks_that_do_not_answer_are_named_and_cost_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counterparties, "SECONDS", 0.3)
    with answering_server() as good, silent_server() as silent:
        started = time.monotonic()
        found = counterparties.reach({good: "scb", silent: "bbl", "http://127.0.0.1:1": "omise"})
        assert time.monotonic() - started < 30
    assert [each.level for each in found] == [Level.OK, Level.WARNING, Level.WARNING]
    assert found[1].found.endswith("no answer in time")
    assert found[2].found.endswith("it cannot be reached")


@pytest.mark.django_db
def test_addresses_are_those_of_connected_merchants_and_the_acquirer(settings: Settings) -> None:
    settings.OMISE_SECRET_KEY, settings.OMISE_API_URL = "skey_x", "https://api.omise.example"
    assert counterparties.addresses() == {"https://api.omise.example": "omise"}
