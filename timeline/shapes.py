from typing import Annotated, Any, TypedDict

from core.clock import iso
from core.http.objects import Instant, one_of, up_to
from timeline import entries
from timeline.entries import CLOCK, TimelineEntryType


class TimelineEntry(TypedDict):
    at: Instant
    type: Annotated[str, one_of([type.value for type in TimelineEntryType])]
    actor: Annotated[
        str | None,
        up_to(160),
        "Who caused it: `key:` with the first characters of one of your keys, `person:` with the user "
        "name of one of your people, `link:` with the payment link of a visitor, `bank:` with its name, "
        "`staff`, `policy:` with its name, or `clock` for the service itself. Null if unknown.",
    ]
    request_id: Annotated[
        str | None,
        {"pattern": "^[A-Za-z0-9._-]{1,64}$"},
        "The `X-Request-Id` of the request that caused it, or the id of the service's task.",
    ]
    summary: Annotated[str, "For people. The wording may change; programs read the other fields."]
    details: Annotated[dict[str, Any], "Fields of this type; amounts are satang."]


def public_entry(entry: entries.TimelineEntry) -> TimelineEntry:
    """The entry as merchants see it: without names and notes of staff."""
    return {
        "at": iso(entry.at),
        "type": entry.type,
        "actor": _public_actor(entry.actor),
        "request_id": entry.request_id or None,
        "summary": str(entry.summary),
        "details": entry.details,
    }


def _public_actor(actor: str) -> str | None:
    """Members of staff and commands are `staff`; tasks are the `clock`."""
    kind = actor.partition(":")[0]
    return {"staff": "staff", "command": "staff", "task": CLOCK, "": None}.get(kind, actor)
