import pytest

from tests.conftest import SandboxBankClient, Shop
from tests.refunds.builders import RefundShop
from tests.transfers.conftest import served_by  # noqa: F401 (a fixture)


@pytest.fixture
def refund_shop(shop: Shop, bank: SandboxBankClient) -> RefundShop:
    return RefundShop(shop, bank)
