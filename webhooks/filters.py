"""The lists of events and deliveries and what they are filtered by."""

from itertools import product
from typing import Any

from counts.lists import CountedList, ListFilter
from webhooks.models import DESTINATION_PING, PING, Delivery, DeliveryState, Event, EventType

EVENT_TYPES = (*EventType, PING, DESTINATION_PING)
EVENTS = CountedList("events", Event, kind_columns=("type",), kinds=EVENT_TYPES, is_merged=True)
DELIVERIES = CountedList(
    "deliveries",
    Delivery,
    kind_columns=("event_type", "state"),
    kinds=tuple(f"{event_type}/{state}" for event_type, state in product(EVENT_TYPES, DeliveryState)),
    owner_column="endpoint_id",
)


def matching_deliveries(
    endpoint_id: str, *, event: str | None = None, state: str | None = None, **period: Any
) -> ListFilter[Delivery]:
    """The deliveries of an endpoint, of one event type or state if given, within `start` and `end`."""
    if event is None and state is None:
        return DELIVERIES.matching(endpoint_id, **period)
    wanted = product([event] if event else EVENT_TYPES, [state] if state else DeliveryState.values)
    kinds = [f"{event_type}/{wanted_state}" for event_type, wanted_state in wanted]
    return ListFilter(DELIVERIES, endpoint_id, kinds, **period)
