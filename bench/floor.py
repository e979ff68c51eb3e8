"""The floor of whole lives: pgbench repeats their statements in a database of its own on the same server.

No worker uses that database, so nothing else takes the deliveries.
"""

import json
import subprocess
import sys
from pathlib import Path

from bench import pgbench
from bench.load import NotMeasurable
from bench.replay import Life, Script
from tests import database_template
from tests.stack import ROOT, Stack

# New sessions plan each statement several times.
WARM_UP_SECONDS = 3


class Floor:
    """The database with its shops, and the script of one life. Each client of pgbench is a shop."""

    def __init__(self, stack: Stack, folder: Path, clients: int) -> None:
        """Record the life. Raises CalledProcessError."""
        self._clients = clients
        server_url = stack.owner_url
        self.database_url = f"{server_url.rpartition('/')[0]}/{database_template.create(server_url)}"
        script = Script(self._record(stack))
        self._variables, self._path = script.variables, folder / "life.sql"
        self._path.write_text(script.text)

    def _record(self, stack: Stack) -> Life:
        environ = {**stack.environ, **stack.env, "DATABASE_URL": self.database_url, "WEBHOOK_PROBE": "off"}
        command = [sys.executable, "-m", "bench.recorder", str(self._clients)]
        recorded = subprocess.check_output(
            command, cwd=ROOT, env=environ, stderr=subprocess.DEVNULL, text=True
        )
        return Life.from_json(json.loads(recorded))

    def run(self, seconds: float) -> pgbench.WarmRun:
        """Raises NotMeasurable."""
        try:
            return pgbench.run_warm(
                self.database_url,
                self._path,
                connections=self._clients,
                warm_up=WARM_UP_SECONDS,
                seconds=seconds,
                variables=self._variables,
            )
        except subprocess.CalledProcessError as error:
            raise NotMeasurable(f"pgbench: {error.stderr}") from None
