from django.db.models import Prefetch
from rest_framework.request import Request

from core import api, clock, paging
from core.http import Answer
from idempotency.services import Job
from idempotency.views import idempotent
from merchants.api import MerchantViewSet, merchant_of
from webhooks import endpoints, events, replays
from webhooks import journal_openapi as docs
from webhooks.journal import REPLAY_REQUEST, DeliveryQuery, EventQuery
from webhooks.models import Attempt, Delivery, DeliveryState, Event
from webhooks.replays import ON_ITS_WAY
from webhooks.shapes import delivery_object, event_object

EVENT_QUERY, DELIVERY_QUERY = EventQuery(), DeliveryQuery()
ATTEMPTS = Prefetch("attempt_set", Attempt.objects.order_by("id"))


class EventViewSet(MerchantViewSet):
    """What happened, as it was sent."""

    @docs.list_events
    def list(self, request: Request) -> Answer:
        query = api.read_query(EVENT_QUERY, request)
        rows = Event.objects.of(merchant_of(request))
        if "event" in query:
            rows = rows.filter(type=query["event"])
        return paging.page(paging.between(rows, query), query, "events", event_object)

    @docs.get_event
    def retrieve(self, request: Request, event_id: str) -> Answer:
        event = events.find(merchant=merchant_of(request), event_id=event_id)
        return Answer(200, bytes(event.body))


class DeliveryViewSet(MerchantViewSet):
    """How a webhook was told, and telling it again."""

    @docs.list_deliveries
    def list(self, request: Request, webhook_id: str) -> Answer:
        query = api.read_query(DELIVERY_QUERY, request)
        endpoint = endpoints.find(merchant=merchant_of(request), webhook_id=webhook_id)
        rows = Delivery.objects.filter(endpoint=endpoint).select_related("event").defer("event__body")
        if "state" in query:
            is_waiting = query["state"] == DeliveryState.PENDING
            rows = rows.filter(state__in=ON_ITS_WAY if is_waiting else [query["state"]])
        if "event" in query:
            rows = rows.filter(event__type=query["event"])
        return paging.page(rows.prefetch_related(ATTEMPTS), query, "deliveries", delivery_object)

    @docs.test
    @idempotent
    def test(self, request: Request, webhook_id: str) -> Job:
        merchant, now = merchant_of(request), clock.now()

        def work() -> Answer:
            return Answer.of(delivery_object(replays.test(merchant=merchant, webhook_id=webhook_id, now=now)))

        return work

    @docs.redeliver
    @idempotent
    def redeliver(self, request: Request, webhook_id: str, delivery_id: str) -> Job:
        merchant, now = merchant_of(request), clock.now()

        def work() -> Answer:
            delivery = replays.redeliver(
                merchant=merchant, webhook_id=webhook_id, delivery_id=delivery_id, now=now
            )
            return Answer.of(delivery_object(delivery))

        return work

    @docs.replay
    @idempotent
    def replay(self, request: Request, webhook_id: str) -> Job:
        asked, merchant, now = api.read_body(REPLAY_REQUEST, request), merchant_of(request), clock.now()

        def work() -> Answer:
            done = replays.replay(merchant=merchant, webhook_id=webhook_id, now=now, **asked)
            return Answer.of({"replayed": done.replayed, "has_more": done.has_more})

        return work
