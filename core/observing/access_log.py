"""The access log: one JSON line for each request."""

import atexit
import fcntl
import logging
import os
import stat
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TextIO

from django.conf import settings

BUFFER_SECONDS = 0.1
MAX_FILE_BYTES = 64 * 1024 * 1024


class AccessLog:
    """Collects lines for 0.1 s and writes them together.

    A write for each line would wake the reader each time, which costs more than the line. Python's `logging`
    would take 20 µs a line.
    """

    def __init__(self, stream: "TextIO | BoundedFile") -> None:
        self.stream = stream
        self._lines: deque[str] = deque()
        self._has_lines = threading.Event()
        self._writer: threading.Thread | None = None
        self._writing = threading.Lock()

    def add(self, line: str) -> None:
        self._lines.append(line)
        if not self._has_lines.is_set():  # the writer clears it before it takes lines
            self._has_lines.set()
        # A forked process has this object without its thread.
        if self._writer is None or not self._writer.is_alive():
            self._writer = threading.Thread(target=self._run, name="access log", daemon=True)
            self._writer.start()

    def flush(self) -> None:
        """Write the lines that were added. Other threads may add some and flush meanwhile."""
        lines = []
        with self._writing:
            with suppress(IndexError):
                while True:
                    lines.append(self._lines.popleft() + "\n")
            with suppress(OSError, ValueError):  # the reader is gone
                self.stream.write("".join(lines))
                self.stream.flush()

    def _run(self) -> None:
        while self._has_lines.wait():
            time.sleep(BUFFER_SECONDS)
            self._has_lines.clear()
            self.flush()


class BoundedFile:
    """A file that several processes append to. Above 64 MB it gets the name PATH.1, and a new one begins."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("a")

    def write(self, text: str) -> None:
        if os.fstat(self._file.fileno()).st_size > MAX_FILE_BYTES:
            # If another process has begun anew already, this one goes on in the new file.
            fcntl.flock(self._file, fcntl.LOCK_EX)  # until the file is closed
            mine = os.fstat(self._file.fileno())
            if self._path.exists() and os.path.samestat(mine, self._path.stat()):
                self._path.replace(f"{self._path}.1")
            self._file.close()
            mode = stat.S_IMODE(mine.st_mode)
            self._file = open(self._path, "a", opener=lambda path, flags: os.open(path, flags, mode))  # noqa: SIM115
        self._file.write(text)

    def flush(self) -> None:
        self._file.flush()


@lru_cache(maxsize=1)
def of_this_process() -> AccessLog | None:
    """The log in ACCESS_LOG or LOG_STREAM, or None if LOG_LEVEL switches it off."""
    if logging.getLevelNamesMapping()[settings.LOG_LEVEL] > logging.INFO:
        return None
    path = settings.ACCESS_LOG
    log = AccessLog(BoundedFile(Path(path)) if path else getattr(sys, settings.LOG_STREAM))
    atexit.register(log.flush)
    return log
