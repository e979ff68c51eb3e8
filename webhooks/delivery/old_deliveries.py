"""Delete old deliveries, in batches. Their events stay."""

from datetime import datetime

from core import ids
from core.database import rows

BATCH = 1_000
# Deliveries that wait or are held stay, and those whose attempts are still there.
DELETE = """
WITH seen AS (
    SELECT id FROM webhooks_delivery WHERE id > %(after)s AND id < %(before)s ORDER BY id LIMIT %(batch)s
), gone AS (
    DELETE FROM webhooks_delivery AS delivery USING seen
    WHERE delivery.id = seen.id AND state IN ('succeeded', 'failed')
        AND NOT EXISTS (SELECT FROM webhooks_deliveryattempt WHERE delivery_id = delivery.id)
    RETURNING 1
)
SELECT (SELECT max(id) FROM seen), (SELECT count(*) FROM gone)
"""


def delete(before: datetime, *, batch: int = BATCH) -> int:
    """Delete the deliveries that were made before then and have ended. Returns how many."""
    last, total = ids.first("dlv_", before), 0
    after: str | None = ""
    while after is not None:
        values = {"after": after, "before": last, "batch": batch}
        after, deleted = rows.run(DELETE, values).fetchone()
        total += deleted
    return total
