"""Faults of machines: processes that end or freeze, and connections that break."""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from random import Random

import psycopg

from tests.stack import Stack

PARTS = ("web", "worker", "bank")
SERVERS = ("valkey", "postgres")
FREEZE_SECONDS = 3.0
# PostgreSQL and Valkey start again from their files, which takes some seconds.
SERVER_SHARE = 0.05
CONNECTION_SHARE = 0.5
BREAK_CONNECTIONS = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
      AND random() < %s"""


class Faults:
    """Causes one fault after the other, in the order of `chance`. done: how many of each kind."""

    def __init__(self, machines: Sequence[Stack], chance: Random, pause: float) -> None:
        self.machines, self.chance, self.pause = machines, chance, pause
        self.done: Counter[str] = Counter()
        self._stopping = threading.Event()

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Cause faults during the block."""
        with ThreadPoolExecutor(1) as pool:
            run = pool.submit(self._run)
            try:
                yield
            finally:
                self._stopping.set()
            run.result()

    def _run(self) -> None:
        while not self._stopping.wait(self.chance.uniform(0, 2 * self.pause)):
            name, cause = self._next()
            # A process may just be replaced, and PostgreSQL may be down. Then there is no fault to count.
            with suppress(ProcessLookupError, KeyError, psycopg.OperationalError):
                cause()
                self.done[name] += 1

    def _next(self) -> tuple[str, Callable[[], object]]:
        if self.chance.random() < SERVER_SHARE:
            server = self.chance.choice(SERVERS)
            return f"kill {server}", lambda: self.machines[0].kill(server)
        machine, part = self.chance.choice(self.machines), self.chance.choice(PARTS)
        kind = self.chance.choice(("kill", "stop", "freeze", "break connections"))
        causes: dict[str, Callable[[], object]] = {
            "kill": lambda: machine.kill(part),
            "stop": lambda: machine.kill(part, signal.SIGTERM),
            "freeze": lambda: self._freeze(machine.pids[part]),
            "break connections": self._break_connections,
        }
        return (kind if kind == "break connections" else f"{kind} {part}"), causes[kind]

    def _freeze(self, pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(self.chance.uniform(0, FREEZE_SECONDS))
        finally:
            os.kill(pid, signal.SIGCONT)

    def _break_connections(self) -> None:
        with psycopg.connect(self.machines[0].owner_url, autocommit=True, connect_timeout=5) as connection:
            connection.execute(BREAK_CONNECTIONS, [CONNECTION_SHARE])
