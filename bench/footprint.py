"""Memory, processor time and start of an idle instance, as `make run` starts it. Linux only."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import processors
from bench.load import NotMeasurable
from tests.stack import Stack

SETTLE_SECONDS, IDLE_SECONDS = 10.0, 20.0
KILOBYTES_PER_MEGABYTE = 1024


@dataclass(frozen=True)
class Footprint:
    """Seconds until it runs, megabytes (Pss) by process name, and the processor time as a share of a core."""

    first_start: float
    second_start: float
    memory: dict[str, float]
    processor: float


def measure(folder: Path) -> Footprint:
    """Start an instance in an empty folder, then again, and leave it idle. Raises NotMeasurable."""
    stack = Stack(folder)
    first = _start(stack)
    stack.stop()
    second = _start(stack)
    try:
        time.sleep(SETTLE_SECONDS)
        before = _processor_seconds(stack)
        time.sleep(IDLE_SECONDS)
        after = _processor_seconds(stack)
        return Footprint(first, second, dict(_memory(stack)), (after - before) / IDLE_SECONDS)
    finally:
        stack.stop()


def _start(stack: Stack) -> float:
    started = time.monotonic()
    stack.start()
    return time.monotonic() - started


def _processor_seconds(stack: Stack) -> float:
    seconds = processors.cpu_seconds(stack.process.pid)
    if seconds is None:
        raise NotMeasurable("the footprint needs the /proc of Linux")
    return seconds


def _memory(stack: Stack) -> Iterator[tuple[str, float]]:
    """Shared pages count in parts (Pss), so the sum is the memory that the instance takes."""
    children = stack.pids
    of_children = {name: family_memory(pid) for name, pid in children.items()}
    yield "supervisor", family_memory(stack.process.pid) - sum(of_children.values())
    yield from of_children.items()


def family_memory(pid: int, kind: str = "Pss") -> float:
    """Megabytes of a process and its descendants. kind: a line of smaps_rollup, see proc_pid_smaps(5)."""
    return sum(_pss(each, kind) for each in processors.family(pid))


def _pss(pid: int, kind: str) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:")) / KILOBYTES_PER_MEGABYTE
