"""A whole instance, started as by `make run`, for tests that need real processes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Self

import requests

from config.devstack import ports
from config.devstack.instance import wipe
from config.env import OWNER_URL
from tests import commands, database_template

ROOT = Path(__file__).resolve().parent.parent
READY = "Thai QR Payments is running."
START_SECONDS = 180.0
STOP_SECONDS = 60.0
POLL_SECONDS = 0.05
# Settings of the test run that an instance must not inherit.
OURS = (
    "DATABASE_URL", "REDIS_URL", "BASE_URL", "SECRET_KEY", "IDEMPOTENCY_KEYS",
    "FIELD_ENCRYPTION_KEYS", "SANDBOX_BANK_SECRET", OWNER_URL,
)  # fmt: skip


class Stack:
    """An instance with its data in `folder`. Call `start` and `stop`, or use it as a context."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.port = ports.pick()
        self.base_url = f"http://127.0.0.1:{self.port}"
        self.log = folder.with_name(f"{folder.name}.log")
        inherited = {name: value for name, value in os.environ.items() if name not in OURS}
        ours = {"PORT": str(self.port), "DATA_DIR": str(folder), "ACCESS_LOG": ""}  # requests in `log`
        self.environ = {**inherited, **ours, **settings}

    @classmethod
    def on_shared_server(cls, folder: Path, **settings: str) -> Self:
        """An instance without a PostgreSQL of its own: its database is a copy of the template.

        It starts faster. Tests that kill PostgreSQL need an instance with its own.
        """
        stack = cls(folder, **settings)
        owner_url = database_template.new_database(f"instance_{stack.port}")
        stack.environ[OWNER_URL] = owner_url
        stack.environ["DATABASE_URL"] = database_template.service_url(owner_url)
        return stack

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        wipe(self.folder)

    def start(self) -> None:
        """Start it and wait until it prints that it runs: web server and workers are ready."""
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "config.devstack", "--with-parent"],
                cwd=ROOT,
                env=self.environ,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        wait_until(lambda: READY in self.log.read_text() or self.process.poll() is not None, START_SECONDS)
        assert READY in self.log.read_text(), self.log.read_text()

    def is_ready(self) -> bool:
        """Whether `/readyz` returns 200."""
        try:
            return requests.get(f"{self.base_url}/readyz", timeout=30).status_code == 200
        except requests.RequestException:
            return False

    def stop(self, number: signal.Signals = signal.SIGINT) -> float:
        """Send the signal; return how many seconds it took to end."""
        started = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(STOP_SECONDS)
        return time.monotonic() - started

    @property
    def env(self) -> dict[str, str]:
        """The settings of its processes."""
        lines = (self.folder / "instance.env").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)

    @property
    def owner_url(self) -> str:
        """The database for its owner. Web and workers have another role."""
        return self.env.get(OWNER_URL) or self.env["DATABASE_URL"]

    @property
    def demo(self) -> dict[str, str]:
        """`secret_key`, `admin_user` and `admin_password`."""
        known: dict[str, dict[str, str]] = json.loads((self.folder / "instance.json").read_text())
        return known["demo"]

    @property
    def secret_key(self) -> str:
        return self.demo["secret_key"]

    @property
    def pids(self) -> dict[str, int]:
        """Its running children by name: valkey web worker bank, and its own postgres."""
        running: dict[str, int] = json.loads((self.folder / "pids.json").read_text())
        return running

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Send a child a signal; return its pid."""
        pid = self.pids[name]
        os.kill(pid, number)
        return pid

    def restart(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """End a child by the signal and wait until it is replaced."""
        gone = self.kill(name, number)
        wait_until(lambda: self.pids.get(name, gone) != gone, STOP_SECONDS)

    def python(self) -> list[str]:
        """What runs `manage.py` quickly. The instance has started."""
        return commands.set_up(frozenset(self.environ.items()))

    def manage(self, *arguments: str, given: str = "") -> str:
        """Run a management command on this instance; return its output. Raises CalledProcessError."""
        command = [*self.python(), "manage.py", *arguments]
        try:
            return subprocess.check_output(command, cwd=ROOT, env=self.environ, text=True, input=given)
        except subprocess.CalledProcessError as error:
            error.add_note(f"It printed: {error.output}")
            raise

    def leftovers(self) -> list[int]:
        """The processes that carry this instance's folder in their environment or command line."""
        return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if self._is_ours(entry)]

    def _is_ours(self, entry: Path) -> bool:
        try:
            environ, command = (entry / "environ").read_bytes(), (entry / "cmdline").read_bytes()
        except OSError:
            return False
        is_of_tests = str(commands.FOLDER).encode() in command
        return str(self.folder).encode() in environ + command and not is_of_tests


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    """Return when the condition holds. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"still not true after {seconds:.0f} seconds")
        time.sleep(POLL_SECONDS)


def wait_for_progress(count: Callable[[], int], goal: int, seconds: float) -> None:
    """Return when `count()` is at least `goal`. Raises TimeoutError if it does not change for `seconds`."""
    while (last := count()) < goal:
        wait_until(partial(_differs, count, last), seconds)


def _differs(count: Callable[[], int], last: int) -> bool:
    return count() != last
