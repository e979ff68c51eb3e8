import pytest

from receipts import slip_pictures
from tests.conftest import BankCaller, Shop
from tests.receipts.cast import Till
from tests.transfers.conftest import served_by

__all__ = ["served_by"]


@pytest.fixture
def till(shop: Shop, bank: BankCaller) -> Till:
    return Till(shop, bank)


@pytest.fixture
def pictures_may_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader goes last on a busy machine: the clock then says nothing of the picture."""
    monkeypatch.setattr(slip_pictures, "SECONDS", 120.0)
