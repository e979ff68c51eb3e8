"""Run code as an actor, as the admin, the API and tasks do."""

from collections.abc import Iterator
from contextlib import contextmanager

from core import request_context


@contextmanager
def acting_as(actor: str, *, request_id: str = "") -> Iterator[None]:
    """Within the block `request_context.current()` names this actor, such as `staff:somsri`."""
    before = request_context.current()
    request_context.begin(actor=actor, request_id=request_id or before.request_id, address=before.address)
    try:
        yield
    finally:
        request_context.begin(actor=before.actor, request_id=before.request_id, address=before.address)
