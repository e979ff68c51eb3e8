from datetime import timedelta

import pytest

from core import clock
from core.work import decoders
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import Seller
from tests.transfers.conftest import served_by

__all__ = ["served_by"]


@pytest.fixture
def seller(shop: Shop, bank: SandboxBankClient) -> Seller:
    return Seller(shop, bank)


@pytest.fixture
def old_codes(shop: Shop) -> None:
    """QR codes are a week old, so that money can have been paid before the test began."""
    shop.codes_made_at = clock.now() - timedelta(days=7)


@pytest.fixture
def pictures_may_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow 120 s to decode a picture, because a busy machine may be slow."""
    for place in (decoders.PICTURE_OF_STAFF, decoders.PICTURE_OF_PAYER):
        monkeypatch.setattr(place, "timeout_seconds", 120.0)
