"""The key in samples: what stands for one, or the test key of `make run` for a person on the same machine."""

import re

from django.conf import settings
from django.http import HttpRequest

from core.http.client_addresses import address_of, is_among

PLACEHOLDER = "tq_test_..."
LOOPBACK = ("127.0.0.0/8", "::1/128")
OWN_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?")


def key_for(request: HttpRequest) -> str:
    """The key that samples show to this client.

    A page of another site, under a name that leads to this machine, has this name in `Host`. A tunnel or a
    proxy that forwards strangers to this machine adds `X-Forwarded-For`.
    """
    is_here = (
        is_among(address_of(request), LOOPBACK)
        and OWN_HOST.fullmatch(request.META.get("HTTP_HOST", ""))
        and "X-Forwarded-For" not in request.headers
    )
    return settings.SAMPLE_KEY if is_here and settings.SAMPLE_KEY.startswith("tq_test_") else PLACEHOLDER
