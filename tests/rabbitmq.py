"""A real RabbitMQ: one node that a test may kill and start again."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from kombu import Connection
from kombu.exceptions import OperationalError

from config.devstack import ports
from config.devstack.programs import Account
from tests.stack import wait_until

SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
MISSING = "RabbitMQ is not installed (on Debian: apt install rabbitmq-server; .ci/run does it where it may)"
START_SECONDS = 180.0
CONFIGURATION = """\
listeners.tcp.1 = 127.0.0.1:{port}
default_user = qr
default_pass = {password}
default_vhost = shop/1
loopback_users = none
log.file.level = warning
"""
TLS = """\
listeners.ssl.1 = 127.0.0.1:{port}
listeners.ssl.2 = 127.0.0.2:{port}
ssl_options.certfile = {file}
ssl_options.keyfile = {file}
ssl_options.verify = verify_none
"""


class Node:
    """A node with a folder, ports, and a register of names (epmd) of its own."""

    def __init__(self, folder: Path, certificate: Path | None = None) -> None:
        """certificate: with its key; the node then also takes connections with TLS."""
        self.folder, self.port, self.tls_port = folder, ports.pick(), ports.pick()
        self.password = secrets.token_hex()
        self.registry_port, self.distribution_port = ports.pick(), ports.pick()
        self.account = Account.nobody() if os.geteuid() == 0 else None
        folder.mkdir(parents=True)
        text = CONFIGURATION.format(port=self.port, password=self.password)
        if certificate is not None:
            file = folder / "server.pem"
            file.write_bytes(certificate.read_bytes())
            text += TLS.format(port=self.tls_port, file=file)
        (folder / "rabbitmq.conf").write_text(text)
        (folder / "plugins").write_text("[].\n")
        if self.account is not None:
            self.account.own(folder)
        self.processes: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        return f"amqp://qr:{self.password}@127.0.0.1:{self.port}/shop%2F1"

    def tls_url(self, host: str = "127.0.0.1") -> str:
        return f"amqps://qr:{self.password}@{host}:{self.tls_port}/shop%2F1"

    def start(self) -> None:
        """Start the node, and wait until it takes connections."""
        self.process = self._spawn(SERVER)
        wait_until(lambda: self.answers() or self.process.poll() is not None, START_SECONDS)
        assert self.process.poll() is None, "RabbitMQ did not start"

    def start_registry(self) -> None:
        """Without it the node would start one that outlives the test."""
        epmd = shutil.which("epmd") or "epmd"
        self._spawn(epmd, "-port", str(self.registry_port), "-address", "127.0.0.1")
        wait_until(lambda: _listens(self.registry_port), START_SECONDS)

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send the signal to the node and its helpers."""
        os.killpg(self.process.pid, number)
        if number == signal.SIGKILL:
            self.process.wait()

    def answers(self) -> bool:
        try:
            with Connection(self.url, connect_timeout=5) as connection:
                connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0)
        except (OperationalError, OSError):
            return False
        return True

    def stop(self) -> None:
        for process in reversed(self.processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _spawn(self, *command: str | Path) -> "subprocess.Popen[bytes]":
        account = self.account
        process = subprocess.Popen(
            command,
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **self._environ},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )
        self.processes.append(process)
        return process

    @property
    def _environ(self) -> dict[str, str]:
        return {
            "HOME": str(self.folder),  # of the cookie of Erlang
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self.registry_port),
            "RABBITMQ_NODENAME": f"qr{self.port}@localhost",
            "RABBITMQ_DIST_PORT": str(self.distribution_port),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": str(self.folder / "none"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "data"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(self.folder / "generated"),
            # Few threads of Erlang that spin: the tests share the cores.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none +sbwtdcpu none +sbwtdio none",
        }


@contextmanager
def running(folder: Path, certificate: Path | None = None) -> Iterator[Node]:
    """Skips the test if RabbitMQ is not installed."""
    if not SERVER.exists():
        pytest.skip(MISSING)
    node = Node(folder, certificate)
    try:
        node.start_registry()
        node.start()
        yield node
    finally:
        node.stop()


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
