"""An instance whose web, workers and beat reach `DATABASE_URL` by a real PgBouncer in transaction mode.

A version that follows prepared statements does.
"""

import os
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from signal import SIGINT, Signals

from config.env import OWNER_URL
from tests import pgbouncer
from tests.commands import warm
from tests.stack import ROOT, Stack


class PooledStack(Stack):
    """The owner, who migrates, has a direct connection.

    Make it by `on_shared_server`, or give both `DATABASE_URL` and `MIGRATION_DATABASE_URL`.
    """

    def start(self) -> None:
        self.pooler = ExitStack()
        folder = self.pooler.enter_context(tempfile.TemporaryDirectory(prefix="pooler-"))
        Path(folder).chmod(0o711)  # PgBouncer does not run as root
        direct = self.environ["DATABASE_URL"]
        self._set_role_limits(direct)
        follows = {"max_prepared_statements": "200"} if pgbouncer.follows_statements() else {}
        url = self.pooler.enter_context(
            pgbouncer.in_front_of(direct, Path(folder) / "pgbouncer", default_pool_size="10", **follows)
        )
        self.environ |= {"DATABASE_URL": url, "DATABASE_PREPARE": "pooler" if follows else "0"}
        super().start()

    def stop(self, number: Signals = SIGINT) -> float:
        with self.pooler:
            return super().stop(number)

    def _set_role_limits(self, direct: str) -> None:
        settings = {**os.environ, "DATABASE_URL": direct, OWNER_URL: self.environ[OWNER_URL]}
        command = [*warm(), "manage.py", "set_role_limits"]
        subprocess.run(command, cwd=ROOT, env=settings, check=True, stdout=subprocess.DEVNULL)
