"""Processor time of a server with its workers: what a request costs, however busy the machine is."""

import os
from pathlib import Path

PROC = Path("/proc")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float | None:
    """Used so far by the process and its descendants; None where /proc is not Linux's."""
    if not (PROC / "self" / "stat").exists():
        return None
    known = {int(entry.name): _read(entry) for entry in PROC.glob("[0-9]*")}
    return sum(known[each][1] for each in _family(pid, known)) / TICKS_PER_SECOND


def _read(entry: Path) -> tuple[int, int]:
    """Parent and ticks, with those of children that ended; see proc_pid_stat(5).

    The name in parentheses may hold anything.
    """
    try:
        fields = (entry / "stat").read_text().rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0
    return int(fields[1]), sum(map(int, fields[11:15]))


def _family(pid: int, known: dict[int, tuple[int, int]]) -> set[int]:
    family, size = {pid}, 0
    while size < len(family):
        size = len(family)
        family |= {each for each, (parent, _) in known.items() if parent in family}
    return family
