from rest_framework.request import Request

from core import api, clock, paging
from core.http import Answer
from idempotency.services import Draft, Job
from idempotency.views import idempotent
from merchants.api import MerchantViewSet, merchant_of
from webhooks import endpoints
from webhooks import openapi as docs
from webhooks.models import Endpoint
from webhooks.serializers import WEBHOOK_REQUEST
from webhooks.shapes import webhook_object

PAGE_QUERY = paging.PageQuery()


class WebhookViewSet(MerchantViewSet):
    """Register, read and delete webhooks."""

    @docs.create
    @idempotent
    def create(self, request: Request) -> Job:
        asked = api.read_body(WEBHOOK_REQUEST, request)
        endpoint = endpoints.draft(merchant=merchant_of(request), now=clock.now(), **asked)
        return Draft(Answer.of(webhook_object(endpoint)), [endpoint])

    @docs.list_
    def list(self, request: Request) -> Answer:
        query = api.read_query(PAGE_QUERY, request)
        return paging.page(Endpoint.objects.of(merchant_of(request)), query, "webhooks", webhook_object)

    @docs.retrieve
    def retrieve(self, request: Request, webhook_id: str) -> Answer:
        return Answer.of(webhook_object(endpoints.find(merchant=merchant_of(request), webhook_id=webhook_id)))

    @docs.destroy
    def destroy(self, request: Request, webhook_id: str) -> Answer:
        endpoints.delete(merchant=merchant_of(request), webhook_id=webhook_id, now=clock.now())
        return Answer(204, b"")
