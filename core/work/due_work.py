"""Claim rows that are due under a lease, and work on them within limits.

Each kind of work is a table with a column `due_at`. A lease ends by the database's clock. If a worker dies,
its rows come due again when their lease ends.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Model, Q, QuerySet
from django.db.models.functions import Now

from core.deadlines import Deadline
from core.work.bulkhead import Bulkhead, BulkheadFull

# A run claims no rows after 5 s, so that a silent counterparty does not delay other work of this worker.
RUN_SECONDS = 5.0
# Rows that one batch claims and calls side by side.
BATCH_SIZE = 8
# For tables whose `due_at` may change while a worker has the row: the lease is a separate column.
UNLEASED = Q(lease_until__isnull=True) | Q(lease_until__lte=Now())

M = TypeVar("M", bound=Model)
T = TypeVar("T")


@transaction.atomic
def claim(due: "QuerySet[M]", limit: int, **lease: Any) -> list[M]:
    """Return up to `limit` rows of `due`, leased to the caller. No two workers get the same row.

    `lease` has the columns that a claim sets, such as `due_at=Now() + LEASE` and the count of tries. The
    returned rows have the old values.
    """
    rows = list(due.select_for_update(skip_locked=True, no_key=True)[:limit])
    due.model._default_manager.filter(pk__in=[row.pk for row in rows]).update(**lease)
    return rows


def interval(intervals: Sequence[T], failures: int) -> T:
    """Return the wait after that many earlier failures. The last interval repeats."""
    return intervals[min(failures, len(intervals) - 1)]


class DueWork:
    """One kind of due work in this process.

    Of at most `max_runs` runs at once, `max_runs_of_one` may serve the same counterparty. The others serve
    other counterparties while one does not answer.
    """

    def __init__(self, *, max_runs: int, max_runs_of_one: int) -> None:
        self.max_runs, self.max_runs_of_one = max_runs, max_runs_of_one
        self.bulkhead = Bulkhead()

    def run(
        self,
        counterparty: str,
        claim_rows: Callable[[int], Sequence[T]],
        work: Callable[[Sequence[T]], None],
        *,
        limit: int,
    ) -> int:
        """Work on what is due until nothing is due, `limit` rows are claimed or RUN_SECONDS are over.

        Returns how many rows were claimed: 0 if the counterparty has no free run.
        """
        count, deadline = 0, Deadline.after(RUN_SECONDS)
        with (
            suppress(BulkheadFull),
            self.bulkhead.hold(counterparty, total=self.max_runs, share=self.max_runs_of_one),
        ):
            while count < limit and not deadline.is_past:
                rows = claim_rows(min(BATCH_SIZE, limit - count))
                if not rows:
                    break
                count += len(rows)
                work(rows)
        return count
