"""Ask a server the same question for a while, and count the blocks that PostgreSQL reads for an answer."""

import itertools
from dataclasses import dataclass, field

import psycopg

from bench import load
from bench.load import NotMeasurable
from tests.stack import Stack, wait_until

RESTART_SECONDS = 60.0
# Statements that the workers run by the way are not called once for each answer.
BLOCKS = """
    SELECT coalesce(sum((shared_blks_hit + shared_blks_read) / calls * round(calls::float / %(answers)s)), 0)
    FROM pg_stat_statements WHERE calls >= 0.9 * %(answers)s
"""


@dataclass
class Answers:
    """Latencies in milliseconds, and of each round the blocks of 8 kB that an answer reads."""

    latencies: list[float] = field(default_factory=list)
    blocks: list[float] = field(default_factory=list)


# By the name of the question.
Measured = dict[str, Answers]


class Questioner:
    """Asks an instance, whose PostgreSQL counts the blocks of statements."""

    def __init__(self, stack: Stack) -> None:
        """Restart PostgreSQL with `pg_stat_statements`. Raises NotMeasurable if it is not installed."""
        self._port, self._url = stack.port, stack.owner_url
        with psycopg.connect(self._url, autocommit=True) as connection:
            found = "SELECT FROM pg_available_extensions WHERE name = 'pg_stat_statements'"
            if connection.execute(found).rowcount == 0:
                raise NotMeasurable("PostgreSQL has no extension pg_stat_statements.")
            connection.execute("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'")
        stack.restart("postgres")
        wait_until(stack.is_ready, RESTART_SECONDS)
        self._statistics = psycopg.connect(self._url, autocommit=True)
        self._statistics.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")

    def ask(self, measured: Measured, name: str, request: bytes, seconds: float) -> None:
        """Ask one question for some seconds. Raises NotMeasurable for another answer than 200."""
        self._statistics.execute("SELECT pg_stat_statements_reset()")
        result = load.run(self._port, itertools.repeat(request), connections=1, seconds=seconds)
        if set(result.statuses) != {200}:
            raise NotMeasurable(f"{name}: {dict(result.statuses)}, first {result.first_refusal!r}")
        answers = measured.setdefault(name, Answers())
        answers.latencies.extend(1000 * each for each in result.latencies)
        read = self._statistics.execute(BLOCKS, {"answers": len(result.latencies)}).fetchone() or (0,)
        answers.blocks.append(float(read[0]))
