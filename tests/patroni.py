"""PostgreSQL servers under Patroni and etcd with the configuration that we ship, all on loopback.

A primary and a synchronous standby: each commit waits for both. Kill the primary, and the standby takes over.
"""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import requests
import yaml

from config.devstack import ports
from config.devstack.ports import LOOPBACK
from config.devstack.postgres import SERVICE_ROLE, make_service_role
from config.devstack.processes import wait_for_end
from tests import system_postgres
from tests.memory import server_folder
from tests.stack import ROOT, wait_until
from tests.system_programs import find_program

SHIPPED = ROOT / "deploy" / "patroni" / "patroni.yml"
DATABASE = "app"
SECRET = "only-for-this-test"
START_SECONDS = 240.0
STOP_SECONDS = 30.0


@dataclass
class Node:
    """A machine of the cluster: Patroni, and the PostgreSQL that it runs."""

    name: str
    folder: Path
    port: int
    api_port: int
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def data(self) -> Path:
        return self.folder / f"{self.name}-data"

    def state(self) -> dict[str, Any]:
        """What its Patroni says of it; empty if it does not answer."""
        try:
            answer: dict[str, Any] = requests.get(f"http://{LOOPBACK}:{self.api_port}/", timeout=5).json()
        except requests.RequestException:
            return {}
        return answer

    def is_primary(self) -> bool:
        state = self.state()
        return (state.get("role"), state.get("state")) == ("master", "running")

    def is_synchronous_standby(self) -> bool:
        state = self.state()
        return state.get("state") == "running" and bool(state.get("sync_standby"))

    def stop(self) -> None:
        """End Patroni, which stops its PostgreSQL and gives its lock away."""
        assert self.process is not None
        self.process.terminate()
        self.process.wait(STOP_SECONDS)
        self.process = None

    def kill(self) -> None:
        """Kill Patroni and all processes of PostgreSQL, as if the machine lost its power."""
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        self.process = None
        with suppress(FileNotFoundError):
            postmaster = int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])
            pids = system_postgres.processes_of(postmaster)
            system_postgres.send(signal.SIGKILL, pids)
            wait_for_end(pids, STOP_SECONDS)


