"""Processor time and memory of a process with all that it started, by the /proc of Linux."""

import os
from pathlib import Path

PROC = Path("/proc")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Processor seconds, also of processes that have ended."""
    processes = _processes()
    return sum(processes[each][1] for each in _family(pid, processes)) / TICKS_PER_SECOND


def megabytes(pid: int) -> float:
    """Memory as Pss: pages that processes share count in parts."""
    return sum(map(_pss, _family(pid, _processes()))) / 1024  # from kilobytes


def _processes() -> dict[int, tuple[int, int]]:
    """Parent and ticks by process, see proc_pid_stat(5). The name of a process may contain spaces."""
    found = {}
    for entry in PROC.glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(") ")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        found[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    return found


def _family(pid: int, processes: dict[int, tuple[int, int]]) -> set[int]:
    family, size = {pid} & processes.keys(), 0
    while size < len(family):
        size = len(family)
        family |= {each for each, (parent, _) in processes.items() if parent in family}
    return family


def _pss(pid: int) -> int:
    try:
        lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
