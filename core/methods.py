"""Methods of plain Django views, refused like those of the API."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from core import api, errors

View = Callable[..., HttpResponse]
SAFE = ("GET", "HEAD")


def safe_only(view: View) -> View:
    """Answers GET and HEAD; anything else is 405 in the error envelope, never a question for a form token."""

    @csrf_exempt
    @wraps(view)
    def handle(request: HttpRequest, **kwargs: Any) -> HttpResponse:
        if request.method in SAFE:
            return view(request, **kwargs)
        refused = api.refusal(errors.MethodNotAllowed(method=request.method), request)
        refused.headers["Allow"] = ", ".join(SAFE)
        return refused

    return handle
