"""Shows on standard error what is measured, and how far it is. A terminal gets a bar that moves."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

TICK_SECONDS = 0.5
BAR_WIDTH, LINE_WIDTH = 24, 78


@contextmanager
def step(text: str, seconds: float = 0.0) -> Iterator[None]:
    """One step that takes about so many seconds; 0 if that is unknown."""
    if not sys.stderr.isatty():
        sys.stderr.write(f"{text} ...\n")
        sys.stderr.flush()
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_draw, args=(text, seconds, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _draw(text: str, seconds: float, ended: threading.Event) -> None:
    began = time.monotonic()
    while True:
        is_over = ended.wait(TICK_SECONDS)
        passed = time.monotonic() - began
        share = 1.0 if is_over else min(1.0, passed / seconds) if seconds else 0.0
        bar = "#" * round(share * BAR_WIDTH)
        line = f"[{bar:<{BAR_WIDTH}}] {text}, {passed:.0f} s"
        sys.stderr.write(f"\r{line:<{LINE_WIDTH}}" + ("\n" if is_over else ""))
        sys.stderr.flush()
        if is_over:
            return
