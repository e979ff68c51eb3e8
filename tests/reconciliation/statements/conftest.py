import pytest

from tests.conftest import Shop
from tests.reconciliation.statements.statement_files import open_shop_with_biller


@pytest.fixture
def shop(db: None) -> Shop:
    return open_shop_with_biller("Somtam House")
