"""What happens to transfers, written down with who caused it."""

from datetime import datetime
from typing import Any

from core import request_context
from transfers.models import Transfer, TransferEvent, TransferEventType, TransferState


def transition(transfer: Transfer, target: TransferState, *, at: datetime, **fields: Any) -> None:
    """Change the state, end the lease and record the event. Raises IllegalTransition."""
    transfer.transition(target, **({"lease_until": None} | fields))
    record_event(transfer.id, TransferEventType(target), at=at)


def record_event(order_id: str, type: TransferEventType, *, at: datetime, answer: str = "") -> None:
    """said: what the bank answered to an inquiry."""
    cause = request_context.current()
    TransferEvent.objects.create(
        transfer_id=order_id,
        type=type,
        answer=answer,
        actor=cause.actor,
        request_id=cause.request_id,
        created_at=at,
    )


def last_event_type(order_id: str) -> TransferEventType | None:
    """The newest step of a transfer."""
    newest = TransferEvent.objects.filter(transfer=order_id).order_by("-pk").first()
    return None if newest is None else TransferEventType(newest.type)
