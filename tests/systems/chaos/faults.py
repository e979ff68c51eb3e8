"""Faults of machines: processes that end or freeze, and connections that break."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random

import psycopg

from config.workers import WORKERS
from tests.patroni import Cluster
from tests.stack import Stack

PARTS = ("web", *WORKERS, "beat", "bank")
FREEZE_SECONDS = 3.0
# How long a server of PostgreSQL is away: the other one takes over after about 20 s.
NODE_SECONDS = 30.0
# PostgreSQL and Valkey start again from their files, which takes some seconds, so they end rarely.
SERVER_SHARE = 0.05
CONNECTION_SHARE = 0.5
BREAK_CONNECTIONS = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
      AND random() < %s"""


class Faults:
    """Causes one fault after the other, in the order of `chance`. done: how many of each kind."""

    def __init__(self, machines: Sequence[Stack], cluster: Cluster, chance: Random, pause: float) -> None:
        self.machines, self.cluster, self.chance, self.pause = machines, cluster, chance, pause
        self.done: Counter[str] = Counter()

    def cause_next(self) -> None:
        """Wait for a random time, and cause a fault.

        Call it in the main thread: a server ends with the thread that started it.
        """
        time.sleep(self.chance.uniform(0, 2 * self.pause))
        name, cause = self._next()
        # A process may just be replaced, and no server may be the primary. Then there is no fault to count.
        with suppress(ProcessLookupError, KeyError, psycopg.OperationalError):
            cause()
            self.done[name] += 1

    def _next(self) -> tuple[str, Callable[[], object]]:
        if self.chance.random() < SERVER_SHARE:
            return self.chance.choice(
                [("kill valkey", self._kill_valkey), ("kill postgres", self._kill_node)]
            )
        machine, part = self.chance.choice(self.machines), self.chance.choice(PARTS)
        kind = self.chance.choice(("kill", "stop", "freeze", "break connections"))
        causes: dict[str, Callable[[], object]] = {
            "kill": lambda: machine.kill(part),
            "stop": lambda: machine.kill(part, signal.SIGTERM),
            "freeze": lambda: self._freeze(machine.pids[part]),
            "break connections": self._break_connections,
        }
        return (kind if kind == "break connections" else f"{kind} {part}"), causes[kind]

    def _kill_valkey(self) -> None:
        self.machines[0].kill("valkey")

    def _kill_node(self) -> None:
        """Kill the primary or the standby, and start it again. The other one may have taken over then."""
        node = self.chance.choice(self.cluster.nodes)
        node.kill()
        time.sleep(self.chance.uniform(0, NODE_SECONDS))
        self.cluster.start(node)

    def _freeze(self, pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(self.chance.uniform(0, FREEZE_SECONDS))
        finally:
            os.kill(pid, signal.SIGCONT)

    def _break_connections(self) -> None:
        with psycopg.connect(self.cluster.owner_url, autocommit=True, connect_timeout=5) as connection:
            connection.execute("SELECT setseed(%s)", [self.chance.random()])
            connection.execute(BREAK_CONNECTIONS, [CONNECTION_SHARE])
