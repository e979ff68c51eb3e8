"""Races with real threads, each with a database connection of its own."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, BrokenBarrierError
from typing import TypeVar

from django.db import connection

T = TypeVar("T")
SECONDS = 30


def at_once(*actions: Callable[[], T]) -> list[T]:
    """Run all actions at the same moment; results in their order, and the first exception is raised."""
    line = Barrier(len(actions))

    def run(action: Callable[[], T]) -> T:
        try:
            connection.ensure_connection()
            line.wait(timeout=SECONDS)
            return action()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(run, actions))


def in_rounds(rounds: int, *players: Callable[[int], object]) -> None:
    """Each player plays every round, told its number from 0 on, and all begin a round at the same moment.

    For many rounds: a connection is opened once. The first exception is raised.
    """
    line = Barrier(len(players))

    def run(player: Callable[[int], object]) -> None:
        try:
            connection.ensure_connection()
            for number in range(rounds):
                line.wait(timeout=SECONDS)
                player(number)
        except BaseException:
            line.abort()
            raise
        finally:
            connection.close()

    with ThreadPoolExecutor(len(players)) as pool:
        played = [pool.submit(run, player) for player in players]
    faults = [fault for each in played if (fault := each.exception())]
    # A barrier that broke is what the others made of the fault.
    for fault in sorted(faults, key=lambda fault: isinstance(fault, BrokenBarrierError)):
        raise fault
