"""Threads with database connections of their own: races, and work without a database."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from threading import Barrier, BrokenBarrierError
from typing import TypeVar

import pytest
from django.db import connection, connections

from tests.webhooks.misbehaving_receivers import unused_port

S = TypeVar("S")
T = TypeVar("T")
SECONDS = 300
# Pools of one thread each, for all races of this process. They keep their connections: to open one and to
# plan its statements takes longer than most races.
executors: list[ThreadPoolExecutor] = []


def run_concurrently(*actions: Callable[[], T]) -> list[T]:
    """Run all actions at the same moment; return their results in order, or raise the first exception.

    An action must not call this function.
    """
    barrier = Barrier(len(actions))

    def run(action: Callable[[], T]) -> T:
        _connect()
        barrier.wait(timeout=SECONDS)
        return action()

    running = _start(run, actions)
    wait(running)
    return [each.result() for each in running]


def _start(run: Callable[[S], T], given: Sequence[S]) -> list[Future[T]]:
    """Call `run` with each of `given`, in a thread for each, as the actor of the caller."""
    executors.extend(ThreadPoolExecutor(1) for _ in given[len(executors) :])
    return [
        executor.submit(copy_context().run, run, each)
        for executor, each in zip(executors, given, strict=False)
    ]


def _connect() -> None:
    """The race before may have left a broken connection."""
    if connection.connection is not None and not connection.is_usable():
        connection.close()
    connection.ensure_connection()


def shut_down() -> None:
    """End the threads of all races and their connections."""
    for executor in executors:
        executor.submit(connections.close_all).result()
        executor.shutdown()
    executors.clear()


def run_in_rounds(rounds: int, *players: Callable[[int], object]) -> None:
    """Call each player with each round number from 0; all start a round at the same moment.

    Raises the first exception.
    """
    barrier = Barrier(len(players))

    def run(player: Callable[[int], object]) -> None:
        try:
            _connect()
            for number in range(rounds):
                barrier.wait(timeout=SECONDS)
                player(number)
        except BaseException:
            barrier.abort()
            raise

    faults = [fault for each in _start(run, players) if (fault := each.exception())]
    # The other players fail with a broken barrier, so the real exception comes first.
    for fault in sorted(faults, key=lambda fault: isinstance(fault, BrokenBarrierError)):
        raise fault


def lock_waiters() -> int:
    """How many sessions of this database wait for a lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        return int(cursor.fetchone()[0])


def without_database(action: Callable[[], T]) -> T:
    """Run `action` in a thread that can open no connection. The caller's own connection stays open."""
    connection.ensure_connection()
    with unused_port() as port, pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(1) as other:
        patch.setitem(connection.settings_dict, "PORT", port)
        return other.submit(action).result()
