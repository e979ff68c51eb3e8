"""One running program: its output, its end and its next start."""

import os
import signal
import time
from contextlib import suppress

from config.devstack.output import print_line
from config.devstack.programs import Program

FIRST_RESTART_SECONDS = 0.2
MAX_RESTART_SECONDS = 10.0
# A child that lived this long starts again at once.
STABLE_SECONDS = 10.0
CHUNK_BYTES = 4096


class ChildProcess:
    """A program that was started and, if it is a service, is started again when it ends."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.pause = FIRST_RESTART_SECONDS
        self.next_start = 0.0
        self.partial_line = b""
        self.captured: list[str] = []
        self.start()

    def start(self) -> None:
        self.process = self.program.spawn()
        self.started = time.monotonic()
        if self.process.stdout is None:
            raise AssertionError("programs write to a pipe")
        self.output = self.process.stdout.fileno()
        os.set_blocking(self.output, False)

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def relay(self) -> None:
        """Pass on what it has written, each line under its name."""
        with suppress(BlockingIOError):
            while chunk := os.read(self.output, CHUNK_BYTES):
                *lines, self.partial_line = (self.partial_line + chunk).split(b"\n")
                for line in lines:
                    self._pass_on(line.decode(errors="replace"))

    def _pass_on(self, line: str) -> None:
        if self.program.is_captured:
            self.captured.append(line)
        else:
            print_line(self.program.name, line)

    def clean_up(self) -> None:
        """After its end: the last output, what it left behind in its session, and when to try again."""
        self.relay()
        self.signal_session(signal.SIGKILL)
        if self.process.stdout is not None:
            self.process.stdout.close()
        uptime = time.monotonic() - self.started
        self.pause = (
            FIRST_RESTART_SECONDS if uptime > STABLE_SECONDS else min(self.pause * 2, MAX_RESTART_SECONDS)
        )
        self.next_start = time.monotonic() + self.pause

    def signal_session(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)
