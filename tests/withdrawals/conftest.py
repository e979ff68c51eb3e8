import pytest

from tests.conftest import SandboxBankClient, Shop
from tests.transfers.conftest import served_by
from tests.withdrawals.builders import fund

__all__ = ["served_by"]


@pytest.fixture
def shop(shop: Shop, bank: SandboxBankClient) -> Shop:
    """The shop, with 1,500.00 THB."""
    fund(shop, bank)
    return shop
