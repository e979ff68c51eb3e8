"""What the request log costs of the processor time of a code."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from statistics import median, quantiles

from tests.stack import ROOT, Stack

# The second: about as many as a web worker makes in the second between two writes of the log.
TURNS, REQUESTS = 30, 300


@dataclass(frozen=True)
class LogCost:
    """Microseconds of processor time to make a code, the log included, and what the log takes (quartiles)."""

    code: float
    log: tuple[float, float, float]

    @property
    def share(self) -> float:
        return self.log[1] / self.code


def measure(stack: Stack) -> LogCost:
    """Make codes by the WSGI application in a process of its own, which uses one processor."""
    command = [sys.executable, "-m", "bench.log_driver", str(TURNS), str(REQUESTS)]
    environ = {**os.environ, **stack.environ, **stack.env, "KEY": stack.secret_key}
    turns = json.loads(subprocess.check_output(command, cwd=ROOT, env=environ, text=True))
    low, middle, high = quantiles([log for _, log in turns], n=4)
    return LogCost(median(code for code, _ in turns), (low, middle, high))
