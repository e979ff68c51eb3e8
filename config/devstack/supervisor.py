"""Keeps programs running in one thread. The end of a child, a line of output or a tick wakes it.

Its output is printed without waiting for the reader, because a slow reader must not stop the service.
"""

import json
import os
import select
import selectors
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from config.devstack import StartError
from config.devstack.instance import write_private
from config.devstack.programs import Program

TICK_SECONDS = 0.2
SHORT_TICK_SECONDS = 0.02
COMMAND_SECONDS = 600.0
# The pause before a restart. It doubles each time, until a child runs for STABLE_SECONDS.
FIRST_RESTART_SECONDS, MAX_RESTART_SECONDS, STABLE_SECONDS = 0.2, 10.0, 10.0
READ_BYTES = 4096
# A pipe that is ready for writing takes this much at once (PIPE_BUF, pipe(7)).
PIPE_BYTES = 4096
NAME_WIDTH = 8


class StopRequestedError(Exception):
    """Ctrl-C, a termination signal or a closed terminal."""


def print_line(name: str, text: str) -> None:
    print_text(f"{name:<{NAME_WIDTH}} | {text}")


def print_text(text: str) -> None:
    """Print a text, or as much of it as the reader takes."""
    rest, output = f"{text}\n".encode(), sys.stdout.fileno()
    with suppress(OSError):
        while rest and select.select([], [output], [], 0)[1]:
            rest = rest[os.write(output, rest[:PIPE_BYTES]) :]


class ChildProcess:
    """A program that was started and, if it is a service, is started again when it ends."""

    def __init__(self, program: Program, selector: selectors.BaseSelector) -> None:
        self.program, self.selector = program, selector
        self.partial_line, self.pause = b"", FIRST_RESTART_SECONDS
        self.start()

    def start(self) -> None:
        self.process, self.restarts_at = self.program.spawn(), 0.0
        self.started_at = time.monotonic()
        assert self.process.stdout is not None and self.process.pid is not None  # it writes to a pipe
        self.pid, self.output = self.process.pid, self.process.stdout.fileno()
        os.set_blocking(self.output, False)
        self.selector.register(self.output, selectors.EVENT_READ, self)

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def relay(self) -> None:
        """Print its new output lines with its name."""
        with suppress(BlockingIOError):
            while chunk := os.read(self.output, READ_BYTES):
                *lines, self.partial_line = (self.partial_line + chunk).split(b"\n")
                for line in lines if not self.program.is_silent else ():
                    print_line(self.program.name, line.decode(errors="replace"))

    def clean_up(self) -> None:
        """Clean up after its end: print the last output, kill its session, and plan the next start."""
        self.selector.unregister(self.output)
        self.relay()
        self.signal_session(signal.SIGKILL)
        if self.process.stdout is not None:
            self.process.stdout.close()
        now = time.monotonic()
        if now - self.started_at > STABLE_SECONDS:
            self.pause = FIRST_RESTART_SECONDS
        self.restarts_at = now + self.pause
        self.pause = min(self.pause * 2, MAX_RESTART_SECONDS)

    def signal_session(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


class Supervisor:
    """Starts programs and starts them again when they end; stops them in the opposite order."""

    def __init__(self, pids: Path) -> None:
        self.pids = pids
        self.children: list[ChildProcess] = []
        self.selector = selectors.DefaultSelector()
        self.stop_requested = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # Under nohup a closed terminal does not stop the instance.
            if signal.getsignal(number) is not signal.SIG_IGN or number != signal.SIGHUP:
                signal.signal(number, self._on_stop)

    def _on_stop(self, *_: object) -> None:
        self.stop_requested = True

    def keep(self, program: Program) -> None:
        """Start a service and keep it running from now on."""
        self.children.append(ChildProcess(program, self.selector))
        self._write_pids()

    def run(self, program: Program) -> None:
        """Run a program to its end. Raises StartError if it fails."""
        child = ChildProcess(program, self.selector)
        try:
            self.wait_until(lambda: not child.running, COMMAND_SECONDS, program.name)
        finally:
            child.clean_up()
        if child.process.returncode:
            raise StartError(f"{program.name} failed; see its lines above.")

    def wait_until(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        """Keep everything running until the condition holds. Raises StartError when time is up."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise StartError(f"{what} did not answer in {seconds:.0f} seconds.")
            self.run_once(SHORT_TICK_SECONDS)

    def run_once(self, seconds: float = TICK_SECONDS) -> None:
        """Run one round: print output, clean up ended children, start those whose pause is over."""
        self._relay(seconds)
        if self.stop_requested:
            raise StopRequestedError
        for child in self.children:
            if not child.running and not child.restarts_at:
                print_line(child.program.name, f"ended with {child.process.returncode}, starts again")
                child.clean_up()
            elif child.restarts_at and time.monotonic() >= child.restarts_at:
                child.start()
                self._write_pids()

    def _relay(self, seconds: float) -> None:
        for key, _ in self.selector.select(seconds):
            key.data.relay()

    def stop(self) -> None:
        """Stop everything: first the users of the datastores, then the datastores."""
        self._stop([child for child in self.children if not child.program.is_datastore])
        self._stop([child for child in self.children if child.program.is_datastore])
        self.pids.unlink(missing_ok=True)

    def _stop(self, children: list[ChildProcess]) -> None:
        running = [child for child in children if child.running]
        for child in running:
            child.process.send_signal(child.program.stop_signal)
        began = time.monotonic()
        while any(each.running and time.monotonic() - began < each.program.stop_seconds for each in running):
            self._relay(SHORT_TICK_SECONDS)
        for child in running:
            child.signal_session(signal.SIGKILL)
            child.process.wait()

    def _write_pids(self) -> None:
        """Write the running children as {name: pid}, for tools and tests."""
        running = {child.program.name: child.pid for child in self.children if child.running}
        write_private(self.pids, json.dumps(running))
