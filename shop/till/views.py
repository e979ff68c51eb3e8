"""Codes of the till: POST /qr-codes for a person of the shop, whose session stands in the place of a key."""

from typing import Any

from rest_framework.request import Request

from core import ids
from core.errors import ApiError, InvalidRequest
from core.http import rate_limits
from core.http.rate_limits import RateLimit
from merchants.errors import RateLimitExceeded
from operations.data_protection import shop_fence
from payments.models import Payment
from qrcodes.errors import QrCodeNotFound
from qrcodes.views import QrCodeViewSet
from shop.till import money_in
from webhooks import events

# Of one person.
RATE = RateLimit(per_second=0.5, burst=20)
FIELDS = {"amount", "currency", "reference", "metadata"}
MAX_NAME = 40


class TillCodeViewSet(QrCodeViewSet):
    """Makes and ends codes once per idempotency key, as the API does.

    The page around it has checked the session, the role and the CSRF token.
    """

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        page: Any = request._request
        self.person, merchant = page.user, page.membership.merchant
        rate_limits.check(f"till-codes:{self.person.pk}", RATE, RateLimitExceeded)
        request.user, request.auth = merchant, None
        self.read = [events.subscriptions_of([merchant.id]).get(merchant.id)]
        if self.action == "create":
            _check_fields(request.data)
        elif self.action == "expire":  # another method gets 405
            made, qr_code_id = money_in.made_at_tills(Payment.objects.of(merchant)), kwargs["qr_code_id"]
            with shop_fence.reading_for(merchant.id):
                ids.find(qr_code_id, "qr_", made, QrCodeNotFound, key=ids.of_payment(qr_code_id))

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        request._request.user = self.person  # middleware goes on with it
        return super().finalize_response(request, response, *args, **kwargs)

    def handle_exception(self, exc: Exception) -> Any:
        if isinstance(exc, ApiError):
            exc.text = exc.translated
        return super().handle_exception(exc)


def _check_fields(given: Any) -> None:
    """A cashier names no account of a customer, to which a refund could go. Raises InvalidRequest."""
    match given.get("metadata"):
        case {money_in.TILL: str(name), **others} if 0 < len(name) <= MAX_NAME and not others:
            is_named = True
        case _:
            is_named = False
    if not (is_named and set(given) <= FIELDS):
        raise InvalidRequest(reason="a till sends amount, currency, reference and its name")
