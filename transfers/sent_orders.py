"""The ids of the last sent orders, in Redis: a record outside of the database, to compare it with.

A copy of a disk that is put back has nothing inside by which it can be told from the original. This list
shows it: it has orders that the database does not have. Its data may be lost; then it is filled again.
"""

from collections.abc import Sequence

from redis import Redis

from core import redis
from transfers.models import DatabaseMark, Transfer

KEPT = 200
# The list is never empty, so that an empty one means that Redis lost it.
START = "-"


def note(order_id: str) -> None:
    """Add an order that is about to be sent: after the commit that submitted it, before the call."""
    installation = DatabaseMark.objects.values_list("installation", flat=True).first()
    if installation is not None:
        _push(str(installation), [order_id])


def missing_here(installation: str) -> list[str] | None:
    """The noted orders that this database has not submitted. None if Redis does not know.

    An empty list in Redis is filled with the newest orders of the database.
    """
    noted = redis.try_call(lambda client: client.lrange(_key(installation), 0, -1))
    if noted is None:
        return None
    orders = {each.decode() for each in noted}  # type: ignore[union-attr]  # the client is not asynchronous
    if not orders:
        _fill(installation)
        return None
    known = Transfer.objects.filter(pk__in=orders - {START}, submitted_at__isnull=False)
    return sorted(orders - {START} - set(known.values_list("pk", flat=True)))


def _fill(installation: str) -> None:
    newest = Transfer.objects.filter(submitted_at__isnull=False).order_by("-created_at")
    _push(installation, [START, *newest.values_list("pk", flat=True)[: KEPT - 1]])


def _push(installation: str, order_ids: Sequence[str]) -> None:
    def push(client: Redis) -> object:
        pipeline = client.pipeline()
        pipeline.lpush(_key(installation), *order_ids)
        pipeline.ltrim(_key(installation), 0, KEPT - 1)
        return pipeline.execute()

    redis.try_call(push)


def _key(installation: str) -> str:
    return f"sent_orders:{installation}"
