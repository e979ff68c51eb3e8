import pytest

from tests.conftest import Shop
from tests.receipts.statements.cast import open_billed


@pytest.fixture
def shop(db: None) -> Shop:
    return open_billed("Somtam House")
