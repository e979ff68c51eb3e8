"""The ids of the last sent orders, in Redis: a record outside of the database, to compare it with.

A copy of a disk that is put back has nothing inside by which it can be told from the original. This list
shows it: it has orders that the database does not have. Redis may lose it, or not answer while an order is
sent; then it is completed from the database.
"""

from collections.abc import Sequence
from typing import Any

from redis import Redis

from core import redis
from transfers.models import DatabaseMark, Transfer

KEPT = 200
# Fewer than KEPT: an order that waited for approval is noted long after it was made, and must stay.
COMPARED = 100
# Until when a list counts as complete after it was compared. Longer than a standby needs to take over, and
# shorter than a person needs to restore a backup.
COMPLETE_SECONDS = 300
# The list is never empty, so that an empty one means that Redis lost it.
START = "-"


def note(order_id: str) -> None:
    """Add an order that is about to be sent: after the commit that submitted it, before the call."""
    installation = DatabaseMark.objects.values_list("installation", flat=True).first()
    if installation is not None:
        _push(str(installation), [order_id])


def missing_here(installation: str) -> list[str] | None:
    """The noted orders that this database has not submitted. None if Redis does not know."""
    noted = _noted(installation)
    if not noted:
        return None
    orders = noted - {START}
    known = Transfer.objects.filter(pk__in=orders, submitted_at__isnull=False)
    return sorted(orders - set(known.values_list("pk", flat=True)))


def complete(installation: str) -> None:
    """Add the newest orders of this database that Redis lacks, and note that the list is complete now.

    Only for the database that sends the orders: after a restore the list would prove nothing any more.
    """
    noted = _noted(installation)
    if noted is None:
        return
    sent = Transfer.objects.filter(submitted_at__isnull=False).order_by("-created_at")
    newest = reversed(sent.values_list("pk", flat=True)[:COMPARED])
    lacking = [*([] if noted else [START]), *(each for each in newest if each not in noted)]
    if not lacking or _push(installation, lacking):
        redis.try_call(lambda client: client.set(_complete_key(installation), 1, ex=COMPLETE_SECONDS))


def was_complete(installation: str) -> bool:
    """Whether the list had each order that was sent, some minutes ago at most."""
    return bool(redis.try_call(lambda client: client.exists(_complete_key(installation))))


def _noted(installation: str) -> set[str] | None:
    """None if Redis does not answer."""
    noted: Any = redis.try_call(lambda client: client.lrange(_key(installation), 0, -1))
    return None if noted is None else {each.decode() for each in noted}


def _push(installation: str, order_ids: Sequence[str]) -> bool:
    """Returns whether Redis has them."""

    def push(client: Redis) -> object:
        pipeline = client.pipeline()
        pipeline.lpush(_key(installation), *order_ids)
        pipeline.ltrim(_key(installation), 0, KEPT - 1)
        return pipeline.execute()

    return redis.try_call(push) is not None


def _key(installation: str) -> str:
    return f"sent_orders:{installation}"


def _complete_key(installation: str) -> str:
    return f"{_key(installation)}:complete"
