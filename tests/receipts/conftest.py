import pytest

from tests.conftest import BankCaller, Shop
from tests.receipts.cast import Till
from tests.transfers.conftest import served_by

__all__ = ["served_by"]


@pytest.fixture
def till(shop: Shop, bank: BankCaller) -> Till:
    return Till(shop, bank)
