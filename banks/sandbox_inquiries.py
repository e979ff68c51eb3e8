"""Questions to the sandbox bank over HTTP: which transactions there are for a code, or of a slip."""

import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from banks import http_client, sandbox_orders
from banks.base import InquiryFailed, InquiryRequest
from banks.http_client import NoResponse, NotSent, Response
from core import clock

log = logging.getLogger("banks")
TRANSACTIONS_PATH, SLIPS_PATH = "/sandbox/bank/v1/transactions", "/sandbox/bank/v1/slips"
CONNECT_SECONDS, READ_SECONDS = 2, 5


def request(door: str, body: Mapping[str, str], *, secret: bytes, base_url: str) -> Response:
    """What the bank answered with 200. Raises NotAnswered."""
    path = f"{door}?{urlencode(body)}"
    headers = {sandbox_orders.SIGNATURE: sandbox_orders.sign(secret, "GET", path, b"")}
    try:
        response = http_client.request(
            "GET",
            base_url + path,
            headers=headers,
            timeout=(CONNECT_SECONDS, READ_SECONDS),
            is_internal=True,
        )
    except (NotSent, NoResponse) as error:
        raise InquiryFailed(type(error).__name__) from None
    if response.status != 200:
        log.warning("the sandbox bank answered an inquiry with %s", response.status)
        raise InquiryFailed(f"HTTP {response.status}")
    return response


def transactions(response: Response) -> list[dict[str, Any]]:
    """Raises ValueError where the answer holds no list of objects."""
    found = response.data.get("transactions")
    if not isinstance(found, list) or not all(isinstance(data, dict) for data in found):
        raise ValueError("transactions is missing or malformed")
    return found


def inquiry_query(inquiry: InquiryRequest) -> dict[str, str]:
    return {
        "biller_id": inquiry.biller_id,
        "reference1": inquiry.reference1,
        "since": clock.iso(inquiry.starts_at),
        "until": clock.iso(inquiry.ends_at),
    }
