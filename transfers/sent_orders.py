"""The ids of the last sent orders, in Redis: a record outside of the database, to compare it with.

A copy of a disk that is put back has nothing inside by which it can be told from the original. This record
shows it: it has orders that the database does not have. Redis may lose it, or not answer while an order is
sent; then it is completed from the database.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from redis import Redis

from core import clock
from core.work import redis
from transfers.models import DatabaseMark, Transfer

KEPT = 100
# How long the record counts as complete after it was compared. Longer than a standby needs to take over, and
# shorter than a person needs to restore a backup.
COMPLETE_SECONDS = 120
START = "-"  # the record is never empty, so that an empty one means that Redis lost it
BY_TIME, COMPLETE = "sent_orders:{}:by_time", "sent_orders:{}:complete"


class Comparison(NamedTuple):
    """The noted orders that this database has not submitted, and whether Redis had each sent order lately."""

    missing: list[str]
    is_complete: bool


def note(order_id: str) -> None:
    """Add an order that is about to be sent: after the commit that submitted it, before the call."""
    installation = DatabaseMark.objects.values_list("installation", flat=True).first()
    if installation is not None:
        redis.try_call(lambda client: _add(client, str(installation), {order_id: clock.now().timestamp()}))


def compare(installation: str) -> Comparison | None:
    """None if Redis does not answer."""
    found: Any = redis.try_call(lambda client: _read(client, installation))
    if found is None:
        return None
    noted, is_complete = {each.decode() for each in found[0]}, bool(found[1])
    known = Transfer.objects.filter(pk__in=noted, submitted_at__isnull=False).values_list("pk", flat=True)
    return Comparison(sorted(noted - {START} - set(known)), bool(noted) and is_complete)


def complete(installation: str) -> None:
    """Add the orders that this database sent last, and note that the record is complete now.

    Only for the database that sends the orders: after a restore the record would prove nothing any more.
    """
    sent = Transfer.objects.filter(submitted_at__isnull=False).order_by("-submitted_at")
    times = {order_id: at.timestamp() for order_id, at in sent.values_list("pk", "submitted_at")[:KEPT] if at}

    def write(client: Redis) -> None:
        _add(client, installation, {START: 0.0} | times)
        client.set(COMPLETE.format(installation), 1, ex=COMPLETE_SECONDS)

    redis.try_call(write)


def _add(client: Redis, installation: str, times: Mapping[str, float]) -> None:
    """Keep the newest. times: when each order was submitted, in seconds since 1970."""
    pipeline = client.pipeline()
    pipeline.zadd(BY_TIME.format(installation), dict(times), gt=True)
    pipeline.zremrangebyrank(BY_TIME.format(installation), 0, -KEPT - 1)
    pipeline.execute()


def _read(client: Redis, installation: str) -> Any:
    pipeline: Any = client.pipeline()
    return (
        pipeline.zrange(BY_TIME.format(installation), 0, -1).exists(COMPLETE.format(installation)).execute()
    )
