"""Memory, processor time and start of an idle instance, as `make run` starts it. Linux only."""

import time
from contextlib import suppress
from pathlib import Path
from timeit import timeit

import psutil

from bench.rounds import log, table
from bench.stack import DetachedStack
from config.capacity.figures import POSTGRES, Processors

SETTLE_SECONDS, IDLE_SECONDS = 10.0, 20.0


def measure(folder: Path) -> str:
    """Start an instance in an empty folder, then again, and leave it idle; return the table."""
    log("Starting an instance twice, and leaving it idle ...")
    stack = DetachedStack(folder)
    first = timeit(stack.start, number=1)
    stack.stop()
    second = timeit(stack.start, number=1)
    try:
        time.sleep(SETTLE_SECONDS)
        pids = [stack.process.pid, *stack.pids.values()]
        with Processors(stack.owner_url, dict.fromkeys(pids, "others")).watching() as cores:
            time.sleep(IDLE_SECONDS)
        sizes = {name: _megabytes(pid) for name, pid in {**stack.pids, "all": stack.process.pid}.items()}
    finally:
        stack.stop()
    rows = [
        *((f"{name}, MB (Pss)", size) for name, size in sizes.items()),
        ("processor, % of a core", 100 * (cores["others"] + cores[POSTGRES])),
        ("first start, s", first),
        ("second start, s", second),
    ]
    return table(["an idle instance", ""], rows)


def _megabytes(pid: int) -> float:
    """Memory of a process with all that it started, as Pss: pages that processes share count in parts."""
    process, found = psutil.Process(pid), 0
    for each in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # it has ended
            found += each.memory_full_info().pss
    return found / 1024**2
