"""The history of an endpoint: each action is recorded in the commit of its change."""

from datetime import datetime

from core import request_context
from webhooks.models import EndpointAction, EndpointActionType

MERCHANT, SYSTEM = "merchant", "system"


def staff_initiator(username: str) -> str:
    """The initiator name of a member of staff."""
    return f"staff:{username}"


def new(
    endpoint_id: str, action_type: EndpointActionType, *, initiator: str, now: datetime, detail: str = ""
) -> EndpointAction:
    """Build an action without storing it. `detail` is the reason or the old value, never a secret."""
    cause = request_context.current()
    return EndpointAction(
        endpoint_id=endpoint_id,
        type=action_type,
        detail=detail,
        initiator=initiator,
        actor=cause.actor,
        request_id=cause.request_id,
        created_at=now,
    )


def record(
    endpoint_id: str, action_type: EndpointActionType, *, initiator: str, now: datetime, detail: str = ""
) -> None:
    """Record an action in the caller's transaction."""
    new(endpoint_id, action_type, initiator=initiator, now=now, detail=detail).save(force_insert=True)
