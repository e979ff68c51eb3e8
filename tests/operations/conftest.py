import pytest
from pytest_django import Settings

from tests.conftest import SandboxBankClient, Shop
from tests.console.conftest import clock, served_by
from tests.operations import scenarios
from tests.operations.scenarios import Serving
from tests.refunds.builders import RefundShop

__all__ = ["clock", "served_by"]


@pytest.fixture
def refund_shop(shop: Shop, bank: SandboxBankClient, settings: Settings) -> RefundShop:
    settings.SANDBOX_ACQUIRER_URL = "http://127.0.0.1:1"  # nothing listens there
    return RefundShop(shop, bank)


@pytest.fixture
def shop_with_all_scenarios(refund_shop: RefundShop, served_by: Serving, settings: Settings) -> RefundShop:
    """A shop after all scenarios."""
    for scenario in scenarios.SCENARIOS:
        scenario(refund_shop, served_by)
    scenarios.request_approvals(refund_shop, served_by, settings)
    scenarios.check_constraints_now()
    return refund_shop
