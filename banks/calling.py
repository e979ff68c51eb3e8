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
class Timed(Generic[T]):
    """What a call says, and how many seconds it took."""

    said: T
    seconds: float


def all_at_once(calls: Sequence[Callable[[], T]], *, silence: T) -> list[T]:
    """What each call says, in their order; `silence` for those that failed or did not end in time."""
    return [timed.said for timed in timed_at_once(calls, silence=silence)]


def timed_at_once(calls: Sequence[Callable[[], T]], *, silence: T) -> list[Timed[T]]:
    """The same with the time that each call took."""
    begun = [_begin(call) for call in calls]
    wait(begun, timeout=CALL_SECONDS)
    return [_said(future, silence) for future in begun]


def _begin(call: Callable[[], T]) -> "Future[Timed[T]]":
    future: Future[Timed[T]] = Future()
    began = time.monotonic()

    def run() -> None:
        try:
            future.set_result(Timed(call(), time.monotonic() - began))
        except BaseException as error:
            future.set_exception(error)

    # A daemon, so that a bank that never ends its answer cannot hold up the end of the process.
    threading.Thread(target=run, daemon=True).start()
    return future


def _said(future: "Future[Timed[T]]", silence: T) -> Timed[T]:
    if not future.done():
        return Timed(silence, CALL_SECONDS)
    try:
        return future.result()
    except Exception:
        log.exception("an adapter failed")
        return Timed(silence, 0.0)
