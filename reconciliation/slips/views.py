from collections.abc import Sequence
from typing import Any

from rest_framework.request import Request

from core import clock, errors
from core.http import api, rate_limits
from core.http.rate_limits import RateLimit
from core.work import decoders
from idempotency.services import Job
from idempotency.views import idempotent
from merchants.api import MerchantViewSet, merchant_of
from merchants.errors import RateLimitExceeded
from payments.models import Payment
from reconciliation.slips import openapi as docs, pictures, verdicts
from reconciliation.slips.pictures import DecoderBusy, UnreadablePicture
from reconciliation.slips.shapes import SlipObject, slip_object

# Of all keys of a merchant. A picture takes 0.6 s of CPU, a malicious one 3 s, and banks limit questions.
RATE = RateLimit(per_second=0.5, burst=20)


class SlipViewSet(MerchantViewSet):
    parser_classes = [*MerchantViewSet.parser_classes, api.FormParser]

    @docs.check
    @idempotent
    def create(self, request: Request) -> Job:
        given, merchant = api.read_body(docs.check, request), merchant_of(request)
        payment_id, amount = given.get("payment_id"), given.get("amount")
        if payment_id is not None:
            Payment.objects.of(merchant).find(payment_id, "payment_id")
        rate_limits.check(f"slips:{merchant.id}", RATE, RateLimitExceeded)
        judgment = verdicts.judge(merchant, _texts(request, given), now=clock.now)

        def work() -> SlipObject:
            slip_check = verdicts.store(
                judgment, merchant=merchant, payment_id=payment_id, amount=amount, now=clock.now()
            )
            return slip_object(slip_check, judgment.money)

        return work


def _texts(request: Request, given: dict[str, Any]) -> Sequence[str]:
    """The texts of QR codes: the given one, or those on the picture. None if it is unreadable."""
    picture: bytes | None = getattr(request._request, "picture", None)
    if (picture is None) == ("qr_data" not in given):
        detail = "is required if there is no picture, and not beside one"
        raise errors.InvalidQrData(param="qr_data", detail=detail)
    if picture is None:
        return [given["qr_data"]]
    try:
        return pictures.read_qr_codes(picture, decoders.PICTURE_OF_MERCHANT)
    except DecoderBusy:
        raise errors.ServiceUnavailable(retry_after=2) from None
    except UnreadablePicture:
        return []
