"""HAProxy with the sample of the guide, which leads to the primary of a Patroni cluster."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from apidocs.guide.pages import PAGES
from config.devstack import ports
from config.devstack.ports import LOOPBACK
from tests.flows.guide_reader import blocks
from tests.patroni import Cluster
from tests.stack import wait_until
from tests.system_programs import find_program

START_SECONDS = 60.0
STOP_SECONDS = 30.0
SAMPLE_PORT = "127.0.0.1:5000"


@contextmanager
def in_front_of(cluster: Cluster, folder: Path) -> Iterator[str]:
    """The address of the database that leads to the primary, for the service."""
    program, port = find_program("haproxy", "haproxy"), ports.pick()
    url = cluster.url_at(port)
    file = folder / "haproxy.cfg"
    file.write_text(_configuration(cluster, port))
    running = subprocess.Popen([program, "-q", "-db", "-f", str(file)])
    try:
        wait_until(lambda: _leads_to_primary(url) or running.poll() is not None, START_SECONDS)
        assert running.poll() is None, "HAProxy did not start"
        yield url
    finally:
        running.terminate()
        running.wait(STOP_SECONDS)


def _leads_to_primary(url: str) -> bool:
    """Before the first check both servers get connections in turn. So two to the primary are enough."""
    with suppress(psycopg.OperationalError):
        return not any(_is_standby(url) for _ in range(2))
    return False


def _is_standby(url: str) -> bool:
    with psycopg.connect(url, connect_timeout=5) as connection:
        ((found,),) = connection.execute("SELECT pg_is_in_recovery()").fetchall()
    return bool(found)


def _configuration(cluster: Cluster, port: int) -> str:
    (sample,) = [
        block.code
        for block in blocks(PAGES["larger-set-ups"].file)
        if block.code.startswith("listen postgresql")
    ]
    changes = {SAMPLE_PORT: f"{LOOPBACK}:{port}"}
    for node in cluster.nodes:
        theirs = f"server {node.name} {node.name}:5432 check port 8008"
        changes[theirs] = f"server {node.name} {LOOPBACK}:{node.port} check port {node.api_port}"
    for theirs, ours in changes.items():
        assert theirs in sample, (theirs, sample)
        sample = sample.replace(theirs, ours)
    return sample
