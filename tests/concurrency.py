"""Races with real threads, each with a database connection of its own."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Barrier, BrokenBarrierError
from typing import TypeVar

from django.db import connection, connections

T = TypeVar("T")
SECONDS = 300
# Threads of one each, which keep their connection: to open it costs more than most races take.
executors: list[ThreadPoolExecutor] = []


def run_concurrently(*actions: Callable[[], T]) -> list[T]:
    """Run all actions at the same moment; results in their order, and the first exception is raised.

    Not within one of the actions.
    """
    line = Barrier(len(actions))

    def run(action: Callable[[], T]) -> T:
        connection.ensure_connection()
        line.wait(timeout=SECONDS)
        return action()

    executors.extend(ThreadPoolExecutor(1) for _ in actions[len(executors) :])
    running = [hand.submit(run, action) for hand, action in zip(executors, actions, strict=False)]
    wait(running)
    return [each.result() for each in running]


def shut_down() -> None:
    """End the threads of all races and their connections."""
    for hand in executors:
        hand.submit(connections.close_all).result()
        hand.shutdown()
    executors.clear()


def run_in_rounds(rounds: int, *players: Callable[[int], object]) -> None:
    """Each player plays every round, told its number from 0 on, and all begin a round at the same moment.

    The first exception is raised.
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
