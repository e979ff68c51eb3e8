"""An application that returns the META of its request as JSON. It runs as a separate process."""

import os
import time
from pathlib import Path

from django.http import HttpResponse, JsonResponse

from config.asgi import ServiceRequest
from core.http import uploads

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
LARGE = 60_000


def application(request: ServiceRequest) -> HttpResponse:
    query = request.META["QUERY_STRING"]
    if request.path == "/boom":
        raise ValueError("a fault of the application")
    if request.path == "/slow":
        Path(query).touch()
        time.sleep(1)
    if request.path == "/large":
        with Path(query).open("ab") as file:
            file.write(b"x")
        return HttpResponse(b"x" * LARGE)
    if request.path == "/empty":
        return HttpResponse(b"nothing of this may be sent", status=204)
    return JsonResponse(
        {
            **{name: value for name, value in request.META.items() if isinstance(value, str)},
            "body": request.read().decode("latin-1"),
            "too_large": request.META.get(uploads.TOO_LARGE, False),
            "pid": os.getpid(),
        }
    )
