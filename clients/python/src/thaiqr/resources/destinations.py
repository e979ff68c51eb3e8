"""LINE chats and email addresses that get messages about events."""

from collections.abc import Sequence

from thaiqr import models
from thaiqr.calls import (
    Call,
    Instant,
    Mode,
    Resource,
    delete,
    get,
    list_query,
    listing,
    operation,
    patch,
    path,
    post,
)
from thaiqr.choices import DeliveryState, DestinationType, EventType, Language, WebhookStatus
from thaiqr.decoding import reader
from thaiqr.paging import PAGE_SIZE, Listing, by_cursor, by_offset

DELIVERY = reader(models.DestinationDelivery)
DESTINATION = reader(models.EventDestination)
ONE = "/v1/destinations/{destination_id}"


class Destinations(Resource[Mode]):
    """`client.destinations`: LINE chats and email addresses that get messages about events."""

    @operation
    def create(
        self,
        *,
        type: DestinationType,
        to: str,
        events: Sequence[EventType],
        token: str | None = None,
        language: Language | None = None,
        quiet_hours: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[models.EventDestination]:
        """Add a destination. `token`: of your LINE channel. `quiet_hours`: such as 22:00-07:00."""
        fields = {"type": type, "to": to, "token": token, "events": [*events], "language": language}
        return post("/v1/destinations", DESTINATION, idempotency_key, quiet_hours=quiet_hours, **fields)

    @operation
    def get(self, destination_id: str) -> Call[models.EventDestination]:
        """Read a destination."""
        return get(path(ONE, destination_id=destination_id), DESTINATION)

    @listing
    def list(self, *, page_size: int = PAGE_SIZE) -> Listing[models.EventDestination]:
        """List the destinations, the newest first."""
        return Listing("/v1/destinations", "destinations", DESTINATION, list_query(page_size), by_offset)

    @operation
    def change(
        self,
        destination_id: str,
        *,
        to: str | None = None,
        token: str | None = None,
        events: Sequence[EventType] | None = None,
        language: Language | None = None,
        quiet_hours: str | None = None,
        status: WebhookStatus | None = None,
    ) -> Call[models.EventDestination]:
        """Change a destination. What is not given stays. Empty `quiet_hours` end them."""
        return patch(
            path(ONE, destination_id=destination_id),
            DESTINATION,
            to=to,
            token=token,
            events=None if events is None else [*events],
            language=language,
            quiet_hours=quiet_hours,
            status=status,
        )

    @operation
    def delete(self, destination_id: str) -> Call[None]:
        """Delete a destination."""
        return delete(path(ONE, destination_id=destination_id))

    @operation
    def test(
        self, destination_id: str, *, idempotency_key: str | None = None
    ) -> Call[models.DestinationDelivery]:
        """Send a test message."""
        return post(path(f"{ONE}/test", destination_id=destination_id), DELIVERY, idempotency_key)

    @listing
    def deliveries(
        self,
        destination_id: str,
        *,
        state: DeliveryState | None = None,
        event: EventType | None = None,
        start_date: Instant | None = None,
        end_date: Instant | None = None,
        timezone: str | None = None,
        after: str | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Listing[models.DestinationDelivery]:
        """List what a destination was told of, the newest first."""
        query = list_query(
            page_size,
            state=state,
            event=event,
            start_date=start_date,
            end_date=end_date,
            timezone=timezone,
            after=after,
        )
        where = path(f"{ONE}/deliveries", destination_id=destination_id)
        return Listing(where, "deliveries", DELIVERY, query, by_cursor("delivery_id"))
