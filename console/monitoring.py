"""Pages for monitoring: open to all, or only with `MONITORING_TOKEN` if that is set."""

from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare

from core import api
from merchants.errors import AuthenticationFailed

View = Callable[[HttpRequest], HttpResponse]


def for_monitoring(view: View) -> View:
    """Refuse a request that does not bring the token as `Authorization: Bearer ...`."""

    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        given = request.META.get("HTTP_AUTHORIZATION", "")
        token = settings.MONITORING_TOKEN
        if token and not constant_time_compare(given, f"Bearer {token}"):
            return api.refusal(AuthenticationFailed("The monitoring token is missing or wrong."), request)
        return view(request)

    return guarded
