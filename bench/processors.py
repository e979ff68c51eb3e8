"""The processor time of a process with all that it started."""

import os
from pathlib import Path

PROC = Path("/proc")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float | None:
    """Processor seconds of the process and its descendants. None if there is no /proc of Linux."""
    if not (PROC / "self" / "stat").exists():
        return None
    known = _processes()
    return sum(known[each][1] for each in _family(pid, known)) / TICKS_PER_SECOND


def family(pid: int) -> set[int]:
    """The process and its descendants."""
    return _family(pid, _processes())


def _processes() -> dict[int, tuple[int, int]]:
    return {int(entry.name): _read(entry) for entry in PROC.glob("[0-9]*")}


def _read(entry: Path) -> tuple[int, int]:
    """Parent and ticks, including ended children; see proc_pid_stat(5). The name may contain spaces."""
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
