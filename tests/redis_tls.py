"""A real Redis and a Sentinel that take connections with TLS only.

The Valkey of the wheel has no TLS, so this needs the Redis or Valkey of the system.
"""

import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from redis import Redis, RedisError

from config.devstack import ports
from tests.stack import wait_until
from tests.webhooks.certificates import Authority

MISSING = "Redis is not installed (on Debian: apt install redis-server; .ci/run does it where it may)"
START_SECONDS = 60.0
# The primary of this name has a certificate of a strange authority.
NAME, STRANGE_NAME = "qr", "strange"
COMMON = """\
bind 127.0.0.1
port 0
tls-port {port}
tls-cert-file {certificate}
tls-key-file {certificate}
tls-ca-cert-file {authority}
tls-auth-clients no
tls-replication yes
dir {folder}
requirepass {password}
loglevel warning
"""
SERVER = 'save ""\n'
SENTINEL = "sentinel resolve-hostnames yes\nsentinel announce-hostnames yes\n"
# Sentinel does not trust the strange one. It must not call it down before the test ends.
WATCH = """\
sentinel monitor {name} localhost {port} 1
sentinel auth-pass {name} {password}
sentinel down-after-milliseconds {name} 600000
"""


class TlsServers:
    """Two servers and a Sentinel that watches them, with certificates for `localhost`."""

    def __init__(self, folder: Path, program: str) -> None:
        self.folder, self.program, self.password = folder, program, secrets.token_hex()
        self.authority, self.strange = (self._authority(name) for name in ("own", "strange"))
        self.server, self.strange_server, self.sentinel = (ports.pick() for _ in range(3))
        self.processes: list[subprocess.Popen[bytes]] = []

    def sentinel_url(self, host: str = "localhost", name: str = NAME) -> str:
        user = f":{self.password}@{host}:{self.sentinel}"
        return f"sentinels://{user}/{name}/0?sentinel_password={self.password}"

    @property
    def redis_url(self) -> str:
        return f"rediss://:{self.password}@localhost:{self.server}/0?ssl_cert_reqs=required"

    def start(self) -> None:
        self._start(self.server, self.authority, SERVER)
        self._start(self.strange_server, self.strange, SERVER)
        watched = {NAME: self.server, STRANGE_NAME: self.strange_server}
        text = "".join(
            WATCH.format(name=name, port=port, password=self.password) for name, port in watched.items()
        )
        self._start(self.sentinel, self.authority, SENTINEL + text, "--sentinel")

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def _authority(self, name: str) -> Authority:
        folder = self.folder / name
        folder.mkdir()
        return Authority(folder)

    def _start(self, port: int, authority: Authority, more: str, *options: str) -> None:
        """Start it, and wait until it answers."""
        folder = self.folder / str(port)
        folder.mkdir()
        certificate = authority.server_file("localhost")
        text = COMMON.format(
            port=port,
            certificate=certificate,
            authority=authority.ca_file,
            folder=folder,
            password=self.password,
        )
        (folder / "server.conf").write_text(text + more)
        command = [self.program, str(folder / "server.conf"), *options]
        self.processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
        wait_until(lambda: self._answers(port, authority), START_SECONDS)

    def _answers(self, port: int, authority: Authority) -> bool:
        url = f"rediss://:{self.password}@localhost:{port}/0?ssl_ca_certs={authority.ca_file}"
        with suppress(RedisError), Redis.from_url(url, socket_timeout=2) as client:
            return bool(client.ping())
        return False


@contextmanager
def running(folder: Path) -> Iterator[TlsServers]:
    """Skips the test if no Redis or Valkey with TLS is installed."""
    program = shutil.which("valkey-server") or shutil.which("redis-server")
    if program is None:
        pytest.skip(MISSING)
    servers = TlsServers(folder, program)
    try:
        servers.start()
        yield servers
    finally:
        servers.stop()
