from collections.abc import Sequence
from typing import Any

from django.db.models import Prefetch, prefetch_related_objects
from rest_framework.request import Request

from core import clock
from core.http import api, paging
from core.http.responses import ApiResponse
from counts import listing
from counts.lists import period_of
from idempotency.services import Job
from idempotency.views import idempotent
from merchants.api import MerchantViewSet, merchant_of
from webhooks import destinations, endpoints, events, feed, openapi as docs, redelivery, shapes
from webhooks.filters import EVENTS, matching_deliveries
from webhooks.models import Delivery, DeliveryAttempt, Endpoint


class WebhookViewSet(MerchantViewSet):
    @docs.create
    @idempotent
    def create(self, request: Request) -> Job:
        values = api.read_body(docs.create, request)
        endpoint = endpoints.prepare(merchant=merchant_of(request), now=clock.now(), **values)

        def work() -> shapes.WebhookObject:
            endpoints.store(endpoint)
            return shapes.webhook_object(endpoint)

        return work

    @docs.list_
    def list(self, request: Request) -> ApiResponse:
        query = api.read_query(docs.list_, request)
        rows = Endpoint.objects.of(merchant_of(request)).webhooks().select_related("health")
        return paging.page(rows, query, "webhooks", shapes.webhook_object)

    @docs.retrieve
    def retrieve(self, request: Request, webhook_id: str) -> shapes.WebhookObject:
        return shapes.webhook_object(endpoints.find(merchant_of(request), webhook_id))

    @docs.change
    def partial_update(self, request: Request, webhook_id: str) -> shapes.WebhookObject:
        values, now = api.read_body(docs.change, request), clock.now()
        found = endpoints.find(merchant_of(request), webhook_id)
        moved = endpoints.move(found, values.pop("url", found.url), now=now)
        return shapes.webhook_object(endpoints.update(found, now=now, moved=moved, **values))

    @docs.destroy
    def destroy(self, request: Request, webhook_id: str) -> ApiResponse:
        endpoints.delete(endpoints.find(merchant_of(request), webhook_id), now=clock.now())
        return ApiResponse(204, b"")

    @docs.secret
    def secret(self, request: Request, webhook_id: str) -> shapes.WebhookSecret:
        secret = endpoints.reveal_secret(endpoints.find(merchant_of(request), webhook_id))
        return {"webhook_id": webhook_id, "secret": secret}

    @docs.rotate_secret
    @idempotent
    def rotate_secret(self, request: Request, webhook_id: str) -> Job:
        values, merchant, now = api.read_body(docs.rotate_secret, request), merchant_of(request), clock.now()
        # Without the secret, because the response is stored for repeated requests.
        return lambda: shapes.webhook_object(
            endpoints.rotate_secret(endpoints.find(merchant, webhook_id), now=now, **values)
        )


ATTEMPTS = Prefetch("attempt_set", DeliveryAttempt.objects.order_by("id"))


def load_attempts(deliveries: Sequence[Delivery]) -> None:
    prefetch_related_objects(deliveries, ATTEMPTS)


def _deliveries(endpoint: Endpoint, query: dict[str, Any]) -> ApiResponse:
    wanted = matching_deliveries(
        endpoint.id, event=query.get("event"), state=query.get("state"), **period_of(query)
    )
    return listing.response(wanted, query, "deliveries", shapes.delivery_object, load=load_attempts)


