"""The processes of production, started by the same commands, on the database of the measurement."""

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from config.capacity.load import NotMeasurable
from config.parent_process import exit_with_parent
from config.version import BASE_DIR
from config.workers import WORKERS

WEB, BANK, BEAT = "web", "bank", "beat"
START_SECONDS, STOP_SECONDS, POLL_SECONDS = 180.0, 20.0, 0.1
LAST_LINES = 15


class Processes:
    """Children of this process. They end with it, however it ends. Their lines go to a file."""

    def __init__(self, environ: Mapping[str, str], log: Path) -> None:
        # An installed program has its modules in a folder of their own.
        self._environ = {**environ, "PYTHONPATH": str(BASE_DIR)}
        self._log = log
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def pids(self) -> dict[str, int]:
        return {name: process.pid for name, process in self._running.items()}

    def run(self, *arguments: str) -> None:
        """Run a command of `thaiqr-server` to its end. Raises NotMeasurable."""
        if self._spawn("command", arguments, {}).wait() != 0:
            raise NotMeasurable(f"{arguments[0]} failed:\n{self._last_lines()}")

    def start(self, bank_port: int) -> None:
        """web, the sandbox bank in a web server of its own, a worker of each kind, and beat."""
        self._keep(WEB, "web")
        self._keep(BANK, "web", PORT=str(bank_port), WEB_WORKERS="1")
        for name in WORKERS:
            self._keep(name, "worker", "--queues", name, "--name", name)
        self._keep(BEAT, "beat")

    def wait_until_ready(self, port: int) -> None:
        """Wait until `/readyz` answers 200. Raises NotMeasurable."""
        token = self._environ["MONITORING_TOKEN"]
        deadline = time.monotonic() + START_SECONDS
        while not _is_ready(port, token):
            self.check()
            if time.monotonic() > deadline:
                raise NotMeasurable(f"The processes are not ready:\n{self._last_lines()}")
            time.sleep(POLL_SECONDS)

    def check(self) -> None:
        """Raises NotMeasurable if a process has ended."""
        for name, process in self._running.items():
            if process.poll() is not None:
                raise NotMeasurable(f"{name} ended with {process.returncode}:\n{self._last_lines()}")

    def stop(self) -> None:
        """End all at once; kill those that take too long."""
        for process in self._running.values():
            process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for process in self._running.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            _kill_session(process)
            process.wait()

    def _keep(self, name: str, *arguments: str, **environ: str) -> None:
        self._running[name] = self._spawn(name, arguments, environ)

    def _spawn(
        self, name: str, arguments: tuple[str, ...], environ: Mapping[str, str]
    ) -> "subprocess.Popen[bytes]":
        """In a session of its own, so that Ctrl-C reaches only this process."""
        parent = os.getpid()
        with self._log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603 (our own program)
                [sys.executable, "-m", "config.command_line", *arguments],
                env={**self._environ, **environ, "PGAPPNAME": name},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: exit_with_parent(parent, signal.SIGKILL),  # noqa: PLW1509
            )

    def _last_lines(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-LAST_LINES:])


@contextmanager
def running(environ: Mapping[str, str], log: Path) -> Iterator[Processes]:
    """Processes that end with the block."""
    made = Processes(environ, log)
    try:
        yield made
    finally:
        made.stop()


def _is_ready(port: int, token: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/readyz", headers={"Authorization": f"Bearer {token}"})
        return connection.getresponse().status == http.client.OK
    except OSError:
        return False
    finally:
        connection.close()


def _kill_session(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
