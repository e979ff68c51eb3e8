"""Which threads of a web process answer a request."""

from collections.abc import Mapping
from typing import Any

WEB, CARD_PAYMENTS = "web", "cards"
CARD_PAYMENT_PATHS = {"/v1/payments", "/Thai/v1/payments"}
"""Here a POST waits for an acquirer."""
THREADS_PER_CALL = 2
"""Threads of the card pool per slot of CARD_CONCURRENCY: replays, refusals and waiting repeats need some."""
IDLE_SECONDS = 5.0


def pool_for(environ: Mapping[str, Any]) -> str:
    """The lane of a request."""
    is_card_payment = environ["REQUEST_METHOD"] == "POST" and environ["PATH_INFO"] in CARD_PAYMENT_PATHS
    return CARD_PAYMENTS if is_card_payment else WEB
