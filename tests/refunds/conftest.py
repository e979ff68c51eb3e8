import pytest

from tests.conftest import BankCaller, Shop
from tests.refunds.cast import Counter
from tests.transfers.conftest import served_by  # noqa: F401 (a fixture)


@pytest.fixture
def counter(shop: Shop, bank: BankCaller) -> Counter:
    return Counter(shop, bank)
