"""Who causes a change, and by which request. Middleware and tasks set it; services record it."""

import hashlib
import random
import re
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple

from core import clock, ids

REQUEST_ID_PREFIX = "req_"
SAFE_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


class RequestContext(NamedTuple):
    """The context of a request or task; empty outside of them.

    actor: `key:ab12cd34`, `link:pl_...` for its visitor, `bank:sandbox`, `staff:somsri`,
        `person:malee` of a merchant, `task:payments.expire_due` or `command:audit`.
    request_id: the `X-Request-Id` of a request, or the id of a task.
    address: the IP address of the client.
    session: a digest of the key of a console session.
    needs_confirmation: tells whether staff must confirm who they are before an act that needs it.
    hides_personal_data: whether a page must not show names, accounts and messages of customers.
    """

    actor: str = ""
    request_id: str = ""
    address: str = ""
    session: str = ""
    hides_personal_data: bool = False
    needs_confirmation: Callable[[], bool] = lambda: False


_current: ContextVar[RequestContext] = ContextVar("origin", default=RequestContext())  # noqa: B039 (immutable)


def current() -> RequestContext:
    return _current.get()


def request_id_for(given: str) -> str:
    """Return the `X-Request-Id` of a client, or a new id if it is empty or not safe in logs and headers."""
    if SAFE_REQUEST_ID.fullmatch(given):
        return given
    # No secret, so without a system call, after which a thread waits for the interpreter.
    return ids.new(REQUEST_ID_PREFIX, clock.now(), random.randbytes)


def columns() -> dict[str, str]:
    """Return the values of `core.database.columns.CausedRow`."""
    return {"actor": current().actor, "request_id": current().request_id}


def begin(*, actor: str = "", request_id: str = "", address: str = "") -> None:
    """Start a request or a task: replace the whole context."""
    _current.set(RequestContext(actor, request_id, address))


def display_name(actor: str) -> str:
    """The user name of a member of staff or a person of a merchant; other actors as they are."""
    return actor.removeprefix("staff:").removeprefix("person:")


def actor_of(user: Any) -> str:
    """A user who is no staff is a person of a merchant."""
    return f"{'staff' if user.is_staff else 'person'}:{user.get_username()}"


def session_digest(key: str | None) -> str:
    """Tells sessions apart in records. The key itself would let others take over the session."""
    return hashlib.sha256(key.encode()).hexdigest()[:16] if key else ""


def set_actor(actor: str, *, session: str = "", hides_personal_data: bool = False) -> None:
    known = _current.get()
    _current.set(known._replace(actor=actor, session=session, hides_personal_data=hides_personal_data))


def hide_personal_data() -> None:
    """For the rest of the request, also from who may see it."""
    _current.set(_current.get()._replace(hides_personal_data=True))


def set_needs_confirmation(needs_confirmation: Callable[[], bool]) -> None:
    _current.set(_current.get()._replace(needs_confirmation=needs_confirmation))
