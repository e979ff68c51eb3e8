"""A child process that runs a function in a copy of this one.

The supervisor has imported the application, so a child starts at once and shares the memory of the code.
"""

import os
import signal
from collections.abc import Callable
from multiprocessing.context import ForkProcess

from config.parent_process import exit_with_parent

FIRST_OTHER_FILE, LAST_FILE = 3, 65_536


class ForkedProcess(ForkProcess):
    """Has what the supervisor uses of `subprocess.Popen`. `target` is the whole program."""

    def __init__(self, target: Callable[[], object], orphan_signal: signal.Signals) -> None:
        super().__init__(target=target)
        self.orphan_signal, self.supervisor = orphan_signal, os.getpid()
        reader, self.output = os.pipe()
        self.start()
        os.close(self.output)
        self.stdout = os.fdopen(reader, "rb", buffering=0)

    def run(self) -> None:
        """Leave the session, the files (with the lock of the folder) and the signals of the supervisor."""
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        for source, place in ((null, 0), (self.output, 1), (self.output, 2)):
            os.dup2(source, place)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.closerange(FIRST_OTHER_FILE, LAST_FILE)
        exit_with_parent(self.supervisor, self.orphan_signal)
        super().run()

    @property
    def returncode(self) -> int | None:
        return self.exitcode

    def poll(self) -> int | None:
        return self.exitcode

    def wait(self) -> None:
        self.join()

    def send_signal(self, number: int) -> None:
        if self.pid is not None and self.is_alive():
            os.kill(self.pid, number)
