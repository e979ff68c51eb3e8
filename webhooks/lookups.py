"""Name look-ups with a time limit, which the system's resolver does not have."""

import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Lock, Thread
from typing import Any

Resolver = Callable[..., Sequence[tuple[Any, ...]]]

# A name server that never answers holds its thread for about half a minute.
MOST_AT_ONCE = 256

_running: dict[tuple[Resolver, str, int], Future[list[str]]] = {}
_lock = Lock()


class LookupFailed(Exception):
    """The name has no address, or none was learned in time."""


def addresses_of(host: str, port: int, *, resolver: Resolver, timeout: float) -> list[str]:
    """The addresses of a name, in the resolver's order, within `timeout` seconds. Raises LookupFailed."""
    try:
        return _start(resolver, host, port).result(timeout)
    except (OSError, UnicodeError) as fault:
        raise LookupFailed(host) from fault


def _start(resolver: Resolver, host: str, port: int) -> Future[list[str]]:
    # Posts to one name share a running look-up, so that a dead name server costs one thread, not one a post.
    key = (resolver, host, port)
    with _lock:
        if key in _running:
            return _running[key]
        if len(_running) >= MOST_AT_ONCE:
            raise LookupFailed(host)
        future = _running[key] = Future()
    try:
        Thread(target=_run, args=(key, future), name="lookup", daemon=True).start()
    except RuntimeError as fault:  # no thread is to be had: the next post asks again
        with _lock:
            del _running[key]
        raise LookupFailed(host) from fault
    return future


def _run(key: tuple[Resolver, str, int], future: Future[list[str]]) -> None:
    resolver, host, port = key
    try:
        found = resolver(host, port, type=socket.SOCK_STREAM)
        outcome: list[str] | Exception = [entry[4][0] for entry in found]
    except Exception as fault:
        outcome = fault
    # Forgotten before it is answered: the next post asks again.
    with _lock:
        del _running[key]
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
