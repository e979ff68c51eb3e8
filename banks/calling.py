"""Calls to banks: side by side, with no transaction open, and none for longer than a bank may take."""

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import TypeVar

log = logging.getLogger("banks")
# One call, all in all. Whatever an adapter does, nobody waits longer.
CALL_SECONDS = 10.0
T = TypeVar("T")


def all_at_once(calls: Sequence[Callable[[], T]], *, silence: T) -> list[T]:
    """What each call says, in their order; `silence` for those that failed or did not end in time."""
    begun = [_begin(call) for call in calls]
    wait(begun, timeout=CALL_SECONDS)
    return [_said(future, silence) for future in begun]


def _begin(call: Callable[[], T]) -> "Future[T]":
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    # A daemon, so that a bank that never ends its answer cannot hold up the end of the process.
    threading.Thread(target=run, daemon=True).start()
    return future


def _said(future: "Future[T]", silence: T) -> T:
    if not future.done():
        return silence
    try:
        return future.result()
    except Exception:
        log.exception("an adapter failed")
        return silence
