"""A code that nobody pays: it expires, and the shop is told."""

from datetime import datetime
from typing import Any

import pytest
import requests
from standardwebhooks import Webhook

from tests.flows.conftest import SECRET, UnpaidCode
from tests.webhook_receiver import ReceivedRequest

pytestmark = pytest.mark.slow


def test_unpaid_code_expires_and_webhook_is_sent(unpaid: UnpaidCode) -> None:
    """The shortest life a code can have is a minute."""
    till, code = unpaid.till, unpaid.code
    shown = unpaid.endpoint.wait_for(lambda found: bool(failures(found)), 180)
    (event,) = failures(shown)
    assert (event.json["data"]["payment_id"], event.json["data"]["status"]) == (code["payment_id"], "expired")
    assert Webhook(SECRET).verify(event.body, event.headers)
    payment: dict[str, Any] = till.get(f"/Thai/v1/payments/{code['payment_id']}")
    assert payment["status"] == "expired"
    # Also while another test holds Redis.
    assert 0 <= event.received_at - datetime.fromisoformat(payment["expires_at"]).timestamp() < 60
    assert requests.get(code["qr_image_url"], timeout=60).status_code == 410


def failures(received: list[ReceivedRequest]) -> list[ReceivedRequest]:
    return [each for each in received if each.json["event"] == "payment.failed"]
