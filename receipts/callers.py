"""Where a caller is, as far as it can be believed."""

from django.conf import settings
from django.http import HttpRequest


def address_of(request: HttpRequest) -> str:
    """The other end of the connection; behind `PROXY_HOPS` proxies of ours, of the outermost one's.

    Each proxy adds whom it heard from at the end of the header; what stands before was written by strangers.
    Empty where the header is shorter than that.
    """
    if settings.PROXY_HOPS == 0:
        return str(request.META["REMOTE_ADDR"])
    told = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
    return told[-settings.PROXY_HOPS].strip() if len(told) >= settings.PROXY_HOPS else ""
