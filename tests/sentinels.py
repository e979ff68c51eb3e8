"""A real Valkey with a replica, and three Sentinels that watch them."""

import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import redis
from redis.sentinel import MasterNotFoundError

from config.devstack import ports
from config.devstack.valkey import find_server
from core.work.redis_urls import SentinelUrl
from tests.stack import wait_until

NAME = "qr"
START_SECONDS = 60.0
DOWN_AFTER_MS = 2000
SERVER = """\
bind 127.0.0.1
port {port}
dir {folder}
requirepass {password}
masterauth {password}
appendonly no
save ""
repl-diskless-sync-delay 0
loglevel warning
"""
SENTINEL = """\
bind 127.0.0.1
port {port}
dir {folder}
requirepass {sentinel_password}
sentinel sentinel-pass {sentinel_password}
sentinel monitor {name} 127.0.0.1 {primary} 2
sentinel auth-pass {name} {password}
sentinel down-after-milliseconds {name} {down_after}
sentinel failover-timeout {name} 10000
loglevel warning
"""


class Sentinels:
    """The processes, by their ports: two servers, and three Sentinels."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.password, self.sentinel_password = secrets.token_hex(), secrets.token_hex()
        self.first, self.second, *self.sentinels = (ports.pick() for _ in range(5))
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.sentinels)
        return f"sentinel://:{self.password}@{hosts}/{NAME}/1?sentinel_password={self.sentinel_password}"

    def start(self) -> None:
        """Start all, and wait until each Sentinel knows the replica and the other Sentinels."""
        self.start_server(self.first)
        self.start_server(self.second, f"replicaof 127.0.0.1 {self.first}\n")
        for port in self.sentinels:
            self._start(port, SENTINEL, "", "--sentinel")
        wait_until(self._is_complete, START_SECONDS)

    def start_server(self, port: int, more: str = "") -> None:
        self._start(port, SERVER, more)

    def kill(self, port: int) -> None:
        self.processes[port].kill()
        self.processes[port].wait()

    def primary(self) -> int:
        """The port of the server that Sentinel calls the primary; 0 for none."""
        try:
            found: Any = SentinelUrl.parse(self.url).sentinels(2)
            return int(found.discover_master(NAME)[1])
        except MasterNotFoundError:
            return 0

    def stop(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()

    def _start(self, port: int, text: str, more: str, *options: str) -> None:
        folder = self.folder / str(port)
        folder.mkdir(parents=True, exist_ok=True)
        values = {
            "folder": folder, "port": port, "name": NAME, "primary": self.first, "down_after": DOWN_AFTER_MS,
            "password": self.password, "sentinel_password": self.sentinel_password,
        }  # fmt: skip
        (folder / "server.conf").write_text(text.format(**values) + more)
        command = [find_server(), str(folder / "server.conf"), *options]
        self.processes[port] = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def _is_complete(self) -> bool:
        with suppress(redis.RedisError):
            sentinels: list[Any] = SentinelUrl.parse(self.url).sentinels(2).sentinels
            states = [each.sentinel_master(NAME) for each in sentinels]
            return all(each["num-slaves"] == 1 and each["num-other-sentinels"] == 2 for each in states)
        return False


@contextmanager
def running(folder: Path) -> Iterator[Sentinels]:
    sentinels = Sentinels(folder)
    try:
        sentinels.start()
        yield sentinels
    finally:
        sentinels.stop()
