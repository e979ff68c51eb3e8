"""Processes that are not our children: those of an earlier supervisor."""

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

POLL_SECONDS = 0.02
PROC = Path("/proc")


def command_of(pid: int) -> str | None:
    """The command line of a process, or None if there is no such process."""
    if PROC.is_dir():
        try:
            return (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except FileNotFoundError:
            return None
    command = ["ps", "-o", "command=", "-p", str(pid)]
    shown = subprocess.run(command, check=False, capture_output=True, text=True)
    return shown.stdout or None


def wait_for_end(pids: Sequence[int], seconds: float) -> None:
    """Return when none of these processes exists any more, or when the time is up."""
    deadline = time.monotonic() + seconds
    while any(_exists(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True
