"""The event loop of this process that posts: one thread for all connections, started by the first post."""

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")
STOP_SECONDS = 1.0


class LoopThread(threading.Thread):
    """A thread that runs an event loop until the process ends."""

    def __init__(self) -> None:
        super().__init__(name="posts", daemon=True)
        self.loop = uvloop.new_event_loop()
        # The loop itself refers to its tasks only weakly.
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self) -> None:
        self.loop.run_forever()

    def create_tasks(self, works: Iterable[Callable[[], Coroutine[Any, Any, None]]]) -> None:
        """Start tasks. Call it in the thread of the loop."""
        for work in works:
            task = self.loop.create_task(work())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


_start_lock = threading.Lock()
_threads: list[LoopThread] = []


def start(works: Iterable[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    """Start these at once, with the context of the caller. Raises RuntimeError if no thread is free."""
    thread = _running()
    thread.loop.call_soon_threadsafe(thread.create_tasks, list(works))


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run this and return its result. The calling thread waits."""
    try:
        loop = _running().loop
    except RuntimeError:
        work.close()
        raise
    return asyncio.run_coroutine_threadsafe(work, loop).result()


def _running() -> LoopThread:
    with _start_lock:
        # A forked process has this list, but not the thread in it.
        if not _threads or not _threads[-1].is_alive():
            thread = LoopThread()
            thread.start()
            _threads[:] = [thread]
        return _threads[-1]


@atexit.register
def _stop() -> None:
    """Stop before the interpreter ends, which a thread in C code may not survive."""
    for thread in _threads:
        if thread.is_alive():
            thread.loop.call_soon_threadsafe(thread.loop.stop)
            thread.join(STOP_SECONDS)
