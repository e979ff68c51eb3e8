"""Counters for metrics, stored as rows so that every process reports the same numbers."""

import logging
from collections import Counter
from collections.abc import Iterable

from django.db import DatabaseError, connection

from core import rows
from webhooks.models import CounterType, DeliveryAttempt

log = logging.getLogger("webhooks.delivery.counters")
SUCCEEDED = "succeeded"
# What an attempt's duration is counted under: the first of these that it does not exceed.
BUCKETS_MS = (10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 20_000, 2**31 - 1)
Key = tuple[str, str, int]


def count(attempts: Iterable[DeliveryAttempt]) -> None:
    """Count them in the caller's commit, last: other workers wait for these rows from here on."""
    counts, total_ms = Counter[Key](), Counter[Key]()
    for attempt in attempts:
        key = (CounterType.ATTEMPT.value, attempt.error or SUCCEEDED, _bucket(attempt.duration_ms))
        counts[key] += 1
        total_ms[key] += attempt.duration_ms or 0
    _add(counts, total_ms)


def count_failed_wakeup() -> None:
    """Count a failed wakeup and close the connection. Never raises."""
    try:
        _add(Counter([(CounterType.WAKEUP.value, "failed", 0)]), Counter())
    except DatabaseError as error:
        log.warning("a failed wakeup was not counted: %s", type(error).__name__)
    finally:
        connection.close()


def _bucket(duration_ms: int | None) -> int:
    if duration_ms is None:
        return 0
    return next(bound for bound in BUCKETS_MS if duration_ms <= bound)


def _add(counts: "Counter[Key]", total_ms: "Counter[Key]") -> None:
    # Sorted, so that two workers never wait for each other in a circle.
    added = [(*key, counts[key], total_ms[key]) for key in sorted(counts)]
    if added:
        rows.run(
            """
            INSERT INTO webhooks_deliverycounter AS t (type, outcome, bucket_ms, count, total_ms)
            SELECT * FROM unnest(%s::text[], %s::text[], %s::int[], %s::bigint[], %s::bigint[])
            ON CONFLICT (type, outcome, bucket_ms) DO UPDATE
                SET count = t.count + EXCLUDED.count, total_ms = t.total_ms + EXCLUDED.total_ms
            """,
            [list(column) for column in zip(*added, strict=True)],
        )
