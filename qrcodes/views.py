from rest_framework.request import Request

from core import api, clock
from core.http import ApiResponse
from idempotency.services import InsertJob, Job
from idempotency.views import idempotent
from merchants.api import MerchantViewSet, merchant_of
from qrcodes import openapi as docs
from qrcodes import services
from qrcodes.serializers import QR_CODE_REQUEST
from qrcodes.shapes import qr_code_object
from webhooks import events
from webhooks.delivery import wakeup


class QrCodeViewSet(MerchantViewSet):
    """Make, read and end QR codes."""

    @docs.create
    @idempotent
    def create(self, request: Request) -> Job:
        fields = api.read_body(QR_CODE_REQUEST, request)
        fields.pop("currency")
        now = clock.now()
        new = services.generate(merchant=merchant_of(request), now=now, **fields)
        wake = wakeup.wake if events.has_deliveries(new.event_rows) else None
        return InsertJob(ApiResponse.of(qr_code_object(new.qr_code, now)), new.rows, wake)

    @docs.retrieve
    def retrieve(self, request: Request, qr_code_id: str) -> ApiResponse:
        qr_code = services.find(merchant=merchant_of(request), qr_code_id=qr_code_id)
        return ApiResponse.of(qr_code_object(qr_code, clock.now()))

    @docs.expire
    @idempotent
    def expire(self, request: Request, qr_code_id: str) -> Job:
        merchant, now = merchant_of(request), clock.now()

        def work() -> ApiResponse:
            qr_code = services.expire(merchant=merchant, qr_code_id=qr_code_id, now=now)
            return ApiResponse.of(qr_code_object(qr_code, now))

        return work
