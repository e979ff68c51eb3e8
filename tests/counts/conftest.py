"""A merchant, and each counted list in turn."""

from typing import Any

import pytest

from merchants.models import Merchant
from tests.counts.builders import BUILDERS, ListBuilder
from tests.examples import some
from tests.factories import MerchantFactory

# For tests of what all lists share: some of them, or all with EXAMPLES_FACTOR=1.
some_lists = pytest.mark.parametrize("listed", some(BUILDERS), ids=str)


@pytest.fixture
def merchant() -> Merchant:
    made: Merchant = MerchantFactory()
    return made


@pytest.fixture(params=BUILDERS, ids=str)
def listed(request: Any) -> ListBuilder:
    builder: ListBuilder = request.param
    return builder
