"""What happens to transfers, written down with who caused it."""

from datetime import datetime
from typing import Any

from core import origin
from transfers.models import State, Step, Transfer, What


def move(transfer: Transfer, target: State, *, at: datetime, **fields: Any) -> None:
    """Change state and tell of it, in the caller's transaction. Raises IllegalMove."""
    transfer.become(target, **fields)
    note(transfer.id, What(target), at=at)


def note(order_id: str, what: What, *, at: datetime, said: str = "") -> None:
    """said: what the bank answered to an inquiry."""
    cause = origin.current()
    Step.objects.create(
        transfer_id=order_id, what=what, said=said, actor=cause.actor, request_id=cause.request_id, at=at
    )


def last(order_id: str) -> What | None:
    """The newest step of a transfer."""
    newest = Step.objects.filter(transfer=order_id).order_by("-pk").first()
    return None if newest is None else What(newest.what)
