"""The list of events and what it is filtered by."""

from counts.lists import CountedList
from webhooks.models import PING, Event, EventType

EVENTS = CountedList("events", Event, kind_columns=("type",), kinds=(*EventType, PING))
