"""The history of transfers: their events, and results of banks that contradict a final state here."""

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from core import ids, request_context
from core.database import rows
from core.database.state_machines import transition_all
from transfers import for_staff
from transfers.models import Transfer, TransferContradiction, TransferEvent, TransferEventType, TransferState

log = logging.getLogger("transfers")


def transition(*transfers: Transfer, target: TransferState, at: datetime, **fields: Any) -> None:
    """Change the states, end the leases and record the events: two statements. Raises IllegalTransition."""
    changes = {"lease_until": None} | fields
    transition_all([(transfer, changes) for transfer in transfers], target)
    record_events({transfer.id: TransferEventType(target) for transfer in transfers}, at=at)


def record_events(types: Mapping[str, TransferEventType], *, at: datetime, answer: str = "") -> None:
    """Record an event of each order, with one statement. answer: the bank's answer to an inquiry."""
    columns = {"answer": answer, "created_at": at, **request_context.columns()}
    rows.insert_many([TransferEvent(transfer_id=key, type=type, **columns) for key, type in types.items()])


def last_event_type(order_id: str) -> TransferEventType | None:
    newest = TransferEvent.objects.filter(transfer=order_id).order_by("-pk").first()
    return None if newest is None else TransferEventType(newest.type)


def record_contradiction(
    subject_id: str, *, state: str, answer: str, route: str, now: datetime, **fields: Any
) -> None:
    """Store that `route` reports another end of an order, or of a card payment, than ours.

    state: how it ended here; answer: how it ended there. The other fields are those of TransferContradiction.
    The same contradiction again changes nothing, also after staff resolved it.
    """
    contradiction = TransferContradiction(
        id=ids.new("ctr_", now),
        subject_id=subject_id,
        state=state,
        answer=answer,
        route=route,
        created_at=now,
        **request_context.columns(),
        **fields,
    )
    if rows.insert_once(contradiction, []):
        for_staff.report(contradiction)
    log.error("%s is %s here, and %s reports %s", subject_id, state, route, answer)
