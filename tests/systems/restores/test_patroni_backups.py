"""Backups of two PostgreSQL servers under Patroni: docs/restore.md, "With Patroni"."""

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import psycopg
import pytest

from apidocs.guide.pages import PAGES
from tests.backups import SHIPPED, STANZA, programs
from tests.flows.guide_reader import blocks
from tests.patroni import Cluster, Node, running_cluster
from tests.stack import ROOT, wait_until
from tests.system_programs import find_program

pytestmark = pytest.mark.slow
SECONDS = 90.0
CONDITION = ROOT / "deploy" / "patroni" / "backup-thaiqr@.service.d" / "primary.conf"
# Exits of the condition. To systemd 1 to 254 are no failure.
BACK_UP, SKIP, FAIL = 0, 1, 255
# The guide has one path for all machines; here each server has its own, beside its data.
CONFIGURATION = {
    "/etc/patroni/config.yml": "{}/db1.yml",
    "pgbackrest --stanza": 'pgbackrest --config="$PWD.conf" --stanza',
}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    programs()
    find_program("curl", "curl")
    with running_cluster() as running:
        for node in running.nodes:
            configure(running, node)
        yield running


def configure(cluster: Cluster, node: Node) -> None:
    """The shipped configuration, with one repository for both servers."""
    config = ConfigParser(interpolation=None)
    config.read(SHIPPED / "pgbackrest.conf")
    folders = {f"{name}-path": cluster.folder / f"{node.name}-{name}" for name in ("spool", "log", "lock")}
    folders["repo1-path"] = cluster.folder / "repository"
    for name, folder in folders.items():
        config["global"][name] = str(folder)
        folder.mkdir(exist_ok=True)
        if cluster.account is not None:
            cluster.account.own(folder)
    config["global"].update({"repo1-cipher-pass": "only-for-this-test", "log-level-console": "warn"})
    config[STANZA] = {
        "pg1-path": str(node.data),
        "pg1-port": str(node.port),
        "pg1-socket-path": str(cluster.folder),
        "pg1-user": "app",
    }
    with node.data.with_suffix(".conf").open("w") as file:
        config.write(file, space_around_delimiters=False)


def run(cluster: Cluster, *command: str | Path, given: str = "") -> None:
    """Run it as the account of the servers."""
    who: dict[str, Any] = {}
    if cluster.account is not None:
        who = {"user": cluster.account.uid, "group": cluster.account.gid, "extra_groups": []}
    done = subprocess.run(command, cwd="/", input=given, capture_output=True, text=True, check=False, **who)
    assert done.returncode == 0, (command, done.stdout, done.stderr, cluster.log())


def pgbackrest(cluster: Cluster, node: Node, *arguments: str) -> None:
    run(cluster, "pgbackrest", f"--config={node.data}.conf", f"--stanza={STANZA}", *arguments)


def patronictl(cluster: Cluster, command: str, *more: str, given: str = "") -> None:
    """A command as the guide writes it."""
    samples = "".join(block.code.replace("\\\n", " ") for block in blocks(PAGES["restore"].file))
    (line,) = [each for each in samples.splitlines() if each.startswith("patronictl") and command in each]
    for theirs, ours in CONFIGURATION.items():
        line = line.replace(theirs, ours.format(cluster.folder))
    run(cluster, *shlex.split(line.partition("  #")[0]), *more, given=given)


def execute(cluster: Cluster, statement: str) -> list[tuple[object, ...]]:
    """At the primary."""
    with psycopg.connect(cluster.owner_url, connect_timeout=5, autocommit=True) as connection:
        found = connection.execute(statement)
        return found.fetchall() if found.description else []


def archives(cluster: Cluster) -> bool:
    try:
        return execute(cluster, "SHOW archive_mode") == [("on",)]
    except psycopg.OperationalError:
        return False


def condition(node: Node) -> int:
    """The exit of the condition of the unit of backups, read as systemd reads it."""
    lines = CONDITION.read_text().replace("\\\n", " ").splitlines()
    (line,) = [each for each in lines if each.startswith("ExecCondition=")]
    command = line.partition("=")[2].replace("$$", "$").replace("%%", "%")
    command = command.replace(":8008", f":{node.api_port}")
    return subprocess.run(shlex.split(command), capture_output=True, check=False).returncode


def recover(cluster: Cluster, node: Node) -> None:
    """Start the restored server without Patroni, until it has replayed the archive."""
    control: list[str | Path] = [cluster.programs / "pg_ctl", f"--pgdata={node.data}"]
    run(cluster, *control, f"--log={cluster.folder}/recovery.log", "--wait", "start")

    def is_primary() -> bool:
        try:
            with psycopg.connect(cluster.url_of("app", node), connect_timeout=5) as connection:
                return connection.execute("SELECT pg_is_in_recovery()").fetchone() == (False,)
        except psycopg.OperationalError:
            return False

    wait_until(is_primary, SECONDS)
    run(cluster, *control, "--mode=fast", "stop")


def test_new_primary_goes_on_with_the_archive_and_a_lost_cluster_is_restored_from_it(
    cluster: Cluster,
) -> None:
    first, second = cluster.nodes
    pgbackrest(cluster, first, "stanza-create")
    patronictl(cluster, "edit-config")
    patronictl(cluster, "restart")
    wait_until(lambda: archives(cluster), SECONDS)
    pgbackrest(cluster, first, "check")
    execute(cluster, "CREATE TABLE paid AS SELECT 1 AS payment")
    pgbackrest(cluster, first, "--type=full", "backup")
    cluster.wait_for_standby()
    assert [condition(node) for node in cluster.nodes] == [BACK_UP, SKIP]

    first.stop()
    wait_until(second.is_primary, SECONDS)
    assert [condition(node) for node in cluster.nodes] == [FAIL, BACK_UP]
    execute(cluster, "INSERT INTO paid VALUES (2)")
    # pgBackRest refuses a server before its first checkpoint after the promotion, which comes within minutes.
    execute(cluster, "CHECKPOINT")
    pgbackrest(cluster, second, "--type=incr", "backup")
    execute(cluster, "INSERT INTO paid VALUES (3)")
    pgbackrest(cluster, second, "check")

    second.stop()
    for node in cluster.nodes:
        shutil.rmtree(node.data)
    pgbackrest(cluster, second, "--delta", "restore")
    recover(cluster, second)
    patronictl(cluster, "remove", given="thaiqr\nYes I am aware\n")
    cluster.start(second)
    wait_until(second.is_primary, SECONDS)
    cluster.start(first)
    cluster.wait_for_standby()
    assert execute(cluster, "SELECT payment FROM paid ORDER BY 1") == [(1,), (2,), (3,)]
    assert archives(cluster)
    pgbackrest(cluster, second, "check")
