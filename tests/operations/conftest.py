import pytest
from pytest_django import Settings

from tests.conftest import SandboxBankClient, Shop
from tests.console.conftest import clock, served_by
from tests.refunds.builders import RefundShop
from tests.settlements.conftest import acquirer

__all__ = ["acquirer", "clock", "served_by"]


@pytest.fixture
def refund_shop(shop: Shop, bank: SandboxBankClient, settings: Settings) -> RefundShop:
    settings.SANDBOX_ACQUIRER_URL = "http://127.0.0.1:1"  # nothing listens there
    return RefundShop(shop, bank)
