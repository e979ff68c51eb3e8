"""The audit trail of endpoints: each act is written in the commit of what it tells of."""

from datetime import datetime

from core import origin
from webhooks.models import Act, EndpointAct

MERCHANT, SYSTEM = "merchant", "system"


def staff(username: str) -> str:
    """The actor that a member of the staff is."""
    return f"staff:{username}"


def draft(endpoint_id: str, act: Act, *, actor: str, at: datetime, detail: str = "") -> EndpointAct:
    """An act that is not stored yet. `detail` says why, or what was before; never a secret."""
    cause = origin.current()
    return EndpointAct(
        endpoint_id=endpoint_id,
        act=act,
        detail=detail,
        actor=actor,
        caused_by=cause.actor,
        request_id=cause.request_id,
        at=at,
    )


def note(endpoint_id: str, act: Act, *, actor: str, at: datetime, detail: str = "") -> None:
    """Write an act down in the caller's transaction."""
    draft(endpoint_id, act, actor=actor, at=at, detail=detail).save(force_insert=True)
