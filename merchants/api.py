"""The base of every resource that a merchant asks for with a key."""

from typing import Any

from rest_framework.request import Request

from core.api import ApiViewSet
from merchants import limits
from merchants.authentication import BearerKey, merchant_of

__all__ = ["MerchantViewSet", "merchant_of"]


class MerchantViewSet(ApiViewSet):
    """Authenticated by a secret key, limited per key."""

    authentication_classes = [BearerKey]
    throttle_classes = [limits.KeyRate]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        self.perform_authentication(request)
        self.check_throttles(request)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        room = getattr(request._request, "rate_room", None)
        if room is not None:
            for name, value in limits.headers(room).items():
                response[name] = value
        return response
