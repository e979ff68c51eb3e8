"""A migrated template database, from which the test databases are copied.

Its dump is stored in the virtual environment under a digest of everything that the migrations depend on. The
next run loads it in a second. Tests of the migrations do not use it.
"""

import hashlib
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg.errors import DuplicateObject, UniqueViolation

from config.devstack.postgres import SERVICE_ROLE, make_service_role
from config.devstack.postgres_programs import find_programs
from config.env import OWNER_URL

ROOT = Path(__file__).resolve().parent.parent
NAME = "test_template"
DUMP_FOLDER = Path(sys.prefix) / "test-template"
# Besides the migrations: what they import, and Django's own migrations.
SOURCES = [
    *("*/migrations/*.py", "*/sql/*.sql", "core/database/columns.py"),
    *(
        "operations/data_protection/*.py",
        "console/people/roles.py",
        "console/people/sections.toml",
        "requirements/production.lock",
    ),
]


def create(server_url: str) -> str:
    """Create the template on this server; return its name. server_url: the URL of any database there."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {NAME}")
    url = server_url.rpartition("/")[0] + "/" + NAME
    service_url(url)  # the tables of the dump have grants to its groups
    dump = DUMP_FOLDER / f"{_digest()}.sql"
    if not dump.exists():
        _migrate(url)
        _keep(url, dump)
    else:
        options = ["--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1", f"--file={dump}"]
        subprocess.run([find_programs() / "psql", *options, url], stdout=subprocess.DEVNULL, check=True)
    return NAME


def new_database(name: str, *, template: str | None = None) -> str:
    """Create a database for an instance on the server of the tests; return its URL.

    It has tables if there is a template. Commits wait for the disk: else the service does not start.
    """
    template = template or os.environ.get("TEST_TEMPLATE", "template1")
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = on")
    return os.environ["DATABASE_URL"].rpartition("/")[0] + "/" + name


def service_url(owner_url: str) -> str:
    """The same database for the role of web and workers, which is made on the first call."""
    parts = urlsplit(owner_url)
    assert parts.password
    with suppress(DuplicateObject, UniqueViolation):  # another process was first
        make_service_role(owner_url, parts.password)
    address = f"{SERVICE_ROLE}:{parts.password}@{parts.hostname}:{parts.port}"
    return parts._replace(netloc=address).geturl()


def _digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(path for pattern in SOURCES for path in ROOT.glob(pattern)):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _migrate(url: str) -> None:
    command = [sys.executable, "manage.py", "migrate", "--skip-checks", "--verbosity=0"]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "DATABASE_URL": url, OWNER_URL: url}, check=True)


def _keep(url: str, dump: Path) -> None:
    """Write under another name first: a run at the same time must not read half of it."""
    DUMP_FOLDER.mkdir(exist_ok=True)
    for old in DUMP_FOLDER.glob("*.sql"):
        old.unlink(missing_ok=True)
    whole = dump.with_suffix(f".{os.getpid()}")
    subprocess.run([find_programs() / "pg_dump", f"--file={whole}", url], check=True)
    whole.rename(dump)
