"""A child process that runs a function in a copy of this one.

The supervisor has imported the application, so a child starts at once and shares the memory of the code.
"""

import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

from config.parent_process import exit_with_parent

FIRST_OTHER_FILE, LAST_FILE = 3, 65_536
DEFAULT_SIGNALS = (signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP)


class ForkedProcess:
    """Has what the supervisor uses of `subprocess.Popen`. `target` is the whole program."""

    def __init__(self, target: Callable[[], object], orphan_signal: signal.Signals) -> None:
        parent = os.getpid()
        reader, writer = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _run(target, writer, parent, orphan_signal)
        os.close(writer)
        self.stdout = os.fdopen(reader, "rb", buffering=0)
        self.returncode: int | None = None

    def poll(self, options: int = os.WNOHANG) -> int | None:
        """The exit code, or None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self) -> int | None:
        return self.poll(0)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def _run(target: Callable[[], object], output: int, parent: int, orphan_signal: signal.Signals) -> NoReturn:
    code = 1
    try:
        _leave_supervisor(output, parent, orphan_signal)
        target()
        code = 0
    except SystemExit as ended:
        # As Python ends: a text is an error.
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        # The supervisor's own clean-up must not run here.
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _leave_supervisor(output: int, parent: int, orphan_signal: signal.Signals) -> None:
    """Undo what belongs to the supervisor: its session, files (with the lock of the folder) and signals."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    for source, place in ((null, 0), (output, 1), (output, 2)):
        os.dup2(source, place)
    signal.set_wakeup_fd(-1)
    for number in DEFAULT_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.closerange(FIRST_OTHER_FILE, LAST_FILE)
    exit_with_parent(parent, orphan_signal)
