"""The event loop of this process that posts: one thread for all connections, started by the first post."""

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")
STOP_SECONDS = 1.0


class LoopThread:
    """A thread that runs an event loop until the process ends."""

    def __init__(self) -> None:
        self.loop = uvloop.new_event_loop()
        # The loop itself refers to its tasks only weakly.
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self.loop.run_forever, name="posts", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs. A forked process has this object without its thread."""
        return self._thread.is_alive()

    def create_tasks(self, works: Iterable[Callable[[], Coroutine[Any, Any, None]]]) -> None:
        """Start tasks. Call it in the thread of the loop."""
        for work in works:
            task = self.loop.create_task(work())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        """Stop before the interpreter ends, which a thread in C code may not survive."""
        if self.is_alive:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(STOP_SECONDS)


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
        if not _threads or not _threads[-1].is_alive:
            _threads[:] = [LoopThread()]
        return _threads[-1]


@atexit.register
def _stop() -> None:
    for thread in _threads:
        thread.stop()
