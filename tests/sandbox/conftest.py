from collections.abc import Callable, Iterator
from typing import Any

import pytest

from core import thaiqr
from tests import webhook_receiver
from tests.webhook_receiver import Receiver

DOOR = "/banks/sandbox/notices"


@pytest.fixture
def service_endpoint(settings: Any) -> Iterator[Receiver]:
    """The payment service as the bank sees it: a door that answers as told."""
    with webhook_receiver.running_receiver() as door:
        settings.BASE_URL = door.base_url
        yield door


@pytest.fixture
def qr_data() -> str:
    return payload()


@pytest.fixture
def payment_order(qr_data: str) -> Callable[..., dict[str, Any]]:
    """The body of an order to pay."""

    def order(**fields: Any) -> dict[str, Any]:
        return {"qr_data": qr_data} | fields

    return order


def payload(**changes: Any) -> str:
    fields: dict[str, Any] = {
        "biller_id": "010555000000001",
        "reference1": "ABCDEFGHJ01234567890",
        "reference2": "SHOP7",
        "reference3": "T1",
        "amount": 150_000,
    }
    return thaiqr.bill_payment(**fields | changes)
