from typing import Any

import pytest

from tests.conftest import SandboxBankClient, Shop
from tests.console.conftest import clock, served_by

__all__ = ["clock", "served_by"]


@pytest.fixture
def paid_twice(shop: Shop, bank: SandboxBankClient, clock: Any) -> str:
    """A payment that was paid twice, the second time a second ago."""
    code = shop.qr_code()
    bank.notify(code)
    clock.shift(1)
    bank.notify(code)
    clock.shift(1)
    return str(code["payment_id"])
