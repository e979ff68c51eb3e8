from rest_framework.request import Request

from core import api, clock, paging
from core.http import Answer
from idempotency.services import Job
from idempotency.views import idempotent
from merchants.api import MerchantViewSet, merchant_of
from webhooks import endpoints
from webhooks import openapi as docs
from webhooks.models import Endpoint
from webhooks.serializers import SECRET_REQUEST, WEBHOOK_CHANGE, WEBHOOK_REQUEST
from webhooks.shapes import webhook_object

PAGE_QUERY = paging.PageQuery()


class WebhookViewSet(MerchantViewSet):
    """Register, read, change and delete webhooks."""

    @docs.create
    @idempotent
    def create(self, request: Request) -> Job:
        asked = api.read_body(WEBHOOK_REQUEST, request)
        endpoint = endpoints.draft(merchant=merchant_of(request), now=clock.now(), **asked)

        def work() -> Answer:
            endpoints.store(endpoint)
            return Answer.of(webhook_object(endpoint))

        return work

    @docs.list_
    def list(self, request: Request) -> Answer:
        query = api.read_query(PAGE_QUERY, request)
        rows = Endpoint.objects.of(merchant_of(request)).select_related("health")
        return paging.page(rows, query, "webhooks", webhook_object)

    @docs.retrieve
    def retrieve(self, request: Request, webhook_id: str) -> Answer:
        return Answer.of(webhook_object(endpoints.find(merchant=merchant_of(request), webhook_id=webhook_id)))

    @docs.change
    def partial_update(self, request: Request, webhook_id: str) -> Answer:
        asked = api.read_body(WEBHOOK_CHANGE, request)
        endpoint = endpoints.change(
            merchant=merchant_of(request), webhook_id=webhook_id, now=clock.now(), **asked
        )
        return Answer.of(webhook_object(endpoint))

    @docs.destroy
    def destroy(self, request: Request, webhook_id: str) -> Answer:
        endpoints.delete(merchant=merchant_of(request), webhook_id=webhook_id, now=clock.now())
        return Answer(204, b"")

    @docs.secret
    def secret(self, request: Request, webhook_id: str) -> Answer:
        secret = endpoints.reveal_secret(merchant=merchant_of(request), webhook_id=webhook_id)
        return Answer.of({"webhook_id": webhook_id, "secret": secret})

    @docs.renew_secret
    @idempotent
    def renew_secret(self, request: Request, webhook_id: str) -> Job:
        asked, merchant, now = api.read_body(SECRET_REQUEST, request), merchant_of(request), clock.now()

        def work() -> Answer:
            # The object, without the secret: this answer is stored for repeats.
            endpoint = endpoints.renew_secret(merchant=merchant, webhook_id=webhook_id, now=now, **asked)
            return Answer.of(webhook_object(endpoint))

        return work
