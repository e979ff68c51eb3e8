"""Races with real threads, each with a database connection of its own."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

from django.db import connection

T = TypeVar("T")


def at_once(*actions: Callable[[], T]) -> list[T]:
    """Run all actions at the same moment; results in their order, and the first exception is raised."""
    line = Barrier(len(actions))

    def run(action: Callable[[], T]) -> T:
        try:
            connection.ensure_connection()
            line.wait(timeout=30)
            return action()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(run, actions))
