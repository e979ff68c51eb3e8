"""DNS look-ups in threads, as the resolver of the system has no time limit. Used by the event loop only."""

import asyncio
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Thread
from typing import Any

Resolver = Callable[..., Sequence[tuple[Any, ...]]]
Lookup = tuple[Resolver, str, int]

MAX_LOOKUPS = 256  # a name server that never answers blocks its thread for about 30 s
MAX_LOOKUPS_PER_MERCHANT = 32  # the names of one merchant cannot take all threads

# The name has no address or is none, no thread is free, or the caller's time is over.
FAILURES = (OSError, UnicodeError, RuntimeError)
# What runs now, for the merchant that was first.
_running: dict[Lookup, tuple[asyncio.Future[list[str]], str]] = {}


async def look_up(host: str, port: int, *, merchant_id: str, resolver: Resolver) -> list[str]:
    """Return the addresses of a name, in the order of the resolver. Raises one of FAILURES.

    Joins a running look-up of this name, so that a dead name server costs one thread for all its posts.
    """
    lookup = (resolver, host, port)
    while lookup not in _running:
        merchants = [merchant for _, merchant in _running.values()]
        if len(merchants) < MAX_LOOKUPS and merchants.count(merchant_id) < MAX_LOOKUPS_PER_MERCHANT:
            _start(lookup, merchant_id)
        else:
            ends = [end for end, _ in _running.values()]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    # Shielded, because others may wait for it longer than this caller.
    return await asyncio.shield(_running[lookup][0])


def _start(lookup: Lookup, merchant_id: str) -> None:
    outcome: Future[list[str]] = Future()

    def start() -> None:
        try:
            # A daemon, because a process that ends does not wait for a name server.
            Thread(target=run, name="lookup", daemon=True).start()
        except RuntimeError as error:  # no thread is free
            outcome.set_exception(error)

    def run() -> None:
        resolver, host, port = lookup
        try:
            outcome.set_result([entry[4][0] for entry in resolver(host, port, type=socket.SOCK_STREAM)])
        except Exception as error:
            outcome.set_exception(error)

    def finish(ended: asyncio.Future[list[str]]) -> None:
        _running.pop(lookup, None)
        ended.exception()  # read, or asyncio logs an error that nobody waits for any more

    end = asyncio.wrap_future(outcome)
    end.add_done_callback(finish)  # before those who wait go on
    # `Thread.start` waits for the new thread, and all posts would wait with it.
    asyncio.get_running_loop().run_in_executor(None, start)
    _running[lookup] = end, merchant_id
