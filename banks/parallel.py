"""Run calls to banks in parallel threads, for at most CALL_SECONDS, without an open transaction."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Generic, TypeVar

log = logging.getLogger("banks")
CALL_SECONDS = 10.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TimedResult(Generic[T]):
    """The result of a call, and its duration."""

    result: T
    seconds: float


def run_all(calls: Sequence[Callable[[], T]], *, default: T) -> list[T]:
    """The results in the order of the calls; `default` for calls that fail or take too long."""
    return [timed.result for timed in run_all_timed(calls, default=default)]


def run_all_timed(calls: Sequence[Callable[[], T]], *, default: T) -> list[TimedResult[T]]:
    """`run_all` with the duration of each call."""
    futures = [_start(call) for call in calls]
    wait(futures, timeout=CALL_SECONDS)
    return [_result_of(future, default) for future in futures]


def _start(call: Callable[[], T]) -> "Future[TimedResult[T]]":
    future: Future[TimedResult[T]] = Future()
    started = time.monotonic()

    def run() -> None:
        try:
            future.set_result(TimedResult(call(), time.monotonic() - started))
        except BaseException as error:
            future.set_exception(error)

    # A daemon thread, because a bank that never ends its answer must not delay the end of the process.
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
