from rest_framework.request import Request

from core import api, clock
from core.http import Answer
from idempotency.services import Draft, Job
from idempotency.views import idempotent
from merchants.api import MerchantViewSet, merchant_of
from qrcodes import openapi as docs
from qrcodes import services
from qrcodes.serializers import QR_CODE_REQUEST
from qrcodes.shapes import qr_code_object
from webhooks import doorbell, events


class QrCodeViewSet(MerchantViewSet):
    """Make, read and end QR codes."""

    @docs.create
    @idempotent
    def create(self, request: Request) -> Job:
        asked = api.read_body(QR_CODE_REQUEST, request)
        asked.pop("currency")
        now = clock.now()
        made = services.generate(merchant=merchant_of(request), now=now, **asked)
        ring = doorbell.ring if events.rings(made.told) else None
        return Draft(Answer.of(qr_code_object(made.qr_code, now)), made.rows, ring)

    @docs.retrieve
    def retrieve(self, request: Request, qr_code_id: str) -> Answer:
        qr_code = services.find(merchant=merchant_of(request), qr_code_id=qr_code_id)
        return Answer.of(qr_code_object(qr_code, clock.now()))

    @docs.expire
    @idempotent
    def expire(self, request: Request, qr_code_id: str) -> Job:
        merchant, now = merchant_of(request), clock.now()

        def work() -> Answer:
            qr_code = services.expire(merchant=merchant, qr_code_id=qr_code_id, now=now)
            return Answer.of(qr_code_object(qr_code, now))

        return work
