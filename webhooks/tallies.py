"""Counters that only grow, kept as rows: every process says the same, and no history is counted."""

import logging
from collections import Counter
from collections.abc import Iterable

from django.db import DatabaseError, connection

from core import rows
from webhooks.models import Attempt, Counted

log = logging.getLogger("webhooks.tallies")
SUCCEEDED = "succeeded"
# What an attempt's duration is counted under: the first of these that it does not exceed.
BOUNDS_MS = (10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 20_000, 2**31 - 1)
Key = tuple[str, str, int]


def count(attempts: Iterable[Attempt]) -> None:
    """Count them in the caller's commit, last: other workers wait for these rows from here on."""
    times, total_ms = Counter[Key](), Counter[Key]()
    for attempt in attempts:
        key = (Counted.ATTEMPT.value, attempt.error or SUCCEEDED, _bound(attempt.duration_ms))
        times[key] += 1
        total_ms[key] += attempt.duration_ms or 0
    _add(times, total_ms)


def count_lost_bell() -> None:
    """Count a ring that failed, over a connection that is closed again. Never raises."""
    try:
        _add(Counter([(Counted.BELL.value, "lost", 0)]), Counter())
    except DatabaseError as error:
        log.warning("a lost bell was not counted: %s", type(error).__name__)
    finally:
        connection.close()


def _bound(duration_ms: int | None) -> int:
    if duration_ms is None:
        return 0
    return next(bound for bound in BOUNDS_MS if duration_ms <= bound)


def _add(times: "Counter[Key]", total_ms: "Counter[Key]") -> None:
    # Sorted, so that two workers never wait for each other in a circle.
    added = [(*key, times[key], total_ms[key]) for key in sorted(times)]
    if added:
        rows.run(
            """
            INSERT INTO webhooks_tally AS t (what, outcome, within_ms, count, total_ms)
            SELECT * FROM unnest(%s::text[], %s::text[], %s::int[], %s::bigint[], %s::bigint[])
            ON CONFLICT (what, outcome, within_ms) DO UPDATE
                SET count = t.count + EXCLUDED.count, total_ms = t.total_ms + EXCLUDED.total_ms
            """,
            [list(column) for column in zip(*added, strict=True)],
        )