class EventViewSet(MerchantViewSet):
    lists_read_replica = False  # who reads the feed numbers its events

    @docs.list_events
    def list(self, request: Request) -> ApiResponse:
        query, merchant_id = api.read_query(docs.list_events, request), merchant_of(request).id
        if "after_sequence" in query:
            page = feed.page(merchant_id, after_sequence=query["after_sequence"], limit=query["limit"])
            shown = [shapes.event_object(body, sequence) for sequence, body in page.events]
            return ApiResponse.of({"events": shown, "total": page.total, "limit": query["limit"]})
        wanted = EVENTS.matching(merchant_id, query.get("event"), **period_of(query))
        found = listing.read(wanted, query)
        sequences = feed.sequences(merchant_id, [event.id for event in found.rows])
        shown = [shapes.event_object(event.body, sequences.get(event.id)) for event in found.rows]
        return paging.page_response(shown, found.total, query, "events")

    @docs.get_event
    def retrieve(self, request: Request, event_id: str) -> shapes.EventObject:
        merchant = merchant_of(request)
        event = events.find(merchant=merchant, event_id=event_id)
        sequences = feed.sequences(merchant.id, [event.id])
        return shapes.event_object(event.body, sequences.get(event.id))


class DeliveryViewSet(MerchantViewSet):
    @docs.list_deliveries
    def list(self, request: Request, webhook_id: str) -> ApiResponse:
        query = api.read_query(docs.list_deliveries, request)
        return _deliveries(endpoints.find(merchant_of(request), webhook_id), query)

    @docs.test
    @idempotent
    def test(self, request: Request, webhook_id: str) -> Job:
        merchant, now = merchant_of(request), clock.now()
        return lambda: shapes.delivery_object(redelivery.test(endpoints.find(merchant, webhook_id), now=now))

    @docs.redeliver
    @idempotent
    def redeliver(self, request: Request, webhook_id: str, delivery_id: str) -> Job:
        merchant, now = merchant_of(request), clock.now()

        def work() -> shapes.DeliveryObject:
            webhook = endpoints.find(merchant, webhook_id)
            return shapes.delivery_object(redelivery.redeliver(webhook, delivery_id=delivery_id, now=now))

        return work

    @docs.replay
    @idempotent
    def replay(self, request: Request, webhook_id: str) -> Job:
        values, merchant, now = api.read_body(docs.replay, request), merchant_of(request), clock.now()

        def work() -> shapes.ReplayResultObject:
            done = redelivery.replay(endpoints.find(merchant, webhook_id), now=now, **values)
            return {"replayed": done.replayed, "has_more": done.has_more}

        return work


class DestinationViewSet(MerchantViewSet):
    @docs.create_destination
    @idempotent
    def create(self, request: Request) -> Job:
        values, merchant = api.read_body(docs.create_destination, request), merchant_of(request)
        return lambda: shapes.destination_object(
            destinations.create(merchant=merchant, now=clock.now(), **values)
        )

    @docs.list_destinations
    def list(self, request: Request) -> ApiResponse:
        query = api.read_query(docs.list_destinations, request)
        rows = Endpoint.objects.of(merchant_of(request)).destinations().select_related("health")
        return paging.page(rows, query, "destinations", shapes.destination_object)

    @docs.get_destination
    def retrieve(self, request: Request, destination_id: str) -> shapes.DestinationObject:
        return shapes.destination_object(destinations.find(merchant_of(request), destination_id))

    @docs.change_destination
    def partial_update(self, request: Request, destination_id: str) -> shapes.DestinationObject:
        values = api.read_body(docs.change_destination, request)
        found = destinations.find(merchant_of(request), destination_id)
        return shapes.destination_object(destinations.change(found, now=clock.now(), **values))

    @docs.delete_destination
    def destroy(self, request: Request, destination_id: str) -> ApiResponse:
        endpoints.delete(destinations.find(merchant_of(request), destination_id), now=clock.now())
        return ApiResponse(204, b"")

    @docs.test_destination
    @idempotent
    def test(self, request: Request, destination_id: str) -> Job:
        merchant, now = merchant_of(request), clock.now()
        return lambda: shapes.delivery_object(
            redelivery.test(destinations.find(merchant, destination_id), now=now)
        )

    @docs.list_destination_deliveries
    def deliveries(self, request: Request, destination_id: str) -> ApiResponse:
        query = api.read_query(docs.list_destination_deliveries, request)
        return _deliveries(destinations.find(merchant_of(request), destination_id), query)
