"""The sites of a shop: origins that may frame its payment page, and to which the page links back.

Source of the form of an origin: RFC 6454, section 6.2.
"""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from merchants.models import MAX_ORIGIN_LENGTH, MAX_ORIGINS, Merchant

MAX_URL_LENGTH = 2000
# No space, quote, comma or semicolon: the origin becomes a part of a header.
_ORIGIN = re.compile(r"(https?)://[a-z0-9](?:[a-z0-9.-]{0,250}[a-z0-9])?(?::[0-9]{1,5})?", re.ASCII)


def parse(texts: Iterable[str], *, is_live: bool) -> list[str]:
    """The origins without duplicates. Raises ValueError with the reason."""
    found = list(dict.fromkeys(_origin(text, is_live=is_live) for text in texts))
    if len(found) > MAX_ORIGINS:
        raise ValueError(_("At most %(limit)s sites.") % {"limit": MAX_ORIGINS})
    return found


def return_url(merchant: Merchant, url: str) -> str | None:
    """The address to which the page may link back, or None if it is of none of the merchant's sites."""
    if len(url) > MAX_URL_LENGTH or any(character <= " " or character == "\\" for character in url):
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return url if f"{parts.scheme}://{parts.netloc}".lower() in merchant.page_origins else None


def _origin(text: str, *, is_live: bool) -> str:
    origin = text.strip().rstrip("/").lower()
    match = _ORIGIN.fullmatch(origin)
    if match is None or len(origin) > MAX_ORIGIN_LENGTH:
        raise ValueError(_("%(text)s is not a site such as https://shop.example") % {"text": text[:80]})
    if is_live and match[1] != "https":
        raise ValueError(_("%(text)s: a live merchant's site begins with https://") % {"text": text[:80]})
    return origin
