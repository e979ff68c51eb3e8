"""The base of the doors for the service itself."""

from typing import Any

from rest_framework.request import Request

from core import clock
from core.api import ApiViewSet
from sandbox import signatures
from sandbox.views import check_open


class SignedViewSet(ApiViewSet):
    """Open to whoever knows the secret that the bank and the service share."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        check_open()
        if request.method not in self.allowed_methods:
            self.http_method_not_allowed(request)
        super().initial(request, *args, **kwargs)
        signatures.verify(
            request.headers,
            method=str(request.method),
            path=request.get_full_path(),
            body=request._request.body,
            now=clock.now(),
        )
