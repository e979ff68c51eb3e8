"""Questions to the sandbox bank over HTTP: which transactions there are for a code, or of a slip."""

import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from banks import exchange, sandbox_orders
from banks.base import NotAnswered, Question
from banks.exchange import Answer, NoAnswer, NotSent
from core import clock

log = logging.getLogger("banks")
TRANSACTIONS, SLIPS = "/sandbox/bank/v1/transactions", "/sandbox/bank/v1/slips"
CONNECT_SECONDS, READ_SECONDS = 2, 5


def ask(door: str, asked: Mapping[str, str], *, secret: bytes, base_url: str) -> Answer:
    """What the bank answered with 200. Raises NotAnswered."""
    path = f"{door}?{urlencode(asked)}"
    headers = {sandbox_orders.SIGNATURE: sandbox_orders.sign(secret, "GET", path, b"")}
    try:
        answer = exchange.ask(
            "GET",
            base_url + path,
            headers=headers,
            timeout=(CONNECT_SECONDS, READ_SECONDS),
            is_neighbour=True,
        )
    except (NotSent, NoAnswer) as error:
        raise NotAnswered(type(error).__name__) from None
    if answer.status != 200:
        log.warning("the sandbox bank answered an inquiry with %s", answer.status)
        raise NotAnswered(f"HTTP {answer.status}")
    return answer


def transactions(answer: Answer) -> list[dict[str, Any]]:
    """Raises ValueError where the answer holds no list of objects."""
    found = answer.told.get("transactions")
    if not isinstance(found, list) or not all(isinstance(told, dict) for told in found):
        raise ValueError("transactions is missing or malformed")
    return found


def about(question: Question) -> dict[str, str]:
    return {
        "biller_id": question.biller_id,
        "reference1": question.reference1,
        "since": clock.iso(question.since),
        "until": clock.iso(question.until),
    }
