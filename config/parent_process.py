"""Ends a process when its parent ends."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # prctl(2)


def exit_with_parent(parent: int, signal_number: signal.Signals) -> None:
    """Have the kernel send us `signal_number` when process `parent` ends, however it ends.

    Linux only. On other systems the next start finds the leftover process.
    """
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal_number), 0, 0, 0)
    # The parent may have ended before the call above took effect.
    if os.getppid() != parent:
        os._exit(1)
