"""Programs that unpack files of strangers, within one budget of memory for all of a machine.

A small file can unpack to any size and time, and a decoder in a thread cannot be stopped. So each is a
process, with the limits of its place. A place is the lock of a file that all processes of the machine share:
it has one decoder at a time.
"""

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from core.deadlines import Deadline

LIMITED = Path(__file__).with_name("limited_program.py")
LOCKS = Path(tempfile.gettempdir())
POLL_SECONDS = 0.1
# How the system ends a program that is over a limit.
KILLED = {-signal.SIGXCPU, -signal.SIGKILL, -signal.SIGABRT}


class DecoderFailed(Exception):
    """It ended without an answer. is_over_limit: it took too much time or memory."""

    def __init__(self, *, is_over_limit: bool) -> None:
        super().__init__()
        self.is_over_limit = is_over_limit


@dataclass(slots=True)
class Place:
    """A part of the budget. memory_bytes: of addresses, also of libraries. timeout: for a busy machine.

    wait_seconds: how long a decoder waits for another one to end.
    """

    name: str
    memory_bytes: int
    cpu_seconds: int
    timeout_seconds: float
    printed_bytes: int
    wait_seconds: float = 0.0

    @contextmanager
    def taken(self) -> Iterator[int]:
        """Hold the lock. Raises BlockingIOError if another one has it for all of the wait."""
        path = LOCKS / f"thaiqr-{os.getuid()}-{self.name}.lock"
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            # `flock` itself waits without a limit.
            deadline = Deadline.after(self.wait_seconds)
            while not deadline.is_past:
                with suppress(BlockingIOError):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                time.sleep(POLL_SECONDS)
            else:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield lock
        finally:
            os.close(lock)


# Payers do not keep staff waiting. A photograph takes 126 MB and 0.6 s.
PICTURE_OF_STAFF = Place("picture-of-staff", 200_000_000, 3, 8.0, 1_000_000)
PICTURE_OF_PAYER = Place("picture-of-payer", 200_000_000, 3, 8.0, 1_000_000)
# 100,000 rows of ten columns take 170 MB and 2 s, of twenty columns 327 MB. Most are read within the wait.
WORKBOOK = Place("workbook", 350_000_000, 20, 60.0, 200_000_000, wait_seconds=15.0)
# In the place of payers: a program waits a little, and a person tries again.
PICTURE_OF_MERCHANT = replace(PICTURE_OF_PAYER, wait_seconds=5.0)
BUDGET = (PICTURE_OF_STAFF, PICTURE_OF_PAYER, WORKBOOK)
"""All places of a machine. The chart counts them for each pod."""


def run(program: Path, place: Place, source: IO[bytes], printed: IO[bytes]) -> None:
    """Run the decoder to its end. Raises BlockingIOError if the place stays taken, and DecoderFailed.

    It gets none of our settings, and its errors, which may quote the file, go nowhere. It has the lock too,
    so it keeps it if this process is killed.
    """
    limits = (place.memory_bytes, place.cpu_seconds, place.printed_bytes)
    command = [sys.executable, "-I", str(LIMITED), str(program), *map(str, limits)]
    with place.taken() as lock:
        try:
            subprocess.run(  # noqa: S603 (our own program)
                command, stdin=source, stdout=printed, stderr=subprocess.DEVNULL, env={},
                pass_fds=(lock,), timeout=place.timeout_seconds, check=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise DecoderFailed(is_over_limit=True) from None
        except subprocess.CalledProcessError as error:
            raise DecoderFailed(is_over_limit=error.returncode in KILLED) from None
