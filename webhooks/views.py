from collections.abc import Sequence

from django.db.models import Prefetch, prefetch_related_objects
from rest_framework.request import Request

from core import api, clock, paging
from core.http import ApiResponse
from counts import listing
from counts.lists import period_of
from idempotency.services import Job
from idempotency.views import idempotent
from merchants.api import MerchantViewSet, merchant_of
from webhooks import endpoints, events, feed, redelivery
from webhooks import openapi as docs
from webhooks.filters import EVENTS, matching_deliveries
from webhooks.models import Delivery, DeliveryAttempt, Endpoint
from webhooks.serializers import (
    REPLAY_REQUEST,
    SECRET_REQUEST,
    WEBHOOK_CHANGE,
    WEBHOOK_REQUEST,
    DeliveryQuery,
    EventQuery,
)
from webhooks.shapes import ReplayResultObject, WebhookSecret, delivery_object, event_object, webhook_object

PAGE_QUERY = paging.PageQuery()


class WebhookViewSet(MerchantViewSet):
    @docs.create
    @idempotent
    def create(self, request: Request) -> Job:
        values = api.read_body(WEBHOOK_REQUEST, request)
        endpoint = endpoints.prepare(merchant=merchant_of(request), now=clock.now(), **values)

        def work() -> ApiResponse:
            endpoints.store(endpoint)
            return ApiResponse.of(webhook_object(endpoint))

        return work

    @docs.list_
    def list(self, request: Request) -> ApiResponse:
        query = api.read_query(PAGE_QUERY, request)
        rows = Endpoint.objects.of(merchant_of(request)).select_related("health")
        return paging.page(rows, query, "webhooks", webhook_object)

    @docs.retrieve
    def retrieve(self, request: Request, webhook_id: str) -> ApiResponse:
        return ApiResponse.of(
            webhook_object(endpoints.find(merchant=merchant_of(request), webhook_id=webhook_id))
        )

    @docs.change
    def partial_update(self, request: Request, webhook_id: str) -> ApiResponse:
        values = api.read_body(WEBHOOK_CHANGE, request)
        endpoint = endpoints.update(
            merchant=merchant_of(request), webhook_id=webhook_id, now=clock.now(), **values
        )
        return ApiResponse.of(webhook_object(endpoint))

    @docs.destroy
    def destroy(self, request: Request, webhook_id: str) -> ApiResponse:
        endpoints.delete(merchant=merchant_of(request), webhook_id=webhook_id, now=clock.now())
        return ApiResponse(204, b"")

    @docs.secret
    def secret(self, request: Request, webhook_id: str) -> ApiResponse:
        secret = endpoints.reveal_secret(merchant=merchant_of(request), webhook_id=webhook_id)
        shown: WebhookSecret = {"webhook_id": webhook_id, "secret": secret}
        return ApiResponse.of(shown)

    @docs.rotate_secret
    @idempotent
    def rotate_secret(self, request: Request, webhook_id: str) -> Job:
        values, merchant, now = api.read_body(SECRET_REQUEST, request), merchant_of(request), clock.now()

        def work() -> ApiResponse:
            # Without the secret, because the response is stored for repeated requests.
            endpoint = endpoints.rotate_secret(merchant=merchant, webhook_id=webhook_id, now=now, **values)
            return ApiResponse.of(webhook_object(endpoint))

        return work


EVENT_QUERY, DELIVERY_QUERY = EventQuery(), DeliveryQuery()
ATTEMPTS = Prefetch("attempt_set", DeliveryAttempt.objects.order_by("id"))


def load_attempts(deliveries: Sequence[Delivery]) -> None:
    """Read the attempts of these deliveries by one query."""
    prefetch_related_objects(deliveries, ATTEMPTS)


class EventViewSet(MerchantViewSet):
    lists_read_replica = False  # who reads the feed numbers its events

    @docs.list_events
    def list(self, request: Request) -> ApiResponse:
        query, merchant_id = api.read_query(EVENT_QUERY, request), merchant_of(request).id
        if "after_sequence" in query:
            return _feed_page(merchant_id, query["after_sequence"], query["limit"])
        wanted = EVENTS.matching(merchant_id, query.get("event"), **period_of(query))
        found = listing.read(wanted, query)
        sequences = feed.sequences(merchant_id, [event.id for event in found.rows])
        shown = [event_object(bytes(event.body), sequences.get(event.id)) for event in found.rows]
        return paging.page_response(shown, found.total, query, "events")

    @docs.get_event
    def retrieve(self, request: Request, event_id: str) -> ApiResponse:
        merchant = merchant_of(request)
        event = events.find(merchant=merchant, event_id=event_id)
        sequences = feed.sequences(merchant.id, [event.id])
        return ApiResponse.of(event_object(bytes(event.body), sequences.get(event.id)))


def _feed_page(merchant_id: str, after_sequence: int, limit: int) -> ApiResponse:
    page = feed.page(merchant_id, after_sequence=after_sequence, limit=limit)
    shown = [event_object(body, sequence) for sequence, body in page.events]
    return ApiResponse.of({"events": shown, "total": page.total, "limit": limit})


class DeliveryViewSet(MerchantViewSet):
    @docs.list_deliveries
    def list(self, request: Request, webhook_id: str) -> ApiResponse:
        query = api.read_query(DELIVERY_QUERY, request)
        endpoint = endpoints.find(merchant=merchant_of(request), webhook_id=webhook_id)
        wanted = matching_deliveries(
            endpoint.id, event=query.get("event"), state=query.get("state"), **period_of(query)
        )
        return listing.response(wanted, query, "deliveries", delivery_object, load=load_attempts)

    @docs.test
    @idempotent
    def test(self, request: Request, webhook_id: str) -> Job:
        merchant, now = merchant_of(request), clock.now()

        def work() -> ApiResponse:
            return ApiResponse.of(
                delivery_object(redelivery.test(merchant=merchant, webhook_id=webhook_id, now=now))
            )

        return work

    @docs.redeliver
    @idempotent
    def redeliver(self, request: Request, webhook_id: str, delivery_id: str) -> Job:
        merchant, now = merchant_of(request), clock.now()

        def work() -> ApiResponse:
            delivery = redelivery.redeliver(
                merchant=merchant, webhook_id=webhook_id, delivery_id=delivery_id, now=now
            )
            return ApiResponse.of(delivery_object(delivery))

        return work

    @docs.replay
    @idempotent
    def replay(self, request: Request, webhook_id: str) -> Job:
        values, merchant, now = api.read_body(REPLAY_REQUEST, request), merchant_of(request), clock.now()

        def work() -> ApiResponse:
            done = redelivery.replay(merchant=merchant, webhook_id=webhook_id, now=now, **values)
            shown: ReplayResultObject = {"replayed": done.replayed, "has_more": done.has_more}
            return ApiResponse.of(shown)

        return work
