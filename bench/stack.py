"""An instance in a process of its own, for the benchmark and for tests."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from config.devstack import ports
from config.devstack.environment import read_env_file
from config.devstack.instance import STATE_FILE, wipe
from config.env import OWNER_URL

ROOT = Path(__file__).resolve().parents[1]
READY = "Thai QR Payments is running."
START_SECONDS = 180.0
STOP_SECONDS = 60.0
POLL_SECONDS = 0.05
# Settings of the process that starts it, which an instance must not inherit.
OURS = (
    "DATABASE_URL", "REDIS_URL", "BASE_URL", "SECRET_KEY", "IDEMPOTENCY_KEYS",
    "FIELD_ENCRYPTION_KEYS", "SANDBOX_BANK_SECRET", OWNER_URL,
)  # fmt: skip


class DetachedStack:
    """An instance with its data in `folder`. Call `start` and `stop`, or use it as a context."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.port = ports.pick()
        self.base_url = f"http://127.0.0.1:{self.port}"
        self.log = folder.with_name(f"{folder.name}.log")
        inherited = {name: value for name, value in os.environ.items() if name not in OURS}
        ours = {"PORT": str(self.port), "DATA_DIR": str(folder), "ACCESS_LOG": ""}  # requests in `log`
        self.environ = {**inherited, **ours, **settings}

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
        return read_env_file(self.folder)

    @property
    def owner_url(self) -> str:
        """The database for its owner. Web and workers have another role."""
        return self.env.get(OWNER_URL) or self.env["DATABASE_URL"]

    @property
    def demo(self) -> dict[str, str]:
        """`secret_key`, `admin_user`, `owner_user` and `admin_password`, which both have."""
        known: dict[str, dict[str, str]] = json.loads((self.folder / STATE_FILE).read_text())
        return known["demo"]

    @property
    def pids(self) -> dict[str, int]:
        """Its running children by name: valkey web worker bank, and its own postgres."""
        running: dict[str, int] = json.loads((self.folder / "pids.json").read_text())
        return running

    def python(self) -> list[str]:
        """What runs `manage.py`."""
        return [sys.executable]

    def manage(self, *arguments: str, given: str = "") -> str:
        """Run a management command on this instance; return its output. Raises CalledProcessError."""
        command = [*self.python(), "manage.py", *arguments]
        try:
            return subprocess.check_output(command, cwd=ROOT, env=self.environ, text=True, input=given)
        except subprocess.CalledProcessError as error:
            error.add_note(f"It printed: {error.output}")
            raise


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    """Return when the condition holds. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"still not true after {seconds:.0f} seconds")
        time.sleep(POLL_SECONDS)
