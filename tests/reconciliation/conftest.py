import pytest

from reconciliation.slips import pictures
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import Seller
from tests.transfers.conftest import served_by

__all__ = ["served_by"]


@pytest.fixture
def seller(shop: Shop, bank: SandboxBankClient) -> Seller:
    return Seller(shop, bank)


@pytest.fixture
def pictures_may_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow 120 s to decode a picture, because a busy machine may be slow."""
    monkeypatch.setattr(pictures, "TIMEOUT_SECONDS", 120.0)
