"""The roles of the guides give the service its rights, and a service without rights does not start."""

import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import requests

from config.devstack import ports
from config.devstack.postgres import Cluster
from tests.stack import ROOT, wait_until
from tests.systems.deployment.installation import Installation

pytestmark = pytest.mark.slow
KUBERNETES = ROOT / "docs" / "kubernetes.md"
# Of the Compose file, and of `thaiqr-server install`.
PROGRAM = ROOT / "deploy" / "compose" / "create-roles.sh"
START_SECONDS = 120


def statements(file: Path) -> list[str]:
    """What the file makes in the database, without passwords."""
    found = re.findall(r"^CREATE (?:ROLE|DATABASE) .*;$", file.read_text(), re.M)
    return [re.sub(r"PASSWORD \S+", "PASSWORD '...'", each).removesuffix(";") for each in found]


def test_guide_and_program_make_the_same_roles() -> None:
    assert len(statements(KUBERNETES)) == 6
    assert statements(PROGRAM) == statements(KUBERNETES)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A new PostgreSQL without any role of ours."""
    with tempfile.TemporaryDirectory(prefix="roles-") as folder:
        Path(folder).chmod(0o711)  # PostgreSQL does not run as root
        made = Cluster(Path(folder), ports.pick(), secrets.token_hex())
        server = made.prepare().spawn()
        try:
            wait_until(made.is_ready, START_SECONDS)
            yield made
        finally:
            server.send_signal(signal.SIGINT)
            server.wait()
            if server.stdout:
                server.stdout.close()


@pytest.mark.skipif(
    shutil.which("psql") is None, reason="psql is not installed (apt install postgresql-client)"
)
def test_program_makes_logins_and_begins_again_if_the_database_was_not_made(cluster: Cluster) -> None:
    server = psycopg.conninfo.conninfo_to_dict(cluster.url)
    settings = {
        "PGHOST": str(server["host"]), "PGPORT": str(server["port"]), "PGPASSWORD": str(server["password"]),
        "POSTGRES_USER": str(server["user"]),
        "THAIQR_OWNER_PASSWORD": "o'1", "THAIQR_DATABASE_PASSWORD": "s'2",
    }  # fmt: skip
    with psycopg.connect(cluster.url, autocommit=True) as admin:
        admin.execute("CREATE ROLE thaiqr_app NOLOGIN")
        subprocess.run(["sh", PROGRAM], env=os.environ | settings, check=True, capture_output=True)
    address = f"host={server['host']} port={server['port']} dbname=thaiqr"
    psycopg.connect(f"{address} user=thaiqr_owner", password="o'1").close()
    with psycopg.connect(f"{address} user=thaiqr", password="s'2") as service:
        service.execute("SELECT pg_ls_waldir()")


def test_service_of_the_kubernetes_guide_has_its_rights(
    installed: Installation, cluster: Cluster, tmp_path: Path
) -> None:
    groups, logins = statements(KUBERNETES)[:3], statements(KUBERNETES)[3:]
    login = f"127.0.0.1:{cluster.port}/thaiqr"
    owner, web = f"postgresql://thaiqr_owner:...@{login}", f"postgresql://thaiqr:...@{login}"
    service = Installation(installed.environment, tmp_path / "home", settings={"DATABASE_URL": web})
    with psycopg.connect(cluster.url, autocommit=True) as admin:
        for each in logins:
            admin.execute(each.replace(" IN ROLE thaiqr_app", "").encode())
        without_groups = service.run("migrate", is_checked=False, MIGRATION_DATABASE_URL=owner)
        assert without_groups.returncode == 1
        assert "Nothing is changed. The service would have no rights" in without_groups.stderr
        alone = service.run(
            "migrate", DATABASE_URL=owner, MIGRATION_DATABASE_URL=owner + "?connect_timeout=9"
        )
        assert "No rights are granted" in alone.stderr  # the service is the owner, so it needs none
        for each in groups:
            admin.execute(each.encode())
        service.run("migrate", MIGRATION_DATABASE_URL=owner)
        no_member = service.run("web", is_checked=False)
        assert no_member.returncode == 1
        assert "As a superuser: GRANT thaiqr_app TO thaiqr" in no_member.stderr
        assert "thaiqr lacks" in service.run("check", is_checked=False).stdout
        assert "IN ROLE thaiqr_app" in logins[1]
        admin.execute("GRANT thaiqr_app TO thaiqr")
    assert_takes_payments(service)


def assert_takes_payments(service: Installation) -> None:
    made = service.run("manage", "create_merchant", "--name", "Somtam House", "--mode", "test", "--json")
    key = re.findall(r"tq_test_\w+", made.stdout)[0]
    with service.running("web"):
        service.wait_for("/healthz")
        answer = requests.post(
            f"{service.base_url}/v1/qr-codes",
            json={"amount": 10_000, "currency": "THB"},
            headers={"Authorization": f"Bearer {key}"},
            timeout=60,
        )
    assert answer.status_code == 200, answer.text
