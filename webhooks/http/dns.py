"""Name look-ups with a time limit, which the system's resolver does not have."""

import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Any

from core.deadlines import Deadline

Resolver = Callable[..., Sequence[tuple[Any, ...]]]

# A name server that never answers holds its thread for about half a minute.
MAX_LOOKUPS = 256
# Of these for one merchant: the names of one cannot take the threads of the others.
MAX_LOOKUPS_PER_MERCHANT = 32


@dataclass(frozen=True, slots=True)
class _Lookup:
    merchant_id: str
    answer: Future[list[str]]


_running: dict[tuple[Resolver, str, int], _Lookup] = {}
_changed = Condition()


class LookupFailed(Exception):
    """The name has no address, or none was learned in time."""


def look_up(host: str, port: int, *, merchant_id: str, resolver: Resolver, timeout: float) -> list[str]:
    """The addresses of a name, in the resolver's order, within `timeout` seconds. Raises LookupFailed."""
    until = Deadline.after(timeout)
    try:
        return _start(resolver, host, port, merchant_id, until).result(until.left())
    except (OSError, UnicodeError) as fault:
        raise LookupFailed(host) from fault


def _start(resolver: Resolver, host: str, port: int, merchant_id: str, until: Deadline) -> Future[list[str]]:
    # Posts to one name share a running look-up, so that a dead name server costs one thread, not one a post.
    key = (resolver, host, port)
    with _changed:
        if not _changed.wait_for(lambda: key in _running or _has_room(merchant_id), until.left()):
            raise LookupFailed(host)
        if key in _running:
            return _running[key].answer
        future: Future[list[str]] = Future()
        _running[key] = _Lookup(merchant_id, future)
    try:
        Thread(target=_run, args=(key, future), name="lookup", daemon=True).start()
    except RuntimeError as fault:  # no thread is to be had: the next post asks again
        _remove(key)
        raise LookupFailed(host) from fault
    return future


def _has_room(merchant_id: str) -> bool:
    of_merchant = sum(each.merchant_id == merchant_id for each in _running.values())
    return len(_running) < MAX_LOOKUPS and of_merchant < MAX_LOOKUPS_PER_MERCHANT


def _remove(key: tuple[Resolver, str, int]) -> None:
    with _changed:
        del _running[key]
        _changed.notify_all()


def _run(key: tuple[Resolver, str, int], future: Future[list[str]]) -> None:
    resolver, host, port = key
    try:
        found = resolver(host, port, type=socket.SOCK_STREAM)
        outcome: list[str] | Exception = [entry[4][0] for entry in found]
    except Exception as fault:
        outcome = fault
    # Forgotten before it is answered: the next post asks again.
    _remove(key)
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