class Cluster:
    """Use it as a context. The folder must be reachable for `nobody`."""

    def __init__(self, folder: Path, names: tuple[str, ...] = ("db1", "db2")) -> None:
        self.patroni, self.patronictl = (find_program(name, "patroni") for name in ("patroni", "patronictl"))
        self.etcd = find_program("etcd", "etcd-server")
        self.programs, self.account = system_postgres.programs(), system_postgres.account()
        self.folder, self.etcd_port = folder, ports.pick()
        self.nodes = [Node(name, folder, ports.pick(), ports.pick()) for name in names]
        self._ending = ExitStack()
        if self.account is not None:
            self.account.own(folder)

    @property
    def urls(self) -> dict[str, str]:
        """The addresses of the database for its owner and for the service; libpq looks for the primary."""
        return {
            "DATABASE_URL": self.url_of(SERVICE_ROLE, *self.nodes),
            "MIGRATION_DATABASE_URL": self.url_of("app", *self.nodes),
        }

    @property
    def owner_url(self) -> str:
        return self.urls["MIGRATION_DATABASE_URL"] + "?target_session_attrs=read-write"

    def url_at(self, *server_ports: int, role: str = SERVICE_ROLE, database: str = DATABASE) -> str:
        """The address of the database at these ports, by default for the service."""
        addresses = ",".join(f"{LOOPBACK}:{port}" for port in server_ports)
        return f"postgresql://{role}:{SECRET}@{addresses}/{database}"

    def url_of(self, role: str, *nodes: Node, database: str = DATABASE) -> str:
        return self.url_at(*(node.port for node in nodes), role=role, database=database)

    def __enter__(self) -> "Cluster":
        with self._ending:
            self._start_etcd()
            first, *others = self.nodes
            self.start(first)
            wait_until(first.is_primary, START_SECONDS)
            for node in others:
                self.start(node)
            with psycopg.connect(
                self.url_of("app", first, database="postgres"), autocommit=True
            ) as connection:
                connection.execute(f"CREATE DATABASE {DATABASE}")
            make_service_role(self.url_of("app", first), SECRET)
            self._ending = self._ending.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def start(self, node: Node) -> None:
        """Start its Patroni, which creates its PostgreSQL, or lets it follow the primary."""
        file = self._file_of(node)
        file.write_text(yaml.safe_dump(self._configuration(node)))
        node.process = self._spawn(node.name, self.patroni, file)
        self._ending.callback(node.kill)

    def wait_for_standby(self) -> None:
        """Return when a standby has all commits of the primary."""
        wait_until(lambda: any(node.is_synchronous_standby() for node in self.nodes), START_SECONDS)

    def primary(self) -> Node:
        (found,) = [node for node in self.nodes if node.is_primary()]
        return found

    def switch_over(self) -> None:
        """Let the standby become the primary while both are well, by the command of the guide."""
        before = self.primary()
        file = self._file_of(before)
        subprocess.run([self.patronictl, "-c", file, "switchover", "--force"], check=True, cwd="/")
        wait_until(lambda: any(node.is_primary() for node in self.nodes if node is not before), START_SECONDS)

    def log(self) -> str:
        """The last lines of each process, for a failed test."""
        files = sorted(self.folder.glob("*.log"))
        return "\n".join(f"== {file.name}\n{file.read_text()[-4000:]}" for file in files)

    def _file_of(self, node: Node) -> Path:
        return self.folder / f"{node.name}.yml"

    def _configuration(self, node: Node) -> dict[str, Any]:
        """The shipped file, with what differs on this machine."""
        shipped: dict[str, Any] = yaml.safe_load(SHIPPED.read_text())
        authentication = {
            role: {"username": name, "password": SECRET}
            for role, name in (("superuser", "app"), ("replication", "replicator"), ("rewind", "rewinder"))
        }
        api, server = f"{LOOPBACK}:{node.api_port}", f"{LOOPBACK}:{node.port}"
        plain = {"unix_socket_directories": str(self.folder), "ssl": "off"}
        postgresql = {
            "listen": server,
            "connect_address": server,
            "data_dir": str(node.data),
            "bin_dir": str(self.programs),
            "pgpass": str(self.folder / f"{node.name}.pgpass"),
            "authentication": authentication,
            "parameters": {"password_encryption": "scram-sha-256", "log_min_messages": "fatal", **plain},
            "pg_hba": [
                "local all all trust",
                *(f"host {name} all 127.0.0.1/32 scram-sha-256" for name in ("all", "replication")),
            ],
        }
        postgresql = shipped["postgresql"] | postgresql
        return shipped | {
            "name": node.name,
            "restapi": {"listen": api, "connect_address": api},
            "etcd3": {"hosts": f"{LOOPBACK}:{self.etcd_port}"},
            "postgresql": postgresql,
            "watchdog": {"mode": "off"},
        }

    def _start_etcd(self) -> None:
        client, peer = (f"http://{LOOPBACK}:{port}" for port in (self.etcd_port, ports.pick()))
        listen = ["--listen-client-urls", client, "--advertise-client-urls", client]
        peers = ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        alone = ["--name", "etcd", "--initial-cluster", f"etcd={peer}"]
        command = [self.etcd, "--data-dir", str(self.folder / "etcd"), *listen, *peers, *alone]
        etcd = self._ending.enter_context(self._spawn("etcd", *command))
        self._ending.callback(etcd.kill)
        wait_until(lambda: _is_healthy(client), START_SECONDS)

    def _spawn(self, name: str, *command: str | Path) -> "subprocess.Popen[bytes]":
        """Run it as the account, until this process ends. Its output goes into a file."""
        before: list[str | Path] = ["setpriv", "--pdeathsig=TERM"]
        if self.account is not None:
            before += [f"--reuid={self.account.uid}", f"--regid={self.account.gid}", "--clear-groups"]
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen([*before, *command], cwd="/", stdout=log, stderr=log)


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A primary and a synchronous standby."""
    with server_folder("thai-qr-cluster-") as folder, Cluster(folder) as running:
        yield running


def _is_healthy(url: str) -> bool:
    try:
        return bool(requests.get(f"{url}/health", timeout=5).json().get("health") == "true")
    except requests.RequestException:
        return False
