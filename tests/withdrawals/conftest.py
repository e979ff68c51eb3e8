import pytest

from tests.conftest import BankCaller, Shop
from tests.transfers.conftest import served_by
from tests.withdrawals.cast import fund

__all__ = ["served_by"]


@pytest.fixture
def shop(shop: Shop, bank: BankCaller) -> Shop:
    """The shop, with 1,500.00 THB."""
    fund(shop, bank)
    return shop
