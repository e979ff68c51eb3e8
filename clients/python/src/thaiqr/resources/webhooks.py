"""Endpoints of programs and of people, and their deliveries."""

from collections.abc import Sequence

from thaiqr import models, webhooks
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

DELIVERY = reader(models.Delivery)
WEBHOOK = reader(models.Webhook)
DESTINATION = reader(models.EventDestination)
ONE = "/v1/destinations/{destination_id}"


class Webhooks(Resource[Mode]):
    """`client.webhooks`: endpoints, their secrets and deliveries. `unwrap` verifies what you receive."""

    unwrap = staticmethod(webhooks.unwrap)

    @operation
    def create(
        self,
        *,
        url: str,
        events: Sequence[EventType],
        secret: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[models.Webhook]:
        """Register an endpoint. It must answer a test message now. Without a secret one is made."""
        fields = {"url": url, "events": [*events], "secret": secret}
        return post("/v1/webhooks", WEBHOOK, idempotency_key, **fields)

    @operation
    def get(self, webhook_id: str) -> Call[models.Webhook]:
        """Read an endpoint."""
        return get(path("/v1/webhooks/{webhook_id}", webhook_id=webhook_id), WEBHOOK)

    @listing
    def list(self, *, page_size: int = PAGE_SIZE) -> Listing[models.Webhook]:
        """List the endpoints, the newest first."""
        return Listing("/v1/webhooks", "webhooks", WEBHOOK, list_query(page_size), by_offset)

    @operation
    def change(
        self,
        webhook_id: str,
        *,
        url: str | None = None,
        events: Sequence[EventType] | None = None,
        status: WebhookStatus | None = None,
    ) -> Call[models.Webhook]:
        """Change an endpoint. What is not given stays."""
        where = path("/v1/webhooks/{webhook_id}", webhook_id=webhook_id)
        return patch(where, WEBHOOK, url=url, events=None if events is None else [*events], status=status)

    @operation
    def delete(self, webhook_id: str) -> Call[None]:
        """Delete an endpoint."""
        return delete(path("/v1/webhooks/{webhook_id}", webhook_id=webhook_id))

    @operation
    def get_secret(self, webhook_id: str) -> Call[models.WebhookSecret]:
        """Read the secret of an endpoint."""
        where = path("/v1/webhooks/{webhook_id}/secret", webhook_id=webhook_id)
        return get(where, reader(models.WebhookSecret))

    @operation
    def rotate_secret(
        self, webhook_id: str, *, secret: str | None = None, idempotency_key: str | None = None
    ) -> Call[models.Webhook]:
        """Renew the secret. The old one also signs until its 24 hours are over."""
        where = path("/v1/webhooks/{webhook_id}/secret/rotate", webhook_id=webhook_id)
        return post(where, WEBHOOK, idempotency_key, secret=secret)

    @operation
    def test(self, webhook_id: str, *, idempotency_key: str | None = None) -> Call[models.Delivery]:
        """Send a test message."""
        where = path("/v1/webhooks/{webhook_id}/test", webhook_id=webhook_id)
        return post(where, DELIVERY, idempotency_key)

    @listing
    def deliveries(
        self,
        webhook_id: str,
        *,
        state: DeliveryState | None = None,
        event: EventType | None = None,
        start_date: Instant | None = None,
        end_date: Instant | None = None,
        timezone: str | None = None,
        after: str | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Listing[models.Delivery]:
        """List what was sent to an endpoint, the newest first."""
        days = {"start_date": start_date, "end_date": end_date, "timezone": timezone}
        query = list_query(page_size, state=state, event=event, after=after, **days)
        where = path("/v1/webhooks/{webhook_id}/deliveries", webhook_id=webhook_id)
        return Listing(where, "deliveries", DELIVERY, query, by_cursor("delivery_id"))

    @operation
    def redeliver(
        self, webhook_id: str, delivery_id: str, *, idempotency_key: str | None = None
    ) -> Call[models.Delivery]:
        """Send one event again."""
        where = path(
            "/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver",
            webhook_id=webhook_id,
            delivery_id=delivery_id,
        )
        return post(where, DELIVERY, idempotency_key)

    @operation
    def replay(
        self, webhook_id: str, *, since: Instant, idempotency_key: str | None = None
    ) -> Call[models.ReplayResult]:
        """Send all events since a time again that the endpoint did not receive."""
        where = path("/v1/webhooks/{webhook_id}/replay", webhook_id=webhook_id)
        return post(where, reader(models.ReplayResult), idempotency_key, since=since)


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
    def test(self, destination_id: str, *, idempotency_key: str | None = None) -> Call[models.Delivery]:
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
    ) -> Listing[models.Delivery]:
        """List what a destination was told of, the newest first."""
        days = {"start_date": start_date, "end_date": end_date, "timezone": timezone}
        query = list_query(page_size, state=state, event=event, after=after, **days)
        where = path(f"{ONE}/deliveries", destination_id=destination_id)
        return Listing(where, "deliveries", DELIVERY, query, by_cursor("delivery_id"))
