from collections.abc import Sequence

from django.http import HttpResponse
from rest_framework.request import Request

from core import clock
from core.http import api
from core.http.responses import ApiResponse
from counts import listing
from idempotency.services import Job
from idempotency.views import idempotent
from links import openapi as docs, services
from links.models import LINKS, PaymentLink
from links.shapes import PaymentLinkObject, payment_link_object
from merchants.api import MerchantViewSet, merchant_of
from qrcodes.images import DRAW, MEDIA_TYPES, PNG


class PaymentLinkViewSet(MerchantViewSet):
    @docs.create
    @idempotent
    def create(self, request: Request) -> Job:
        fields, merchant, now = api.read_body(docs.create, request), merchant_of(request), clock.now()
        return lambda: payment_link_object(services.create(merchant=merchant, now=now, **fields), 0, now)

    @docs.list_
    def list(self, request: Request) -> ApiResponse:
        query, merchant, now = api.read_query(docs.list_, request), merchant_of(request), clock.now()
        codes: dict[str, int] = {}

        def load(links: Sequence[PaymentLink]) -> None:
            codes.update(services.open_codes(links, now))

        def show(link: PaymentLink) -> PaymentLinkObject:
            return payment_link_object(link, codes.get(link.id, 0), now)

        return listing.of_owner(
            LINKS, merchant.id, query, show, selective="reference", plural="payment_links", load=load
        )

    @docs.retrieve
    def retrieve(self, request: Request, payment_link_id: str) -> PaymentLinkObject:
        return _show(services.find(payment_link_id, merchant=merchant_of(request)))

    @docs.picture
    def picture(self, request: Request, payment_link_id: str) -> HttpResponse:
        image_format = api.read_query(docs.picture, request).get("format", PNG)
        link = services.find(payment_link_id, merchant=merchant_of(request))
        return HttpResponse(DRAW[image_format](link.url), content_type=MEDIA_TYPES[image_format])

    @docs.deactivate
    @idempotent
    def deactivate(self, request: Request, payment_link_id: str) -> Job:
        merchant, now = merchant_of(request), clock.now()
        return lambda: _show(services.deactivate(services.find(payment_link_id, merchant=merchant), now=now))


def _show(link: PaymentLink) -> PaymentLinkObject:
    now = clock.now()
    return payment_link_object(link, services.open_codes([link], now).get(link.id, 0), now)
