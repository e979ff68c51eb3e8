"""Memory, processor time and start of an idle instance, as `make run` starts it. Linux only."""

import time
from pathlib import Path

from bench import processors
from bench.rounds import log, table
from config.devstack.detached import DetachedStack

SETTLE_SECONDS, IDLE_SECONDS = 10.0, 20.0


def measure(folder: Path) -> str:
    """Start an instance in an empty folder, then again, and leave it idle; return the table."""
    log("Starting an instance twice, and leaving it idle ...")
    stack = DetachedStack(folder)
    first = _start(stack)
    stack.stop()
    second = _start(stack)
    try:
        time.sleep(SETTLE_SECONDS)
        before = processors.cpu_seconds(stack.process.pid)
        time.sleep(IDLE_SECONDS)
        used = processors.cpu_seconds(stack.process.pid) - before
        children = {name: processors.megabytes(pid) for name, pid in stack.pids.items()}
        whole = processors.megabytes(stack.process.pid)
    finally:
        stack.stop()
    rows = [
        ("supervisor, MB", whole - sum(children.values())),
        *((f"{name}, MB", size) for name, size in children.items()),
        ("memory (Pss), MB", whole),
        ("processor, % of a core", 100 * used / IDLE_SECONDS),
        ("first start, s", first),
        ("second start, s", second),
    ]
    return table(["an idle instance", ""], rows)


def _start(stack: DetachedStack) -> float:
    started = time.monotonic()
    stack.start()
    return time.monotonic() - started
