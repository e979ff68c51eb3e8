"""The peer of the benchmark gives the answers of the service. `make bench` refuses to measure otherwise."""

import json
from datetime import datetime

import pytest
from pytest_django import Settings

from bench import peer
from core import clock
from payments.models import Payment
from tests.conftest import Shop

ASKED = {"amount": 150_000, "currency": "THB", "reference": "order-1", "client_name": "Somchai"}


def test_peer_answers_as_the_service_does(
    shop: Shop, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer, "BASE_URL", settings.BASE_URL)
    code = shop.qr_code(**ASKED, metadata={"table": 4})
    asked = peer.QrCodeRequest(**ASKED, metadata={"table": 4})  # type: ignore[arg-type]
    until = datetime.fromisoformat(code["expires_at"])
    answer = peer._code_object(code["qr_code_id"], code["payment_id"], code["qr_data"], asked, until)
    assert json.loads(answer) == code

    row = Payment.objects.values().get() | {"metadata": json.dumps({"table": 4})}
    # A new field of the service needs none here: it is one of twenty.
    assert peer._payment_object(row, clock.now()).items() <= shop.payment(code["payment_id"]).items()
