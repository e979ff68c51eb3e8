"""Calls to banks: side by side, with no transaction open, and none for longer than a bank may take."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Generic, TypeVar

log = logging.getLogger("banks")
# One call, all in all. Whatever an adapter does, nobody waits longer.
CALL_SECONDS = 10.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TimedResult(Generic[T]):
    """What a call says, and how many seconds it took."""

    result: T
    seconds: float


def run_all(calls: Sequence[Callable[[], T]], *, default: T) -> list[T]:
    """What each call says, in their order; `default` for those that failed or did not end in time."""
    return [timed.result for timed in run_all_timed(calls, default=default)]


def run_all_timed(calls: Sequence[Callable[[], T]], *, default: T) -> list[TimedResult[T]]:
    """The same with the time that each call took."""
    futures = [_start(call) for call in calls]
    wait(futures, timeout=CALL_SECONDS)
    return [_result_of(future, default) for future in futures]


def _start(call: Callable[[], T]) -> "Future[TimedResult[T]]":
    future: Future[TimedResult[T]] = Future()
    began = time.monotonic()

    def run() -> None:
        try:
            future.set_result(TimedResult(call(), time.monotonic() - began))
        except BaseException as error:
            future.set_exception(error)

    # A daemon, so that a bank that never ends its answer cannot hold up the end of the process.
    threading.Thread(target=run, daemon=True).start()
    return future


def _result_of(future: "Future[TimedResult[T]]", default: T) -> TimedResult[T]:
    if not future.done():
        return TimedResult(default, CALL_SECONDS)
    try:
        return future.result()
    except Exception:
        log.exception("an adapter failed")
        return TimedResult(default, 0.0)
