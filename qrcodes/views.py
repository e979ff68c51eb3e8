"""Make, read and end QR codes, and show their pictures."""

import hashlib
from functools import partial

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from rest_framework.request import Request

from core import clock, ids
from core.http import api, ignored_parameters, paging, received, responses
from core.http.api import get_or_head_only
from core.http.responses import ApiResponse
from idempotency.services import InsertJob, Job
from idempotency.views import idempotent, idempotent_insert
from merchants.api import MerchantViewSet, merchant_of
from merchants.authentication import ReadWithKey
from payments import search, usual_amounts
from payments.models import Payment
from qrcodes import images, openapi as docs, payment_page, qr_cards, services
from qrcodes.errors import InvalidFormat, QrCodeGone, QrCodeNotFound
from qrcodes.images import DRAW, MEDIA_TYPES, PNG, SVG
from qrcodes.models import word_of
from qrcodes.qr_cards import CardRequest
from qrcodes.serializers import IMAGE_FORMATS
from qrcodes.shapes import QrCodeObject, qr_code_object
from webhooks import events, wakeup


class QrCodeViewSet(MerchantViewSet):
    reads_with_key = {"create": ReadWithKey(events.SUBSCRIPTIONS)}

    @docs.create
    @idempotent_insert
    def create(self, request: Request) -> Job:
        fields = api.read_body(docs.create, request)
        fields.pop("currency")
        now = clock.now()
        subscriptions = self.read[0] or []
        new = services.generate(merchant=merchant_of(request), subscriptions=subscriptions, now=now, **fields)
        wake = wakeup.wake if events.has_deliveries(new.event_rows) else None
        warning = usual_amounts.warning_headers(new.payment.merchant, new.payment.amount)
        answer = ApiResponse.of(qr_code_object(new.qr_code, now), headers=warning)
        return InsertJob(answer, new.rows, wake, partial(services.free_reference, new, now=now))

    @docs.list_
    def list(self, request: Request) -> ApiResponse:
        query, now = api.read_query(docs.list_, request), clock.now()
        found = search.find(merchant_of(request), query | {"qr_code_id__isnull": False}, now, ids.of_payment)

        def show(payment: Payment) -> QrCodeObject:
            return qr_code_object(payment.qr_code, now)

        return paging.page(
            found.payments.select_related("qr_code"),
            query,
            "qr_codes",
            show,
            cursor=found.cursor,
            more=found.more,
            kind_columns=found.kind_columns,
        )

    @docs.retrieve
    def retrieve(self, request: Request, qr_code_id: str) -> QrCodeObject:
        return qr_code_object(services.find(qr_code_id, merchant=merchant_of(request)), clock.now())

    @docs.card
    def card(self, request: Request, qr_code_id: str) -> HttpResponse:
        wanted, merchant = CardRequest(**api.read_query(docs.card, request)), merchant_of(request)
        payment = services.find(qr_code_id, merchant=merchant).payment
        payment_page.check_payable(payment, clock.now())
        return qr_cards.respond(request._request, payment, wanted)

    @docs.expire
    @idempotent
    def expire(self, request: Request, qr_code_id: str) -> Job:
        merchant, now = merchant_of(request), clock.now()
        return lambda: qr_code_object(services.expire(merchant=merchant, qr_code_id=qr_code_id, now=now), now)


@docs.image
@get_or_head_only
def image(request: HttpRequest, qr_code_id: str) -> HttpResponse:
    """Return a PNG or SVG, or a 410 with an image of its status if the code can no longer be paid.

    No key is needed, because the picture goes into an <img>. It shows no personal data, and nobody can guess
    the id.
    """
    try:
        response = _picture(request, qr_code_id)
    except (QrCodeNotFound, QrCodeGone, InvalidFormat) as error:
        response = api.error_response(error, request)
    if named := ignored_parameters.header_of(docs.image, {}, request.GET):
        response.headers[ignored_parameters.HEADER] = named
    return response


# Sites of shops draw the picture onto a canvas, or load it by script.
PICTURE_HEADERS = {"Cache-Control": "no-cache", "X-Robots-Tag": "noindex", "Access-Control-Allow-Origin": "*"}


def _picture(request: HttpRequest, qr_code_id: str) -> HttpResponse:
    """Draw the picture, or answer 304 to a browser that has it and asks again.

    A 410 is never a 304, so that caches do not keep the picture of a paid code.
    """
    image_format, qr_code = _image_format(request), services.find(qr_code_id)
    text, is_open, media_type = qr_code.qr_data, True, MEDIA_TYPES[image_format]
    try:
        payment_page.check_open(qr_code.payment, clock.now())
    except QrCodeGone as gone:
        if request.headers.get("Accept", "").partition(";")[0].strip().lower() == responses.JSON:
            raise
        text, is_open = word_of(str(gone.context["status"])), False
    etag = '"' + hashlib.sha256(f"{media_type} {text}".encode()).hexdigest()[:32] + '"'
    headers = {"ETag": etag, "Vary": "Accept", **PICTURE_HEADERS}
    if not is_open:
        picture = images.status_image(text, image_format)
        return HttpResponse(picture, status=410, content_type=media_type, headers=headers)
    if etag in request.headers.get("If-None-Match", ""):
        return HttpResponseNotModified(headers=headers)
    return HttpResponse(DRAW[image_format](text), content_type=media_type, headers=headers)


def _image_format(request: HttpRequest) -> str:
    asked = request.GET.get("format")
    if asked is None:
        # Browsers name SVG among others for every <img>.
        accept = request.headers.get("Accept", "").lower()
        media_types = {each.partition(";")[0].strip() for each in accept.split(",")}
        others = {MEDIA_TYPES[PNG], "image/*", "*/*"}
        return SVG if MEDIA_TYPES[SVG] in media_types and media_types.isdisjoint(others) else PNG
    if asked not in IMAGE_FORMATS:
        raise InvalidFormat(param="format", received=received.describe(asked, is_shown=True))
    return asked
