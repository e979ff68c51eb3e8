"""What the request log costs: codes made with it and without it, in turn in one process."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from statistics import median, quantiles

from tests.stack import ROOT, Stack

# The second: about as many as a web worker makes in the second between two writes of the log.
PAIRS, REQUESTS = 100, 300


@dataclass(frozen=True)
class LogCost:
    """Microseconds of processor time to make a code without the log, and what the log adds (quartiles)."""

    without: float
    added: tuple[float, float, float]

    @property
    def share(self) -> float:
        return self.added[1] / self.without


def measure(stack: Stack) -> LogCost:
    """Make codes by the WSGI application in a process of its own, which uses one processor."""
    command = [sys.executable, "-m", "bench.log_driver", str(PAIRS), str(REQUESTS)]
    environ = {**os.environ, **stack.environ, **stack.env, "KEY": stack.secret_key}
    pairs = json.loads(subprocess.check_output(command, cwd=ROOT, env=environ, text=True))
    low, middle, high = quantiles([with_log - without for with_log, without in pairs], n=4)
    return LogCost(median(without for _, without in pairs), (low, middle, high))
