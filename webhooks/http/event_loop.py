"""The event loop of this process that posts: one thread for all connections, started by the first post."""

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")
STOP_SECONDS = 1.0


_start_lock = threading.Lock()
# At most one.
_loops: dict[threading.Thread, asyncio.AbstractEventLoop] = {}
# The loop itself refers to its tasks only weakly.
_tasks: set[asyncio.Task[None]] = set()


def start(works: Iterable[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    """Start these at once, with the context of the caller. Raises RuntimeError if no thread is free."""
    loop, given = _loop(), list(works)

    def create_tasks() -> None:
        for work in given:
            task = loop.create_task(work())
            _tasks.add(task)
            task.add_done_callback(_tasks.discard)

    loop.call_soon_threadsafe(create_tasks)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run this and return its result. The calling thread waits."""
    try:
        loop = _loop()
    except RuntimeError:
        work.close()
        raise
    return asyncio.run_coroutine_threadsafe(work, loop).result()


def _loop() -> asyncio.AbstractEventLoop:
    with _start_lock:
        # A forked process has this dict, but not the thread in it.
        if not any(thread.is_alive() for thread in _loops):
            loop = uvloop.new_event_loop()
            # It starts the threads of look-ups (`dns`). The loop waits only for the start of its one thread.
            loop.set_default_executor(ThreadPoolExecutor(1, "start look-ups"))
            thread = threading.Thread(target=loop.run_forever, name="posts", daemon=True)
            thread.start()
            _loops.clear()
            _loops[thread] = loop
        return next(iter(_loops.values()))


@atexit.register
def _stop() -> None:
    """Stop before the interpreter ends, which a thread in C code may not survive."""
    for thread, loop in _loops.items():
        if thread.is_alive():
            loop.call_soon_threadsafe(loop.stop)
            thread.join(STOP_SECONDS)
