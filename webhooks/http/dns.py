"""DNS look-ups with a time limit, which the resolver of the system does not have."""

import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from threading import Thread
from typing import Any

from core.bulkhead import Bulkhead, BulkheadFull
from core.deadlines import Deadline

Resolver = Callable[..., Sequence[tuple[Any, ...]]]

# A name server that never answers blocks its thread for about 30 s.
MAX_LOOKUPS = 256
# The names of one merchant cannot take all threads.
MAX_LOOKUPS_PER_MERCHANT = 32

# The name has no address or is none, no thread is free, or the look-up took too long or waited in vain.
FAILURES = (OSError, UnicodeError, RuntimeError, BulkheadFull)
_slots = Bulkhead()
_running: dict[tuple[Resolver, str, int], Future[list[str]]] = {}


def look_up(host: str, port: int, *, merchant_id: str, resolver: Resolver, timeout: float) -> list[str]:
    """Return the addresses of a name, in the order of the resolver. Raises one of FAILURES."""
    until = Deadline.after(timeout)
    return _start(resolver, host, port, merchant_id, until).result(until.left())


def _start(resolver: Resolver, host: str, port: int, merchant_id: str, until: Deadline) -> Future[list[str]]:
    """Join a running look-up of this name, so that a dead name server costs one thread for all its posts."""
    key = (resolver, host, port)
    if (running := _running.get(key)) is not None:
        return running
    with ExitStack() as held:
        # First the slot, then the entry that others join: who joins waits for the name server only, and never
        # for the share of another merchant.
        held.enter_context(
            _slots.hold(
                merchant_id, total=MAX_LOOKUPS, share=MAX_LOOKUPS_PER_MERCHANT, wait_seconds=until.left()
            )
        )
        future: Future[list[str]] = Future()
        if (running := _running.setdefault(key, future)) is not future:
            return running  # another thread began while this one waited
        held.callback(_running.pop, key)
        end = held.pop_all().close
    try:
        Thread(target=_run, args=(key, future, end), name="lookup", daemon=True).start()
    except RuntimeError:  # no thread is free: the next post tries again
        end()
        raise
    return future


def _run(key: tuple[Resolver, str, int], future: Future[list[str]], end: Callable[[], None]) -> None:
    resolver, host, port = key
    try:
        found = resolver(host, port, type=socket.SOCK_STREAM)
        outcome: list[str] | Exception = [entry[4][0] for entry in found]
    except Exception as error:
        outcome = error
    end()  # before the result is set, so that the next post starts a new look-up
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
