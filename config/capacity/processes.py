"""The processes of production, by the same commands and settings, on the databases of the measurement."""

import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from config.capacity.databases import Addresses, Refused
from config.env import FILE_SUFFIX, OWNER_URL, SECRETS
from config.parent_process import exit_with_parent
from config.version import BASE_DIR
from config.workers import WORKERS
from core import vault

WEB, HOST = "web", "127.0.0.1"
START_SECONDS, STOP_SECONDS, LAST_LINES = 180.0, 20.0, 15
OF_DEPLOYMENT = re.compile(rf"({'|'.join(SECRETS)}|.*_URL|.*_DSN|.*_ENDPOINT)({FILE_SUFFIX})?")
# The limit of a key is never reached. With the usual burst web takes two requests from Redis at once.
FIXED = {
    "DJANGO_SETTINGS_MODULE": "config.settings", "HOST": HOST, "ALLOWED_HOSTS": HOST, "PROXY_HOPS": "0",
    "DATABASE_PREPARE": "1", "RATE_LIMIT": "1000000", "RATE_LIMIT_BURST": "200", "WEBHOOK_PROBE": "off",
    "WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8", "WEBHOOK_ALLOW_HTTP": "1", "NIGHTLY_JOBS": "",
    "STATEMENTS_DIR": "", "LOG_STREAM": "stderr", "SPEEDUP": "1",
}  # fmt: skip


def settings(databases: Addresses, redis_url: str) -> dict[str, str]:
    """Those of this deployment: no process reaches its data, banks or reports, or opens its secrets.

    BASE_URL is that of a second web server, where the workers find the sandbox bank.
    """
    kept = {name: value for name, value in os.environ.items() if not OF_DEPLOYMENT.fullmatch(name)}
    made = ("SECRET_KEY", "IDEMPOTENCY_KEYS", "SANDBOX_BANK_SECRET", "MONITORING_TOKEN")
    with socket.create_server((HOST, 0)) as one, socket.create_server((HOST, 0)) as other:
        web, bank = (each.getsockname()[1] for each in (one, other))
    return {
        **kept,
        **FIXED,
        **{name: secrets.token_urlsafe(50) for name in made},
        "FIELD_ENCRYPTION_KEYS": vault.new_key(),
        "DATABASE_URL": databases.service,
        OWNER_URL: databases.owner,
        "REDIS_URL": redis_url,
        "PORT": str(web),
        "BASE_URL": f"http://{HOST}:{bank}",
    }


class Processes:
    """Children of this process. They end with it, however it ends. Their lines go to a file."""

    def __init__(self, environ: Mapping[str, str], log: Path) -> None:
        # An installed program has its modules in a folder of their own.
        self._environ, self._log = {**environ, "PYTHONPATH": str(BASE_DIR)}, log
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Make the tables; start web, the sandbox bank, a worker of each kind and beat. Raises Refused."""
        if self._spawn("migrate").wait() != 0:
            raise Refused(f"The tables cannot be made:\n{self._last_lines()}")
        bank = {"PORT": self._environ["BASE_URL"].rpartition(":")[2], "WEB_WORKERS": "1"}
        self.running = {WEB: self._spawn("web"), "beat": self._spawn("beat")}
        self.running["bank"] = self._spawn("web", **bank)
        for name in WORKERS:
            self.running[name] = self._spawn("worker", "--queues", name, "--name", name)
        token = {"Authorization": f"Bearer {self._environ['MONITORING_TOKEN']}"}
        ready = urllib.request.Request(f"http://{HOST}:{self._environ['PORT']}/readyz", headers=token)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            with suppress(OSError), urllib.request.urlopen(ready, timeout=10):  # noqa: S310 (our own server)
                return
            self.check()
            time.sleep(0.1)
        raise Refused(f"The processes are not ready:\n{self._last_lines()}")

    def check(self) -> None:
        """Raises Refused if a process has ended."""
        for name, process in self.running.items():
            if process.poll() is not None:
                raise Refused(f"{name} ended with {process.returncode}:\n{self._last_lines()}")

    def stop(self) -> None:
        """End all at once; kill those that take too long."""
        for process in self.running.values():
            process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for process in self.running.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _spawn(self, *arguments: str, **environ: str) -> "subprocess.Popen[bytes]":
        """In a session of its own, so that Ctrl-C reaches only this process."""
        parent = os.getpid()
        with self._log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603 (our own program)
                [sys.executable, "-m", "config.command_line", *arguments],
                env={**self._environ, **environ, "PGAPPNAME": arguments[-1]},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: exit_with_parent(parent, signal.SIGKILL),  # noqa: PLW1509
            )

    def _last_lines(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-LAST_LINES:])
