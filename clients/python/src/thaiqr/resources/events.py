"""All events, also those that no webhook received."""

from thaiqr import models
from thaiqr.calls import Call, Instant, Mode, Resource, get, list_query, listing, operation, path
from thaiqr.choices import EventType
from thaiqr.paging import PAGE_SIZE, Listing, by_cursor, by_sequence


class Events(Resource[Mode]):
    """`client.events`: all events, also those that no webhook received."""

    @operation
    def get(self, event_id: str) -> Call[models.Event]:
        """Read an event."""
        return get(path("/v1/events/{event_id}", event_id=event_id), models.read_event)

    @listing
    def list(
        self,
        *,
        event: EventType | None = None,
        start_date: Instant | None = None,
        end_date: Instant | None = None,
        timezone: str | None = None,
        after: str | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Listing[models.Event]:
        """List events, the newest first."""
        query = list_query(
            page_size,
            event=event,
            start_date=start_date,
            end_date=end_date,
            timezone=timezone,
            after=after,
        )
        return Listing("/v1/events", "events", models.read_event, query, by_cursor("event_id"))

    @listing
    def follow(
        self, *, after_sequence: int = 0, event: EventType | None = None, page_size: int = PAGE_SIZE
    ) -> Listing[models.Event]:
        """List the events after a number, the oldest first, each once and without gaps.

        Keep the `sequence` of the last event that you handled, and start there next time.
        """
        query = list_query(page_size, after_sequence=after_sequence, event=event)
        return Listing("/v1/events", "events", models.read_event, query, by_sequence)
