"""Calls to banks: side by side, with no transaction open, and none for longer than a bank may take."""

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait

from banks import Word

log = logging.getLogger("transfers")
# One call, all in all. Whatever an adapter does, nobody waits longer.
CALL_SECONDS = 10.0
Call = Callable[[], Word]


def all_at_once(calls: Sequence[Call]) -> list[Word]:
    """What each call says, in their order; `unknown` for those that did not end in time."""
    begun = [_begin(call) for call in calls]
    wait(begun, timeout=CALL_SECONDS)
    return [_word(future) for future in begun]


def _begin(call: Call) -> "Future[Word]":
    future: Future[Word] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    # A daemon, so that a bank that never ends its answer cannot hold up the end of the process.
    threading.Thread(target=run, daemon=True).start()
    return future


def _word(future: "Future[Word]") -> Word:
    if not future.done():
        return Word("unknown")
    try:
        return future.result()
    except Exception:
        log.exception("an adapter failed")
        return Word("unknown")
