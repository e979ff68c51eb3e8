"""A whole instance, started as by `make run`, for tests that need real processes."""

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Self

import requests

from bench.stack import ROOT, STOP_SECONDS, DetachedStack, wait_until
from config.env import OWNER_URL
from tests import commands, database_template

__all__ = ["ROOT", "STOP_SECONDS", "Stack", "wait_for_progress", "wait_until"]


class Stack(DetachedStack):
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

    def is_ready(self) -> bool:
        """Whether `/readyz` returns 200."""
        try:
            return requests.get(f"{self.base_url}/readyz", timeout=30).status_code == 200
        except requests.RequestException:
            return False

    @property
    def secret_key(self) -> str:
        return self.demo["secret_key"]

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


def wait_for_progress(count: Callable[[], int], goal: int, seconds: float) -> None:
    """Return when `count()` is at least `goal`. Raises TimeoutError if it does not change for `seconds`."""
    while (last := count()) < goal:
        wait_until(partial(_differs, count, last), seconds)


def _differs(count: Callable[[], int], last: int) -> bool:
    return count() != last
